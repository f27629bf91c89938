package inference

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/inference/judge"
	"gatewright.dev/gatewright/internal/questions"
)

func embedded(tb testing.TB) *Embedded {
	tb.Helper()
	e, err := LoadEmbedded()
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func TestEmbeddedIsWhatItsFingerprintSays(t *testing.T) {
	e := embedded(t)
	if e.Fingerprint() != EmbeddedFingerprint() || e.Name() != EmbeddedName {
		t.Errorf("loaded %s %s, bundled %s %s", e.Name(), e.Fingerprint(), EmbeddedName, EmbeddedFingerprint())
	}
	other := embeddedFingerprint(EmbeddedName, strings.Repeat("0", 64))
	if other == e.Fingerprint() || len(e.ModelHash()) != 64 {
		t.Errorf("another file has the same fingerprint %s, or %q is no hash", other, e.ModelHash())
	}
}

func TestEmbeddedAnswersWhatItSupports(t *testing.T) {
	e := embedded(t)
	for _, name := range questions.BuiltinNames() {
		got, err := e.Decide(t.Context(), request(t, name))
		if !slices.Contains(judge.Supported(), name) {
			if ReasonOf(err) != QuestionNotSupported || got.Answers != nil {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			continue
		}
		if err != nil || got.Model != EmbeddedName || got.Fingerprint != e.Fingerprint() {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		again, err := e.Decide(t.Context(), request(t, name))
		if diff := cmp.Diff(got, again); diff != "" || err != nil {
			t.Errorf("%s was answered otherwise the second time: %v\n%s", name, err, diff)
		}
	}
}

func TestEmbeddedRefusesWhole(t *testing.T) {
	e := embedded(t)
	tests := map[string]struct {
		change func(*Request)
		want   Reason
	}{
		"a question that it does not answer beside one that it does": {func(r *Request) {
			q, _ := questions.Builtin("declined")
			r.Questions = append(r.Questions, q)
		}, QuestionNotSupported},
		"another question under the name of a built-in one": {func(r *Request) { r.Questions[0].Instructions += " Or not?" }, QuestionNotSupported},
		"a question asked twice":                            {func(r *Request) { r.Questions = append(r.Questions, r.Questions[0]) }, QuestionNotSupported},
		"no question":                                       {func(r *Request) { r.Questions = nil }, QuestionNotSupported},
		"arguments that are no JSON":                        {func(r *Request) { r.State.Arguments = map[string]any{"a": struct{}{}} }, StateUnreadable},
		"arguments that are not UTF-8":                      {func(r *Request) { r.State.Arguments = map[string]any{"a": "\xff"} }, StateUnreadable},
		"words that are not UTF-8":                          {func(r *Request) { r.State.UserTurns = []string{"\xff"} }, StateUnreadable},
		"more words than it numbers": {func(r *Request) {
			var b strings.Builder
			for i := range 4000 {
				b.WriteString("w" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + "q ")
			}
			r.State.Arguments = map[string]any{"text": b.String()}
		}, TooLong},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := request(t, "matches_request")
			tt.change(&r)
			if got, err := e.Decide(t.Context(), r); ReasonOf(err) != tt.want || got.Answers != nil {
				t.Errorf("Decide() = %+v, %v; want %s", got, err, tt.want)
			}
		})
	}
}
