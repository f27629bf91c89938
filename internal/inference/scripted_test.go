package inference

import (
	"testing"

	"gatewright.dev/gatewright/internal/questions"
)

func TestScripted(t *testing.T) {
	s := NewScripted(questions.Answers{"asked": {Type: questions.YesNo, Probability: 0.9}, "declined": {Type: questions.Choice}}, "")
	got, err := s.Decide(t.Context(), request(t, "asked"))
	if err != nil || got.Answers["asked"].Probability != 0.9 || got.Model != ScriptedModel || got.Fingerprint == "" {
		t.Errorf("Decide() = %+v, %v", got, err)
	}
	if _, err := s.Decide(t.Context(), request(t, "asked", "same_item")); ReasonOf(err) != QuestionNotSupported {
		t.Errorf("a missing answer: %v", err)
	}
	if _, err := s.Decide(t.Context(), request(t, "declined")); ReasonOf(err) != BadReply {
		t.Errorf("an answer of a wrong type: %v", err)
	}
	for _, reason := range Reasons() {
		s.FailWith(reason)
		if got, err := s.Decide(t.Context(), request(t, "asked")); ReasonOf(err) != reason || got.Answers != nil {
			t.Errorf("Decide() = %+v, %v; want %s", got, err, reason)
		}
	}
	s.FailWith("")
	s.SetAnswers(questions.Answers{"asked": {Type: questions.YesNo, Probability: 0.2}})
	if got, err := s.Decide(t.Context(), request(t, "asked")); err != nil || got.Answers["asked"].Probability != 0.2 {
		t.Errorf("Decide() = %+v, %v", got, err)
	}
	if n := len(s.Requests()); n != 4+len(Reasons()) {
		t.Errorf("%d requests recorded", n)
	}
}
