package llama

import (
	"slices"
	"strings"

	native "github.com/hybridgroup/yzma/pkg/llama"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/inference/llama/chattemplate"
	"gatewright.dev/gatewright/internal/questions"
)

// layout is what the prompts of a loaded model have in common: the tokens before the state, those after the question, and
// the token of each letter right after them.
type layout struct {
	head, tail []token
	labels     map[string]token
}

// marker stands for the state and question while the chat template is rendered. It holds nothing that a template would
// escape or trim.
const marker = "GATEWRIGHT-STATE-AND-QUESTION"

func newLayout(n *network, template string) (layout, error) {
	before, after, err := frame(n, template)
	if err != nil {
		return layout{}, err
	}
	after += questions.Cue
	lay := layout{head: n.tokens(before, true, true), tail: n.tokens(after, false, true), labels: map[string]token{}}
	if native.VocabGetAddEOS(n.vocab) && len(lay.head) > 0 && lay.head[len(lay.head)-1] == native.VocabEOS(n.vocab) {
		lay.head = lay.head[:len(lay.head)-1] // the text does not end here
	}
	taken := map[token]bool{}
	for c := 'A'; c <= 'Z'; c++ {
		label := string(c)
		with := n.tokens(after+label, false, true)
		if len(with) != len(lay.tail)+1 || !slices.Equal(with[:len(lay.tail)], lay.tail) || taken[with[len(lay.tail)]] {
			return layout{}, refuse(LabelsNotSupported, "letter %s is not one token of its own where the answer is read", label)
		}
		lay.labels[label] = with[len(lay.tail)]
		taken[lay.labels[label]] = true
	}
	return lay, nil
}

// frame renders the model's chat template around state and question. A model without one reads plain text.
func frame(n *network, template string) (before, after string, err error) {
	if template == "" {
		return questions.Instruction + "\n\n", "", nil
	}
	t, err := chattemplate.Parse(template)
	if err != nil {
		return "", "", refuse(TemplateNotSupported, "%v", err)
	}
	bos := n.special(native.VocabBOS(n.vocab))
	text, err := t.Render(chattemplate.Conversation{
		Messages: []chattemplate.Message{{Role: "user", Content: questions.Instruction + "\n\n" + marker}},
		BOS:      bos,
		EOS:      n.special(native.VocabEOS(n.vocab)),
	})
	if err != nil {
		return "", "", refuse(TemplateNotSupported, "%v", err)
	}
	if strings.Count(text, marker) != 1 || strings.Contains(text, "\x00") {
		return "", "", refuse(TemplateNotSupported, "the chat template does not show the message exactly once")
	}
	if native.VocabGetAddBOS(n.vocab) && bos != "" {
		text = strings.TrimPrefix(text, bos) // the tokenizer puts it there
	}
	before, after, _ = strings.Cut(text, marker)
	return before, after, nil
}

// shared is the part of the prompt that all questions of a request have in common.
func (lay layout) shared(n *network, state []byte) ([]token, error) {
	tokens, err := stateTokens(n, string(state))
	return slices.Concat(lay.head, tokens), err
}

// own is the part of the prompt that belongs to one question.
func (lay layout) own(n *network, q questions.Question) ([]token, error) {
	tokens, err := plainTokens(n, q.QuestionBlock())
	return slices.Concat(tokens, lay.tail), err
}

// stateTokens tokenises the state as plain text. A state that was not rendered by this project may hold what is spelled
// like a tag, and some vocabularies have whole tokens for tags even in plain text: such a state is neutralised as a whole.
func stateTokens(n *network, state string) ([]token, error) {
	if questions.Neutralise(strings.ReplaceAll(state, "[", "x")) != strings.ReplaceAll(state, "[", "x") {
		state = questions.Neutralise(state)
	}
	tokens, err := plainTokens(n, questions.StateBlock([]byte(state)))
	if err == nil && slices.ContainsFunc(tokens, n.isMarker) {
		tokens, err = plainTokens(n, questions.StateBlock([]byte(questions.Neutralise(state))))
	}
	return tokens, err
}

// plainTokens never gives a control token: none is looked for, and if there were one, the text would be refused. So is a
// text with a sign that the vocabulary lacks.
func plainTokens(n *network, text string) ([]token, error) {
	tokens := n.tokens(text, false, false)
	if len(tokens) == 0 || slices.ContainsFunc(tokens, n.isForbidden) {
		return nil, &engine.Error{Reason: engine.Unreadable, Detail: "the text cannot be written in plain tokens of this model"}
	}
	return tokens, nil
}
