package evaluation

import (
	"slices"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
)

// Failure says why a gate gave no decision. Its caller has to take each of them for Block.
type Failure string

// Failures.
const (
	// NoFailure is a decision.
	NoFailure Failure = ""
	// TimedOut: the gate did not answer in time.
	TimedOut Failure = "timeout"
	// Unreachable: the gate could not be asked.
	Unreachable Failure = "unreachable"
	// Malformed: what the gate answered could not be read.
	Malformed Failure = "malformed"
	// Refused: the gate answered with an error; Result.Reason has its code.
	Refused Failure = "refused"
)

// Result is what a gate said to one case.
type Result struct {
	Configuration Configuration `json:"configuration"`
	Case          string        `json:"case"`
	// Repeat counts from 1.
	Repeat int `json:"repeat"`
	// First says that this was the first call to its gate.
	First bool `json:"first,omitempty"`

	// Outcome is empty if there was none.
	Outcome review.Outcome `json:"outcome,omitempty"`
	// Judged is the outcome without the standing rule that some classes always wait for a person: what rules and decider
	// said of this very call. It equals Outcome where obligations are not disclosed.
	Judged  review.Outcome `json:"judged,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	By      string         `json:"by,omitempty"`
	Class   string         `json:"class,omitempty"`
	Base    string         `json:"base,omitempty"`
	Failure Failure        `json:"failure,omitempty"`

	Answers     map[string]review.Answer `json:"answers,omitempty"`
	Decider     string                   `json:"decider,omitempty"`
	Fingerprint string                   `json:"fingerprint,omitempty"`
	// DeciderErrors are the reasons of requests to deciders that came to nothing. Known in a local run only.
	DeciderErrors []string `json:"deciderErrors,omitempty"`
	// Asked counts requests to deciders, with the tokens that they report. Known in a local run only.
	Asked        int `json:"asked,omitempty"`
	InputTokens  int `json:"inputTokens,omitempty"`
	OutputTokens int `json:"outputTokens,omitempty"`
	// Repeats is what the gate says of earlier denials that it remembered. In a local run there are none.
	Repeats int `json:"repeats,omitempty"`

	// Milliseconds from sending the request to having read the answer.
	Milliseconds float64 `json:"ms"`
	// DeciderMilliseconds is the longest of the requests to deciders. Known in a local run only.
	DeciderMilliseconds float64 `json:"deciderMs,omitempty"`
}

// IsStopped says whether the call did not run on its own: anything but a decision to allow it.
func (r *Result) IsStopped() bool { return r.Failure != NoFailure || r.Outcome != review.Allow }

// IsModelNeeded says whether a decider was asked, or should have been and was not there.
func (r *Result) IsModelNeeded() bool {
	return r.Decider != "" || r.Asked > 0 || slices.Contains(noAnswer, policy.Reason(r.Reason))
}

// standing are the sources of obligations that hold for every call of a class.
var standing = []string{"policy:irreversible", "policy:approval-always"}

// judged is the strictest outcome of the obligations that are about this very call.
func judged(r *review.Response) review.Outcome {
	if len(r.Decision.Obligations) == 0 {
		return r.Outcome
	}
	strictest := review.Allow
	for _, o := range r.Decision.Obligations {
		if !slices.Contains(standing, o.By) && rank(o.Outcome) > rank(strictest) {
			strictest = o.Outcome
		}
	}
	return strictest
}

func isKnown(o review.Outcome) bool { return slices.Contains(outcomes, string(o)) }

// rank orders outcomes by how strict they are. What is not known is the strictest.
func rank(o review.Outcome) int {
	switch o {
	case review.Allow:
		return 0
	case review.Confirm:
		return 1
	case review.Clarify:
		return 2
	case review.Block:
	}
	return 3
}
