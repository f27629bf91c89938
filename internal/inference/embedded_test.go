package inference

import (
	"testing"

	"gatewright.dev/gatewright/internal/questions"
)

func TestEmbeddedV0RanksByTheWorstSource(t *testing.T) {
	src := func(pairs ...string) (all []questions.ArgumentSource) {
		for i := 0; i < len(pairs); i += 2 {
			all = append(all, questions.ArgumentSource{Pointer: pairs[i], Source: pairs[i+1]})
		}
		return all
	}
	ab := map[string]any{"a": "x", "b": int64(2)}
	nested := map[string]any{"a/b": map[string]any{"c~d": []any{"x", nil}}, "empty": []any{}}
	tests := map[string]struct {
		arguments any
		sources   []questions.ArgumentSource
		want      float64
	}{
		"all from user, facts and schema":    {ab, src("/a", "User", "/b", "Facts", "/c", "Schema"), rankGrounded},
		"one from a tool":                    {ab, src("/a", "User", "/b", "Tool"), rankInDoubt},
		"one from nowhere":                   {ab, src("/a", "User", "/b", "Nowhere"), rankNowhere},
		"nowhere is worse than a tool":       {ab, src("/a", "Tool", "/b", "Nowhere"), rankNowhere},
		"a source that nobody knows":         {ab, src("/a", "User", "/b", "Dream"), rankNowhere},
		"a value without a source":           {ab, src("/a", "User"), rankNowhere},
		"no sources at all":                  {ab, nil, rankNowhere},
		"no arguments":                       {map[string]any{}, nil, rankGrounded},
		"escaped pointers":                   {nested, src("/a~1b/c~0d/0", "User", "/a~1b/c~0d/1", "Schema"), rankGrounded},
		"a source of the whole list":         {nested, src("/a~1b/c~0d", "User"), rankGrounded},
		"a source of the list's neighbour":   {nested, src("/a~1b/c~0", "User"), rankNowhere},
		"a bare value is its own argument":   {"x", src("", "User"), rankGrounded},
		"a bare value without source":        {"x", nil, rankNowhere},
		"unknown arguments are seen nowhere": {nil, nil, rankNowhere},
		"a stray source counts all the same": {map[string]any{}, src("/gone", "Nowhere"), rankNowhere},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := request(t, "args_grounded")
			r.State.Arguments, r.State.Facts.ArgumentSources = tt.arguments, tt.sources
			got, err := NewEmbeddedV0().Decide(t.Context(), r)
			if err != nil || got.Answers["args_grounded"].Probability != tt.want {
				t.Errorf("Decide() = %+v, %v; want %v", got.Answers, err, tt.want)
			}
			if got.Model != EmbeddedV0Name || got.Fingerprint != NewEmbeddedV0().Fingerprint() {
				t.Errorf("result = %+v", got)
			}
		})
	}
}

func TestEmbeddedV0AnswersAllOrNothing(t *testing.T) {
	for _, name := range questions.BuiltinNames() {
		asked := []string{"args_grounded", name}
		if name == "args_grounded" {
			continue
		}
		if got, err := NewEmbeddedV0().Decide(t.Context(), request(t, asked...)); ReasonOf(err) != QuestionNotSupported || got.Answers != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	r := request(t, "verdict")
	r.Questions[0].Name = "args_grounded"
	if _, err := NewEmbeddedV0().Decide(t.Context(), r); ReasonOf(err) != QuestionNotSupported {
		t.Errorf("a Choice of that name: %v", err)
	}
}

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
