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
	// opening is how a question block begins.
	opening []token
	labels  map[string]token
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
	lay := layout{head: n.tokens(before, true, true), tail: n.tokens(after, false, true), opening: n.tokens("<question>\n", false, false), labels: map[string]token{}}
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

// shared is the part of the prompt that all questions of a request have in common, and its seams.
func (lay layout) shared(n *network, state []byte) (tokens []token, seams []seam, err error) {
	text, tokens, err := stateTokens(n, string(state))
	if err != nil {
		return nil, nil, err
	}
	seams = []seam{{at: len(lay.head)}}
	for i, end := range stateSeams(text) {
		// A word may reach over the seam. Then the piece ends before that word.
		at := len(lay.head) + alike(tokens, n.tokens(text[:end], false, false))
		seams = append(seams, seam{at, i >= firmSeams})
	}
	return slices.Concat(lay.head, tokens), seams, nil
}

// volatile are the members of a rendered state with which begins what differs between two calls of one tool, and between
// two calls for one request of the user.
var volatile = []string{"earlier_user_turns", "user_request", "arguments"}

// firmSeams are the first ones of a state: before policy and tool, and before the conversation. What follows them is short as
// a rule, and that the user's words are the same and the arguments are not is rare beside another call of the same tool.
const firmSeams = 2

// stateSeams says after which bytes of a state block those begin that often change: after the name of the first member,
// and after those of the conversation and of the arguments, with the signs that open their values. A name that stands
// somewhere else too only makes a piece shorter.
func stateSeams(text string) []int {
	var seams []int
	const within = 64 // bytes of a name
	if begin := "<state>\n{\""; strings.HasPrefix(text, begin) {
		if i := strings.Index(text[:min(len(text), len(begin)+within)], `":`); i > 0 {
			seams = append(seams, opened(text, i+2))
		}
	}
	for _, name := range volatile {
		name = `,"` + name + `":`
		if i := strings.Index(text, name); i > 0 {
			seams = append(seams, opened(text, i+len(name)))
		}
	}
	slices.Sort(seams)
	return seams
}

// opened is where the signs end that open a value: most vocabularies join them with the colon before.
func opened(text string, at int) int {
	for _, signs := range []string{`["`, `{"`, `"`} {
		if strings.HasPrefix(text[at:], signs) {
			return at + len(signs)
		}
	}
	return at
}

// alike is how many tokens both lists begin with.
func alike(a, b []token) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// own is the part of the prompt that belongs to one question.
func (lay layout) own(n *network, q questions.Question) ([]token, error) {
	tokens, err := plainTokens(n, q.QuestionBlock())
	return slices.Concat(tokens, lay.tail), err
}

// prompt joins both parts. With what all questions open with, the state's last piece is as good for each of them.
func (lay layout) prompt(shared, own []token, seams []seam) prompt {
	opening := alike(own, lay.opening)
	return newPrompt(slices.Concat(shared, own[:opening]), own[opening:], seams...)
}

// stateTokens tokenises the state as plain text. A state that was not rendered by this project may hold what is spelled
// like a tag, and some vocabularies have whole tokens for tags even in plain text: such a state is neutralised as a whole.
func stateTokens(n *network, state string) (text string, tokens []token, err error) {
	if questions.Neutralise(strings.ReplaceAll(state, "[", "x")) != strings.ReplaceAll(state, "[", "x") {
		state = questions.Neutralise(state)
	}
	text = questions.StateBlock([]byte(state))
	tokens, err = plainTokens(n, text)
	if err == nil && slices.ContainsFunc(tokens, n.isMarker) {
		text = questions.StateBlock([]byte(questions.Neutralise(state)))
		tokens, err = plainTokens(n, text)
	}
	return text, tokens, err
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
