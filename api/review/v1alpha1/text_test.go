package v1alpha1_test

import (
	"testing"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

func TestAnswersText(t *testing.T) {
	p, s := 0.934, 1.5
	got := review.AnswersText(map[string]review.Answer{
		"severity": {Score: &s, Probabilities: map[string]float64{"1": 1}}, "asked": {Probability: &p}, "verdict": {Choice: "allow"},
	})
	if want := "asked 0.93, severity 1.50, verdict allow"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := review.AnswersText(nil); got != "" {
		t.Errorf("no answers: %q", got)
	}
}
