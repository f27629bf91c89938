package inference

import (
	"context"
	"path"
	"strings"
	"sync"

	"gatewright.dev/gatewright/internal/questions"
)

// layout is what the prompts of one loaded model have in common: the tokens before the state, those after the question,
// and the token of each label right after them.
type layout struct {
	props       props
	head, tail  []int
	labels      map[string]int
	byID        map[int]string
	fingerprint string
}

// props says what a llama-server has loaded.
type props struct {
	Path     string `json:"model_path"`
	Alias    string `json:"model_alias"`
	Build    string `json:"build_info"`
	Template string `json:"chat_template"`
}

type layoutCache struct {
	mu      sync.Mutex
	current *layout
}

func (lay *layout) isNamed(name string) bool { return lay.props.isNamed(name) }

func (p props) isNamed(name string) bool {
	return name == p.Alias || name == p.Path || name == path.Base(p.Path)
}

// layout looks at what is loaded before each request, since a restart may bring another model under the same address,
// and lays the prompt out anew only when that has changed.
func (l *LlamaServer) layout(ctx context.Context) (*layout, error) {
	raw, err := l.endpoint.get(ctx, "/props")
	if err != nil {
		return nil, err
	}
	var p props
	if err := decode(raw, &p); err != nil {
		return nil, err
	}
	if want := l.options.expected(); !p.isNamed(want) {
		return nil, fail(ModelMismatch, "the server has another model loaded than the pinned one")
	}
	l.layouts.mu.Lock()
	current := l.layouts.current
	l.layouts.mu.Unlock()
	if current != nil && current.props == p {
		return current, nil
	}
	fresh, err := l.newLayout(ctx, p)
	if err != nil {
		return nil, afterSending(err)
	}
	l.layouts.mu.Lock()
	l.layouts.current = fresh
	l.layouts.mu.Unlock()
	return fresh, nil
}

// marker stands for the state and question while the server renders its chat template. It holds nothing that a template
// would escape or trim.
const marker = "GATEWRIGHT-STATE-AND-QUESTION"

func (l *LlamaServer) newLayout(ctx context.Context, p props) (*layout, error) {
	before, after, err := l.applyTemplate(ctx)
	if err != nil {
		return nil, err
	}
	lay := &layout{props: p, labels: map[string]int{}, byID: map[int]string{}}
	if lay.head, err = l.tokenize(ctx, before, true, true); err != nil {
		return nil, err
	}
	after += questions.Cue
	if lay.tail, err = l.tokenize(ctx, after, false, true); err != nil {
		return nil, err
	}
	for c := 'A'; c <= 'Z'; c++ {
		if err := l.findLabel(ctx, lay, after, string(c)); err != nil {
			return nil, err
		}
	}
	lay.fingerprint = l.options.fingerprint("llama-server", p.Build, p.Template)
	return lay, nil
}

// findLabel keeps a label only if, where the answer is read, it is exactly one more token.
func (l *LlamaServer) findLabel(ctx context.Context, lay *layout, after, label string) error {
	with, err := l.tokenize(ctx, after+label, false, true)
	if err != nil {
		return err
	}
	n := len(lay.tail)
	if len(with) != n+1 {
		return nil
	}
	for i, id := range lay.tail {
		if with[i] != id {
			return nil
		}
	}
	if _, taken := lay.byID[with[n]]; !taken {
		lay.labels[label], lay.byID[with[n]] = with[n], label
	}
	return nil
}

func (l *LlamaServer) applyTemplate(ctx context.Context) (before, after string, err error) {
	body, err := encode(map[string]any{
		"messages":             []map[string]string{{"role": "user", "content": questions.Instruction + "\n\n" + marker}},
		"chat_template_kwargs": map[string]bool{"enable_thinking": false},
	})
	if err != nil {
		return "", "", err
	}
	raw, err := l.endpoint.post(ctx, "/apply-template", body, maxReply)
	if err != nil {
		return "", "", err
	}
	var reply struct {
		Prompt string `json:"prompt"`
	}
	if err := decode(raw, &reply); err != nil {
		return "", "", err
	}
	if strings.Count(reply.Prompt, marker) != 1 {
		return "", "", fail(BadReply, "the chat template does not show the message exactly once")
	}
	before, after, _ = strings.Cut(reply.Prompt, marker)
	return before, after, nil
}

// tokenize turns text into token ids. Only text that this package or the chat template wrote may have special tokens.
func (l *LlamaServer) tokenize(ctx context.Context, text string, addSpecial, parseSpecial bool) ([]int, error) {
	body, err := encode(map[string]any{"content": text, "add_special": addSpecial, "parse_special": parseSpecial})
	if err != nil {
		return nil, err
	}
	raw, err := l.endpoint.post(ctx, "/tokenize", body, maxReply)
	if err != nil {
		return nil, err
	}
	var reply struct {
		Tokens []int `json:"tokens"`
	}
	if err := decode(raw, &reply); err != nil {
		return nil, err
	}
	if len(reply.Tokens) == 0 && text != "" {
		return nil, fail(BadReply, "the server found no tokens in a text")
	}
	return reply.Tokens, nil
}
