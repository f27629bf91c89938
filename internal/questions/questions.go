// Package questions holds the typed questions that a decider may be asked about a proposed tool call, the answers it
// may give, and the exact text in which call and questions are put before it. It is pure and imports no other package
// of this module.
package questions

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

const (
	// SetVersion names the wording of the built-in questions. A changed word is a new version: thresholds were fitted to it.
	SetVersion = "v1"
	// PromptVersion names the layout of the state and of the question blocks. It is part of a decider's fingerprint.
	PromptVersion = "p2"
)

// Limits of what may be asked: the subset that all known servers of typed questions share.
const (
	MaxQuestions = 64
	MaxOptions   = 26
	MinLevels    = 2
	MaxLevels    = 10
)

// SumTolerance is how far a distribution may miss 1: servers round each probability to two decimals.
const SumTolerance = 0.02

// Type says which kind of answer a question has.
type Type string

// The types of questions. The wire calls them noul, choice and score.
const (
	YesNo  Type = "YesNo"
	Choice Type = "Choice"
	Score  Type = "Score"
)

// Polarity says which answer of a YesNo question speaks for the call. Thresholds read it nowhere: it documents the
// question, and lets a linter say that a ladder looks the wrong way round.
type Polarity string

// The polarities. The zero value says nothing.
const (
	YesIsGood Polarity = "YesIsGood"
	NoIsGood  Polarity = "NoIsGood"
)

// Option is one answer of a Choice question.
type Option struct{ Name, Description string }

// Question is one narrow judgment about a proposed call.
type Question struct {
	Name         string
	Type         Type
	Instructions string
	// WhenTrue and WhenFalse describe both outcomes of a YesNo question.
	WhenTrue, WhenFalse string
	// Options are the answers of a Choice, in the order shown.
	Options []Option
	// Levels are the steps of a Score in words, mildest first.
	Levels []string
	// SeesToolResults shows tool results to this question, which is then asked in a request of its own.
	SeesToolResults bool
	Polarity        Polarity
}

// Answer is what a decider said to one question.
type Answer struct {
	Type Type
	// Probability is P(yes) of a YesNo.
	Probability float64
	// Choice is the option chosen.
	Choice string
	// Probabilities are by option for a Choice, by "0".."N-1" for a Score.
	Probabilities map[string]float64
	// Score is the expected level.
	Score float64
	// Verdict marks a Choice without any probability behind it, such as one read from generated JSON.
	Verdict bool
	// Coverage is the probability mass that the model gave to the offered labels together; 1 if it is not known.
	Coverage float64
}

// Answers holds answers by question name.
type Answers map[string]Answer

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)

// Confidence is max(p, 1-p) for a YesNo and the top probability otherwise; false if the answer has no probability.
func (a Answer) Confidence() (float64, bool) {
	if a.Verdict {
		return 0, false
	}
	if a.Type == YesNo {
		return math.Max(a.Probability, 1-a.Probability), true
	}
	top, found := 0.0, false
	for _, p := range a.Probabilities {
		top, found = math.Max(top, p), true
	}
	return top, found
}

// Labels returns the keys that the probabilities of an answer must have; nil for a YesNo.
func (q Question) Labels() []string {
	var labels []string
	switch q.Type {
	case Choice:
		for _, o := range q.Options {
			labels = append(labels, o.Name)
		}
	case Score:
		for i := range q.Levels {
			labels = append(labels, strconv.Itoa(i))
		}
	case YesNo:
	}
	return labels
}

// Validate says whether the question can be asked at all.
func (q Question) Validate() error {
	if !namePattern.MatchString(q.Name) {
		return fmt.Errorf("question name must match %s", namePattern)
	}
	if q.Instructions == "" {
		return fmt.Errorf("question %s: instructions are required", q.Name)
	}
	switch q.Type {
	case YesNo:
		return nil
	case Choice:
		return q.validateOptions()
	case Score:
		if len(q.Levels) < MinLevels || len(q.Levels) > MaxLevels {
			return fmt.Errorf("question %s: a Score has %d to %d levels", q.Name, MinLevels, MaxLevels)
		}
		return nil
	default:
		return fmt.Errorf("question %s: unknown type %q", q.Name, q.Type)
	}
}

func (q Question) validateOptions() error {
	if len(q.Options) < 2 || len(q.Options) > MaxOptions {
		return fmt.Errorf("question %s: a Choice has 2 to %d options", q.Name, MaxOptions)
	}
	seen := make(map[string]bool, len(q.Options))
	for _, o := range q.Options {
		if !namePattern.MatchString(o.Name) {
			return fmt.Errorf("question %s: option name must match %s", q.Name, namePattern)
		}
		if seen[o.Name] {
			return fmt.Errorf("question %s: option %s appears twice", q.Name, o.Name)
		}
		seen[o.Name] = true
	}
	return nil
}
