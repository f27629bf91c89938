// Package inference asks a decider typed questions about a proposed tool call. Whatever wire a decider speaks, the result is
// the same: exactly the answers that were asked for, each one whole, or an error with a reason. There is no third outcome.
package inference

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"gatewright.dev/gatewright/internal/questions"
)

// Request is one call put before a decider.
type Request struct {
	// Tenant is the key of fair queueing: the namespace of the caller.
	Tenant    string
	State     questions.State
	Questions []questions.Question
}

// Result is what the decider said, and who said it.
type Result struct {
	Answers                   questions.Answers
	Model, Fingerprint        string
	InputTokens, OutputTokens int
	Latency                   time.Duration
}

// Decider answers questions about one call. An error is always an *Error, and then there are no answers.
type Decider interface {
	Decide(ctx context.Context, r Request) (Result, error)
}

// Calibration holds a fitted temperature in thousandths by type of question.
type Calibration map[questions.Type]int

// validate refuses what no decider may be asked, before anything is sent.
func (r Request) validate() error {
	if len(r.Questions) == 0 || len(r.Questions) > questions.MaxQuestions {
		return fail(QuestionNotSupported, "a request has 1 to %d questions", questions.MaxQuestions)
	}
	seen := make(map[string]bool, len(r.Questions))
	for _, q := range r.Questions {
		if err := q.Validate(); err != nil {
			return fail(QuestionNotSupported, "%v", err)
		}
		if seen[q.Name] {
			return fail(QuestionNotSupported, "question %s is asked twice", q.Name)
		}
		seen[q.Name] = true
	}
	return nil
}

// ask puts a group of questions that may see the same state.
type ask func(ctx context.Context, state []byte, group []questions.Question) (Result, error)

// decide renders the state and asks. Questions that see tool results go in a request of their own, so that what a tool
// returned cannot argue with the judge of the others. Then it checks the answers once more, whoever parsed them.
func decide(ctx context.Context, r Request, cal Calibration, do ask) (Result, error) {
	start := time.Now()
	if err := r.validate(); err != nil {
		return Result{}, err
	}
	total := Result{Answers: questions.Answers{}}
	for i, group := range groups(r.Questions) {
		state, err := questions.Render(r.State, group[0])
		if err != nil {
			return Result{}, fail(StateUnreadable, "%v", err)
		}
		part, err := do(ctx, state, group)
		if i > 0 {
			err = afterSending(err)
		}
		if err != nil {
			return Result{}, asError(ctx, err)
		}
		if err := questions.CheckAll(group, part.Answers); err != nil {
			return Result{}, fail(BadReply, "%v", err)
		}
		if i > 0 && (part.Model != total.Model || part.Fingerprint != total.Fingerprint) {
			return Result{}, fail(ModelMismatch, "the model changed between two questions of one request")
		}
		total.add(part, group, cal)
	}
	total.Latency = time.Since(start)
	return total, nil
}

func (t *Result) add(part Result, group []questions.Question, cal Calibration) {
	for _, q := range group {
		t.Answers[q.Name] = q.Calibrate(part.Answers[q.Name], cal[q.Type])
	}
	t.Model, t.Fingerprint = part.Model, part.Fingerprint
	t.InputTokens += part.InputTokens
	t.OutputTokens += part.OutputTokens
}

func groups(asked []questions.Question) [][]questions.Question {
	var plain, seeing []questions.Question
	for _, q := range asked {
		if q.SeesToolResults {
			seeing = append(seeing, q)
		} else {
			plain = append(plain, q)
		}
	}
	var all [][]questions.Question
	for _, group := range [][]questions.Question{plain, seeing} {
		if len(group) > 0 {
			all = append(all, group)
		}
	}
	return all
}

// fingerprintOf hashes parts with their lengths, so that no two lists of parts run together.
func fingerprintOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
