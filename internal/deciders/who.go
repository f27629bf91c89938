package deciders

import (
	"context"
	"fmt"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/questions"
)

// triedQuestions are asked in turn until one is answered: some deciders answer few.
var triedQuestions = []string{"asked", "matches_request", "args_grounded"}

// Fingerprint asks a decider about a harmless call, to see who answers. An error is an *inference.Error.
func Fingerprint(ctx context.Context, spec *v1alpha1.DeciderModelSpec, d inference.Decider) (v1alpha1.Fingerprint, error) {
	list := triedQuestions
	if x := spec.External; x != nil && (x.Protocol == v1alpha1.ProtocolOllamaVerdict || x.Protocol == v1alpha1.ProtocolOpenAIVerdict) {
		list = []string{inference.VerdictQuestion}
	}
	var last error
	for _, name := range list {
		q, ok := questions.Builtin(name)
		if !ok {
			return "", fmt.Errorf("question %s is not built in", name)
		}
		result, err := d.Decide(ctx, inference.Request{Questions: []questions.Question{q}, State: questions.State{
			Tool: questions.Tool{Name: "clock.read", Class: "ReadOnly"}, Arguments: map[string]any{"zone": "UTC"},
			UserTurns: []string{"What time is it in UTC?"},
		}})
		switch {
		case err == nil:
			return v1alpha1.Fingerprint(result.Fingerprint), nil
		case inference.ReasonOf(err) != inference.QuestionNotSupported && inference.ReasonOf(err) != inference.LowCoverage:
			return "", err
		}
		last = err
	}
	return "", last
}
