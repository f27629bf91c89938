// Package engine is what the decider server needs of a loaded model: typed questions about one state in, one
// distribution a question out. Implementations compute; queueing, deadlines of many callers and the wire are the
// server's.
package engine

import (
	"context"
	"fmt"

	"gatewright.dev/gatewright/internal/questions"
)

// Engine answers questions about one state after another. Ask is called by one goroutine at a time; the other methods
// may be called at any time before Close.
type Engine interface {
	// Info describes what was loaded. It does not change.
	Info() Info
	// Ask answers every question or none. The state is untrusted text, as questions.Render gives it or as a client of
	// the wire sent it. It looks at ctx between steps of at most some tens of milliseconds and returns its error.
	Ask(ctx context.Context, state []byte, asked []questions.Question) (Reply, error)
	// Verify hashes what was loaded once more and returns an error that names both hashes if it is not what it was.
	Verify(ctx context.Context) error
	Close() error
}

// Info identifies a loaded model and everything that moves its numbers.
type Info struct {
	// Model is the name by which the model answers.
	Model string
	// SHA256 of the model file, 64 hexadecimal digits.
	SHA256 string
	// Fingerprint covers model bytes, engine, readout, prompt version and calibration, as "sha256:" and hexadecimal digits.
	Fingerprint string
	// Architecture as the file names it, such as llama or bert; Readout as LabelLogits or ClassHead.
	Architecture, Readout string
	// Library is the engine's version, CPUVariant the instruction set it chose. The variant is not part of the fingerprint.
	Library, CPUVariant string
	// ContextTokens is the longest prompt in tokens, Threads how many the engine computes with.
	ContextTokens, Threads int
	// Supports lists the built-in questions that can be answered; empty means any question.
	Supports []string
}

// Reply is one distribution for each question, in the order asked, and what it cost.
type Reply struct {
	Distributions []Distribution
	// PromptTokens counts all prompts of the request, ReusedTokens those of them that were not computed again.
	PromptTokens, ReusedTokens int
}

// Distribution is the probability of each label in the order of questions.Question.PromptLabels, after temperature. It
// sums to 1. Coverage is the share of the whole vocabulary's probability that these labels had.
type Distribution struct {
	Probabilities []float64
	Coverage      float64
}

// Reason says in one word why a question was not answered.
type Reason string

// The reasons.
const (
	// TooLong: the prompt does not fit into the window. Nothing was cut.
	TooLong Reason = "TooLong"
	// LowCoverage: the model was about to say something that is no answer.
	LowCoverage Reason = "LowCoverage"
	// NotSupported: this model does not answer this question.
	NotSupported Reason = "NotSupported"
	// Unreadable: the state is not text that the tokenizer can hold.
	Unreadable Reason = "Unreadable"
	// Failed: the engine itself failed. The process should be replaced.
	Failed Reason = "Failed"
)

// Error is every error of Ask but that of its context.
type Error struct {
	Reason Reason
	Detail string
	// Question is the name of the question at fault, empty if it is not one question's.
	Question string
	// Tokens and Limit are set for TooLong.
	Tokens, Limit int
}

// Error never repeats text of the state.
func (e *Error) Error() string {
	if e.Question == "" {
		return fmt.Sprintf("%s: %s", e.Reason, e.Detail)
	}
	return fmt.Sprintf("%s: question %s: %s", e.Reason, e.Question, e.Detail)
}
