package llama

import (
	"context"
	"math"
	"slices"

	native "github.com/hybridgroup/yzma/pkg/llama"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/questions"
)

// checkClasses accepts labels that are the names of built-in questions with yes or no as their answer, each once.
func checkClasses(labels []string) error {
	seen := map[string]bool{}
	for _, label := range labels {
		q, ok := questions.Builtin(label)
		if !ok || q.Type != questions.YesNo || seen[label] {
			return refuse(LabelsNotSupported, "class %q is no built-in question with yes or no, or is there twice", printable(label))
		}
		seen[label] = true
	}
	return nil
}

// checkClasses compares the engine's view of the head with the header's.
func (n *network) checkClasses(want int) error {
	if got := int(native.ModelNClsOut(n.model)); got != want {
		return refuse(ModelMalformed, "the engine sees %d classes, the header has %d", got, want)
	}
	return nil
}

// askClassHead reads the whole state once. What the model was trained on is the question's meaning: only the built-in
// wording is answered.
func (e *Engine) askClassHead(ctx context.Context, state []byte, asked []questions.Question) (engine.Reply, error) {
	classes := make([]int, len(asked))
	for i, q := range asked {
		classes[i] = slices.Index(e.description.classes, q.Name)
		if classes[i] < 0 || !isBuiltin(q) {
			return engine.Reply{}, &engine.Error{Reason: engine.NotSupported, Question: q.Name, Detail: "the model was not trained on this question"}
		}
	}
	tokens := e.network.tokens(string(state), true, false)
	if len(tokens) > e.info.ContextTokens {
		return engine.Reply{}, tooLong("", len(tokens), e.info.ContextTokens)
	}
	// The tokenizer itself adds the first and the last token, and nothing in the text can become another of their kind.
	if len(tokens) < 3 || slices.ContainsFunc(tokens[1:len(tokens)-1], e.network.isForbidden) {
		return engine.Reply{}, &engine.Error{Reason: engine.Unreadable, Detail: "the state cannot be written in plain tokens of this model"}
	}
	if err := ctx.Err(); err != nil {
		return engine.Reply{}, err
	}
	scores, err := e.network.classify(tokens, len(e.description.classes))
	if err != nil {
		return engine.Reply{}, e.lost(ctx, err)
	}
	reply := engine.Reply{PromptTokens: len(tokens)}
	for i, q := range asked {
		yes := sigmoid(float64(scores[classes[i]]), e.temperature(q.Type))
		if math.IsNaN(yes) {
			return engine.Reply{}, &engine.Error{Reason: engine.Failed, Question: q.Name, Detail: "the model gave a score that is no number"}
		}
		reply.Distributions = append(reply.Distributions, engine.Distribution{Probabilities: []float64{yes, 1 - yes}, Coverage: 1})
	}
	return reply, nil
}

func isBuiltin(q questions.Question) bool {
	b, ok := questions.Builtin(q.Name)
	return ok && b.Type == q.Type && b.QuestionBlock() == q.QuestionBlock()
}
