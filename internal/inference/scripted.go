package inference

import (
	"context"
	"slices"
	"sync"

	"gatewright.dev/gatewright/internal/questions"
)

// Scripted is a decider whose answers are written down beforehand: policy tests run against it. It is as strict as the
// others, so a script with half an answer fails like a server that gives one.
type Scripted struct {
	model, fingerprint string

	mu       sync.Mutex
	answers  questions.Answers
	failing  Reason
	requests []Request
}

// ScriptedModel is the model name that a Scripted gives.
const ScriptedModel = "scripted"

// NewScripted returns a decider that gives these answers. Its fingerprint is the given one, or the same for all scripts.
func NewScripted(answers questions.Answers, fingerprint string) *Scripted {
	if fingerprint == "" {
		fingerprint = fingerprintOf(ScriptedModel)
	}
	s := &Scripted{model: ScriptedModel, fingerprint: fingerprint}
	s.SetAnswers(answers)
	return s
}

// SetAnswers replaces the script. An answer without coverage gets the coverage of one that is not known, 1.
func (s *Scripted) SetAnswers(answers questions.Answers) {
	copied := make(questions.Answers, len(answers))
	for name, a := range answers {
		if a.Coverage == 0 {
			a.Coverage = 1
		}
		copied[name] = a
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = copied
}

// FailWith makes every request fail with this reason; the empty reason ends that.
func (s *Scripted) FailWith(reason Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = reason
}

// Requests returns what was asked so far.
func (s *Scripted) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Decide gives the scripted answers, or QuestionNotSupported if one is missing.
func (s *Scripted) Decide(ctx context.Context, r Request) (Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if ctx.Err() != nil {
		return Result{}, asError(ctx, ctx.Err())
	}
	if s.failing != "" {
		return Result{}, fail(s.failing, "scripted")
	}
	return decide(ctx, r, nil, s.ask)
}

func (s *Scripted) ask(_ context.Context, _ []byte, group []questions.Question) (Result, error) {
	result := Result{Answers: questions.Answers{}, Model: s.model, Fingerprint: s.fingerprint}
	for _, q := range group {
		a, ok := s.answers[q.Name]
		if !ok {
			return Result{}, fail(QuestionNotSupported, "the script has no answer to %s", q.Name)
		}
		result.Answers[q.Name] = a
	}
	return result, nil
}
