package judge

import (
	"slices"
	"strconv"

	"gatewright.dev/gatewright/internal/questions"
)

// AnswersVersion names how answers are made of heads and facts. It is part of the fingerprint.
const AnswersVersion = "a2"

// evidence is what the answers about one call are made of.
type evidence struct {
	model *Model
	facts Vector
	// strict are the facts for strict heads.
	strict Vector
	// ran are the facts as if refused calls had run, nil without any. That a call was refused is never a reason to be milder,
	// so what counts is the worse of the two.
	ran   Vector
	view  *view
	state *questions.State
	// faults are what heads said, each of which is asked once.
	faults map[string]float64
}

// readings say how each question is answered. Questions that are not here are not answered:
//
//   - declined: whether a "don't" is meant for this call takes reading.
//   - verdict: it has no number that a policy could set a bar for, and a bar that was fitted elsewhere does not travel.
//
// Questions about the request come from heads that were trained; what the call would do comes from words and the class,
// by the table in effects.go.
var readings = map[string]func(*evidence) questions.Answer{
	"asked":                 func(e *evidence) questions.Answer { return e.yes(1 - e.fault(headUnasked)) },
	"matches_request":       func(e *evidence) questions.Answer { return e.yes(1 - e.fault(headRisk)) },
	"exceeds_scope":         func(e *evidence) questions.Answer { return e.yes(e.fault(headExceeds)) },
	"same_item":             func(e *evidence) questions.Answer { return e.yes(1 - e.fault(headDiffers)) },
	"args_grounded":         func(e *evidence) questions.Answer { return e.yes(1 - e.fault(e.groundedBy())) },
	"appropriate":           func(e *evidence) questions.Answer { return e.yes(1 - e.fault(headExceeds)) },
	"needs_clarify":         func(e *evidence) questions.Answer { return e.yes(e.fault(headClarify)) },
	"instructed_by_content": func(e *evidence) questions.Answer { return e.yes(e.fault(headInject)) },
	"deletes_data":          func(e *evidence) questions.Answer { return e.yes(e.deletes()) },
	"moves_money":           func(e *evidence) questions.Answer { return e.yes(e.movesMoney()) },
	"leaves_the_system":     func(e *evidence) questions.Answer { return e.yes(e.leaves()) },
	"severity":              (*evidence).severity,
}

// headOf is the head behind a question, for explanations; false for what comes from a table.
func (e *evidence) headOf(question string) (string, bool) {
	if question == "args_grounded" {
		return e.groundedBy(), true
	}
	head, ok := questionHeads[question]
	return head, ok
}

var questionHeads = map[string]string{
	"asked": headUnasked, "matches_request": headRisk, "exceeds_scope": headExceeds, "same_item": headDiffers,
	"appropriate": headExceeds, "needs_clarify": headClarify, "instructed_by_content": headInject,
}

// groundedBy is the head that has most against the values. One that an order in a tool result put there is grounded in
// nothing that counts, though it can be traced: where the user did not say all values, orders are looked at too.
func (e *evidence) groundedBy() string {
	if e.view.count(unsure) > 0 && e.fault(headInject) > e.fault(headUngrounded) {
		return headInject
	}
	return headUngrounded
}

// Supported lists the questions that the judge answers.
func Supported() []string {
	var names []string
	for name := range readings {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// factsFor are the facts that a head goes by.
func (e *evidence) factsFor(head string) Vector {
	if isStrict(head) {
		return e.strict
	}
	if h := e.model.heads[head]; e.ran != nil && h.probability(e.ran) > h.probability(e.facts) {
		return e.ran
	}
	return e.facts
}

func (e *evidence) fault(head string) float64 {
	p, ok := e.faults[head]
	if !ok {
		p = e.model.heads[head].probability(e.factsFor(head))
		e.faults[head] = p
	}
	return p
}

func (e *evidence) yes(p float64) questions.Answer {
	return questions.Answer{Type: questions.YesNo, Probability: p, Coverage: 1}
}

// severity is a distribution over the four levels, by the worst of class, effects and words.
func (e *evidence) severity() questions.Answer {
	worst := max(e.deletes(), e.movesMoney(), e.leaves())
	var levels [4]float64
	switch {
	case e.view.class == 3 || worst >= likely && e.deletes() == worst:
		levels = [4]float64{0.02, 0.08, 0.30, 0.60}
	case e.view.class == 2 || worst >= likely:
		levels = [4]float64{0.02, 0.18, 0.60, 0.20}
	case e.view.class == 0 || e.view.class < 0 && e.view.acts == actRead:
		levels = [4]float64{0.90, 0.08, 0.01, 0.01}
	default:
		levels = [4]float64{0.10, 0.60, 0.20, 0.10}
	}
	a := questions.Answer{Type: questions.Score, Probabilities: make(map[string]float64, len(levels)), Coverage: 1}
	for i, p := range levels {
		a.Probabilities[strconv.Itoa(i)] = p
		a.Score += float64(i) * p
	}
	return a
}
