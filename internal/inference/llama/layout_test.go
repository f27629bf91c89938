package llama

import (
	"errors"
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
			shared, err1 := e.layout.shared(e.network, []byte(`{"a":1}`))
			own, err2 := e.layout.own(e.network, q)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			if diff := cmp.Diff(want, e.network.text(newPrompt(shared, own).tokens)); diff != "" {
				t.Error(diff)
			}
		})
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
