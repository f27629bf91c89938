package learn

import (
	"cmp"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/questions"
)

// Label is what a call should have been. Empty: nobody said.
type Label string

// Labels.
const (
	LabelAllow Label = "allow"
	LabelBlock Label = "block"
)

// Example is a decided call with what a ladder went by. It holds numbers and names, and nothing that anybody wrote.
type Example struct {
	// ID of the decision.
	ID string
	// Cluster is the request of the user that led to the call.
	Cluster      string
	Tool, Server string
	Class        string
	Label        Label
	Time         time.Time
	// Seen by policy, as KIND/NAMESPACE/NAME.
	Seen map[string]Seen
}

// Seen is what one policy had before it.
type Seen struct {
	Answers     questions.Answers
	Fingerprint string
	// Rest is the strictest outcome of everything but this policy's ladder: its rules, what cannot be undone, and other
	// policies. No threshold makes the call pass it.
	Rest policy.Outcome
	// Audit says that the policy was only observed; then Rest is about this policy alone.
	Audit bool
}

// Evidence is what a log says.
type Evidence struct {
	Examples []Example
	// Words of people about calls that waited for them.
	Words []Word
	// Left counts decisions that say nothing about thresholds, by why.
	Left map[string]int
}

// Log gathers evidence from the records of an audit log, in their order.
type Log struct {
	// DryRuns counts decisions that were asked for without a call behind them, as an evaluation does.
	DryRuns bool

	examples []Example
	place    map[string]int
	labels   map[string]Label
	requests map[string]string
	// waiting are examples that raised an approval and await its end, by its name.
	waiting map[string][]int
	heard   map[string]string // the last outcome of an approval that was counted, by name
	words   []Word
	left    map[string]int
}

// NewLog returns a log without records.
func NewLog() *Log {
	return &Log{place: map[string]int{}, labels: map[string]Label{}, requests: map[string]string{}, waiting: map[string][]int{}, heard: map[string]string{}, left: map[string]int{}}
}

// Why decisions say nothing about thresholds.
const (
	leftDryRun    = "dry runs"
	leftGate      = "decided by the gate itself, without its policies"
	leftNoAnswers = "no decider was asked or it gave no answer, so no threshold took part"
)

// Add takes a record.
func (l *Log) Add(e *audit.Entry) {
	switch {
	case e.Kind == audit.KindLabel && e.Label != nil:
		l.label(e.Label)
	case e.Kind != audit.KindDecision && e.Kind != "":
	case e.DryRun && !l.DryRuns:
		l.left[leftDryRun]++
	default:
		l.decision(e)
	}
}

// label keeps the last word about a decision.
func (l *Log) label(x *audit.Label) {
	switch x.Outcome {
	case review.Allow:
		l.labels[x.Decision] = LabelAllow
	case review.Block:
		l.labels[x.Decision] = LabelBlock
	case review.Clarify, review.Confirm:
	}
}

func (l *Log) decision(e *audit.Entry) {
	l.person(e)
	seen := seenBy(&e.Record)
	switch {
	case e.By == "gate":
		l.left[leftGate]++
		return
	case len(seen) == 0:
		l.left[leftNoAnswers]++
		return
	}
	l.place[e.ID] = len(l.examples)
	if e.Approval != nil && e.Approval.Outcome == "" {
		l.waiting[e.Approval.Name] = append(l.waiting[e.Approval.Name], len(l.examples))
	}
	l.examples = append(l.examples, Example{
		ID: e.ID, Cluster: cmp.Or(e.UserTurnsDigest, e.Session, e.ID), Tool: e.Tool, Server: e.Server, Class: e.Class, Time: e.Time, Seen: seen,
	})
}

// approvalLabels are what an approval's end says of the call that raised it.
var approvalLabels = map[string]Label{"Approved": LabelAllow, "Rejected": LabelBlock}

// person takes what a person said: the records of calls that come back with an approval tell how it was decided. Each
// approval is heard once, however often its call comes back.
func (l *Log) person(e *audit.Entry) {
	a := e.Approval
	if a == nil {
		return
	}
	label := approvalLabels[a.Outcome]
	if label == "" {
		delete(l.heard, a.Name) // raised again, under a name that was used before
		return
	}
	if l.heard[a.Name] == a.Outcome {
		return
	}
	l.heard[a.Name] = a.Outcome
	l.words = append(l.words, Word{Tool: e.Tool, Class: e.Class, Approved: label == LabelAllow, At: e.Time})
	for _, i := range l.waiting[a.Name] {
		l.examples[i].Label = label
	}
	delete(l.waiting, a.Name)
}

// Evidence returns what was gathered. A label outranks what an approval says.
func (l *Log) Evidence() Evidence {
	for id, label := range l.labels {
		if i, ok := l.place[id]; ok {
			l.examples[i].Label = label
		}
	}
	for id, request := range l.requests {
		if i, ok := l.place[id]; ok {
			l.examples[i].Cluster = request
		}
	}
	return Evidence{Examples: l.examples, Words: l.words, Left: l.left}
}

// SetCase says what the decision should have been, and which request of a user it is about.
func (l *Log) SetCase(decision, request string, label Label) {
	l.labels[decision], l.requests[decision] = label, request
}

// seenBy finds the answers by policy. A policy whose decider failed has none.
func seenBy(r *audit.Record) map[string]Seen {
	out, failed := map[string]Seen{}, map[string]bool{}
	for _, a := range r.Deciders {
		failed[a.Policy] = failed[a.Policy] || a.Error != "" || len(a.Answers) == 0
		s, ok := out[a.Policy]
		if !ok {
			s = Seen{Answers: questions.Answers{}, Fingerprint: a.Fingerprint, Audit: a.Audit}
			s.Rest = restFor(r, a.Policy, a.Audit)
		}
		failed[a.Policy] = failed[a.Policy] || s.Fingerprint != a.Fingerprint
		for name, given := range a.Answers {
			s.Answers[name] = answerOf(given)
		}
		out[a.Policy] = s
	}
	for label, isFailed := range failed {
		if isFailed {
			delete(out, label)
		}
	}
	return out
}

// byDecider is how records name a ladder.
const byDecider = "decider"

func restFor(r *audit.Record, label string, isAudit bool) policy.Outcome {
	rest := policy.Allow
	if isAudit {
		for _, w := range r.WouldBe {
			if w.Policy == label && w.By != byDecider {
				rest = min(rest, outcomeOf(w.Outcome))
			}
		}
		return rest
	}
	for _, o := range r.Obligations {
		if o.Policy != label || o.By != byDecider {
			rest = min(rest, outcomeOf(o.Outcome))
		}
	}
	return rest
}

// outcomeOf reads an outcome. Anything unknown is Block.
func outcomeOf(o review.Outcome) policy.Outcome {
	switch o {
	case review.Allow:
		return policy.Allow
	case review.Confirm:
		return policy.Confirm
	case review.Clarify:
		return policy.Clarify
	case review.Block:
	}
	return policy.Block
}

func answerOf(a review.Answer) questions.Answer {
	switch {
	case a.Probability != nil:
		return questions.Answer{Type: questions.YesNo, Probability: *a.Probability, Coverage: 1}
	case a.Score != nil:
		return questions.Answer{Type: questions.Score, Score: *a.Score, Probabilities: a.Probabilities, Coverage: 1}
	}
	return questions.Answer{Type: questions.Choice, Choice: a.Choice, Probabilities: a.Probabilities, Coverage: 1, Verdict: len(a.Probabilities) == 0}
}
