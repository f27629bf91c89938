// Package judge is the small judge inside the gate: weights and boosted trees over facts that code computes about a call. It
// reads no text as language and needs no library, and it says which facts drove an answer. It is pure: no I/O, no clock.
//
// What tools and the agent say can only raise its suspicion. See passages.go and view.look.
package judge

import (
	"errors"
	"slices"
	"unicode/utf8"

	"gatewright.dev/gatewright/internal/questions"
)

// ErrUnreadable is every error about a call that cannot be judged because it cannot be read whole.
var ErrUnreadable = errors.New("the call cannot be read whole")

// ErrTooLong is the error about a call with more different words than the judge numbers, or with more to compare than it
// compares.
var ErrTooLong = errors.New("the call has more words than the judge reads")

// Judge answers the built-in questions. It is immutable and safe for concurrent use.
type Judge struct{ model *Model }

// New returns a judge that goes by a model.
func New(m *Model) *Judge { return &Judge{model: m} }

// Name is the model's name.
func (j *Judge) Name() string { return j.model.name }

// Hash is the SHA-256 of the model file, in hexadecimal.
func (j *Judge) Hash() string { return j.model.hash }

// Versions are what else than the model file an answer depends on: the meaning of the facts and of the questions.
func Versions() []string {
	return []string{Format, FactsVersion, AnswersVersion, questions.SetVersion}
}

// Answers says whether the judge answers a question. A question of a built-in's name that was changed is not that one.
func (j *Judge) Answers(q questions.Question) bool {
	_, known := readings[q.Name]
	builtin, ok := questions.Builtin(q.Name)
	return known && ok && builtin.Type == q.Type && builtin.Instructions == q.Instructions
}

// Answer answers questions about one call. The caller asks only what Answers says.
func (j *Judge) Answer(s *questions.State, asked []questions.Question) (questions.Answers, error) {
	e, err := j.read(s)
	if err != nil {
		return nil, err
	}
	out := make(questions.Answers, len(asked))
	for i := range asked {
		q := &asked[i]
		answer, ok := readings[q.Name]
		if !ok {
			return nil, errors.New("question " + q.Name + " is not answered")
		}
		out[q.Name] = answer(e)
	}
	return out, nil
}

// read computes the facts of a call that can be read whole.
func (j *Judge) read(s *questions.State) (*evidence, error) {
	if err := checkTree(s.Arguments, 0); err != nil {
		return nil, err
	}
	for _, texts := range [...][]string{s.UserTurns, s.System, {s.Tool.Name, s.Tool.Description}} {
		for _, t := range texts {
			if !utf8.ValidString(t) {
				return nil, ErrUnreadable
			}
		}
	}
	v, err := readWhole(s)
	if err != nil {
		return nil, err
	}
	e := &evidence{model: j.model, state: s, view: v, faults: make(map[string]float64, len(j.model.heads))}
	e.strict = v.facts(true)
	e.facts = v.facts(false)
	if slices.ContainsFunc(s.Messages, isRefused) {
		ran, err := readWhole(withoutRefusals(s)) // which takes more comparing
		if err != nil {
			return nil, err
		}
		e.ran = ran.facts(false)
	}
	return e, nil
}

// readWhole reads the conversation, or refuses one that takes too much comparing.
func readWhole(s *questions.State) (*view, error) {
	v := newView(s)
	if len(v.weight) >= maxWords || v.steps > maxSteps {
		return nil, ErrTooLong
	}
	return v, nil
}

func isRefused(m questions.Message) bool { return m.Refused }

// withoutRefusals is the state as if every call before had run.
func withoutRefusals(s *questions.State) *questions.State {
	out := *s
	out.Messages = slices.Clone(s.Messages)
	for i := range out.Messages {
		out.Messages[i].Refused = false
	}
	return &out
}

// maxDepth bounds how deep arguments may nest.
const maxDepth = 64

// checkTree refuses arguments that are no tree of JSON values.
func checkTree(v any, depth int) error {
	if depth > maxDepth {
		return ErrUnreadable
	}
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			if !utf8.ValidString(key) {
				return ErrUnreadable
			}
			if err := checkTree(item, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := checkTree(item, depth+1); err != nil {
				return err
			}
		}
	case string:
		if !utf8.ValidString(v) {
			return ErrUnreadable
		}
	case float64:
		if !isFinite(v) {
			return ErrUnreadable
		}
	case nil, bool, int, int64:
	default:
		return ErrUnreadable
	}
	return nil
}
