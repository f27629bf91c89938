package llama

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/questions"
)

func TestPromptIsLaidOutAsTheModelWasTrained(t *testing.T) {
	q := questions.Question{Name: "q", Type: questions.YesNo, Instructions: "Is it late?"}
	const body = "\n\n<state>\n{\"a\":1}\n</state>\n\n<question>\nIs it late?\n</question>\n<options>\nA) yes\nB) no\n</options>\n"
	tests := map[string]string{
		smollm2: "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n<|im_start|>user\n" +
			questions.Instruction + body + "<|im_end|>\n<|im_start|>assistant\nAnswer:\n",
		gemma: "<bos>" + questions.Instruction + body + "Answer:\n", // a file without a chat template
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			e := use(t, name)
			shared, seams, err1 := e.layout.shared(e.network, []byte(`{"a":1}`))
			own, err2 := e.layout.own(e.network, q)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			if diff := cmp.Diff(want, e.network.text(e.layout.prompt(shared, own, seams).tokens)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// seamState is rendered as the gate does it, with everything that a state can hold.
func seamState(t *testing.T, note, turn string, order int) string {
	t.Helper()
	state, err := questions.RenderState(questions.State{
		Tool:      questions.Tool{Name: "refund", Server: "shop", Class: "money", Note: note, Description: "Refunds an order."},
		System:    []string{"You help."},
		UserTurns: []string{"Hello.", turn},
		Arguments: map[string]any{"order": order, "user_request": "x"},
		Facts:     questions.Facts{ScopesHeld: []string{"refunds"}, SchemaValid: questions.True},
	})
	if err != nil {
		t.Fatal(err)
	}
	return questions.StateBlock(state)
}

func TestSeamsStandWhereStatesPart(t *testing.T) {
	text := seamState(t, "Be brief.", `Say ,"arguments": twice.`, 7)
	var parts []string
	from := 0
	for _, at := range append(stateSeams(text), len(text)) {
		parts = append(parts, text[from:at])
		from = at
	}
	want := []string{
		`"policy_note":"`, `"earlier_user_turns":["`, `"user_request":"`, `"arguments":{"`, "</state>\n\n",
	}
	if len(parts) != len(want) {
		t.Fatalf("the state has the parts %q", parts)
	}
	for i := range want {
		if !strings.HasSuffix(parts[i], want[i]) {
			t.Errorf("part %d ends %q, want %q", i, parts[i], want[i])
		}
	}
	for name, tc := range map[string]struct {
		text string
		want []int
	}{
		"text that is no JSON":                 {"<state>\nHello.\n</state>\n\n", nil},
		"a first name that has no end":         {"<state>\n{\"" + strings.Repeat("x", 200) + "\":1}", nil},
		"a member of the call's name as first": {"<state>\n{\"proposed_call\":1}", []int{25}},
		"values that begin with signs":         {"<state>\n{\"a\":[[1]],\"user_request\":\"[\",\"arguments\":{}}", []int{13, 35, 50}},
	} {
		if diff := cmp.Diff(tc.want, stateSeams(tc.text)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What is the same in two calls of one tool, and in two calls for one request of some length, is computed once, to the last
// word or two.
func TestTheWholeBeginningIsUsedAgain(t *testing.T) {
	e := use(t, smollm2)
	laid := func(note, turn string, order int) prompt {
		state := strings.TrimSuffix(strings.TrimPrefix(seamState(t, note, turn, order), "<state>\n"), "\n</state>\n\n")
		shared, seams, err := e.layout.shared(e.network, []byte(state))
		own, err2 := e.layout.own(e.network, short("money"))
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		return e.layout.prompt(shared, own, seams)
	}
	first := laid("Be brief.", "Refund order 7.", 7)
	long := strings.Repeat("Please do it as soon as you can. ", 9) + "Now order 8."
	for _, next := range []struct {
		what, note, turn string
		order            int
		again            int // tokens that are the same and yet computed again, at most
	}{
		{"another tool", "Do not guess.", "Refund order 7.", 7, 3},
		{"another request", "Do not guess.", "Now order 8.", 8, 8},
		{"another call for a short request", "Do not guess.", "Now order 8.", 9, tile},
		{"a long request", "Do not guess.", long, 9, 16},
		{"another call for a long request", "Do not guess.", long, 10, 3},
	} {
		second := laid(next.note, next.turn, next.order)
		s := sequence(first)
		reused := s.keep(s.common(second))
		if both := alike(first.tokens, second.tokens); reused > both || reused < both-next.again {
			t.Errorf("%s: %d tokens are the same, %d were used again", next.what, both, reused)
		}
		first = second
	}
}

// Each question of a request but the first computes no more than its own words.
func TestFurtherQuestionsComputeTheirOwnWordsOnly(t *testing.T) {
	e := use(t, smollm2)
	var own [2]int
	asked := []questions.Question{short("mail"), short("money")}
	for i, q := range asked {
		tokens, err := e.layout.own(e.network, q)
		if err != nil {
			t.Fatal(err)
		}
		own[i] = len(tokens)
	}
	forget(e)
	reply, err := e.Ask(t.Context(), []byte(`{"a":1}`), asked)
	if err != nil {
		t.Fatal(err)
	}
	prompt := (reply.PromptTokens - own[0] - own[1]) / 2
	if opening := reply.ReusedTokens - prompt; opening < 2 || opening > len(e.layout.opening) {
		t.Errorf("%d tokens were used again, %d stand before the question", reply.ReusedTokens, prompt)
	}
}

func TestALabelThatIsHardlyConsideredIsNoAnswer(t *testing.T) {
	e := use(t, smollm2)
	floor := e.minCoverage
	e.minCoverage = 0.999
	defer func() { e.minCoverage = floor }()
	reply, err := e.Ask(t.Context(), []byte(goldenState), []questions.Question{goldenQuestion})
	var ee *engine.Error
	if !errors.As(err, &ee) || ee.Reason != engine.LowCoverage || ee.Question != "golden" || len(reply.Distributions) != 0 {
		t.Errorf("got %v", err)
	}
}
