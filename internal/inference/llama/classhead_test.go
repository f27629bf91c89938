package llama

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/questions"
)

func builtin(t testing.TB, name string) questions.Question {
	t.Helper()
	q, ok := questions.Builtin(name)
	if !ok {
		t.Fatalf("no built-in question %s", name)
	}
	return q
}

func TestClassHeadAnswersBuiltInQuestionsInOneForward(t *testing.T) {
	e := use(t, minilm)
	asked := []questions.Question{builtin(t, "moves_money"), builtin(t, "asked")}
	both, err := e.Ask(t.Context(), []byte(goldenState), asked)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Ask(t.Context(), []byte(`{"user_request":"something else"}`), asked[:1]); err != nil {
		t.Fatal(err)
	}
	for i, q := range asked {
		one, err := e.Ask(t.Context(), []byte(goldenState), []questions.Question{q})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(bits(engine.Reply{Distributions: both.Distributions[i : i+1]}), bits(one)); diff != "" {
			t.Errorf("%s alone has other bits than together:\n%s", q.Name, diff)
		}
		if p := one.Distributions[0].Probabilities; p[0] <= 0 || p[0] >= 1 || math.Abs(p[0]+p[1]-1) > 1e-12 {
			t.Errorf("%s: %v is no distribution", q.Name, p)
		}
		if one.PromptTokens != both.PromptTokens {
			t.Errorf("%d tokens for one question, %d for two", one.PromptTokens, both.PromptTokens)
		}
	}
	if diff := cmp.Diff([]string{"asked", "matches_request", "exceeds_scope", "declined", "same_item", "deletes_data", "moves_money", "leaves_the_system"}, e.Info().Supports); diff != "" {
		t.Error(diff)
	}
}

func TestClassHeadRefusesOtherQuestions(t *testing.T) {
	e := use(t, minilm)
	reworded := builtin(t, "asked")
	reworded.Instructions = "Is it?"
	for name, q := range map[string]questions.Question{
		"one of its own making":          short("mail"),
		"a built-in one without a class": builtin(t, "needs_clarify"),
		"a built-in one in other words":  reworded,
		"a built-in one of another type": builtin(t, "severity"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := e.Ask(t.Context(), []byte(goldenState), []questions.Question{q})
			var ee *engine.Error
			if !errors.As(err, &ee) || ee.Reason != engine.NotSupported {
				t.Errorf("got %v, want %s", err, engine.NotSupported)
			}
		})
	}
}

// TestClassHeadComputesWhatTheWeightsSay compares with a forward pass in double precision that was written down in NumPy
// apart from this code, over the same file and tokens.
func TestClassHeadComputesWhatTheWeightsSay(t *testing.T) {
	e := use(t, minilm)
	var asked []questions.Question
	for _, name := range e.Info().Supports {
		asked = append(asked, builtin(t, name))
	}
	reply, err := e.Ask(t.Context(), []byte(goldenState), asked)
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{-0.22458139, -0.1761499, -0.22153397, -0.08733534, -0.15369442, 0.14271749, 0.11051343, -0.35335431}
	for i, score := range want {
		// The file's weights have 16 bits, and each variant of the CPU adds up in another order.
		if got := reply.Distributions[i].Probabilities[0]; math.Abs(got-sigmoid(score, 1)) > 2e-3 {
			t.Errorf("%s: P(yes) %.5f, want %.5f", asked[i].Name, got, sigmoid(score, 1))
		}
	}
}
