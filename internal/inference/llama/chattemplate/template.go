// Package chattemplate renders the chat templates that model files carry, for one short conversation. It knows the part of
// the Jinja language that such templates use and refuses everything else: a prompt that is nearly right moves answers
// without anybody noticing. It reads no clock, so that a prompt is the same tomorrow.
package chattemplate

import (
	"errors"
	"fmt"
	"strings"
)

// Limits of a template and of what it may do.
const (
	maxTemplate = 256 << 10
	maxOutput   = 1 << 20
	maxSteps    = 200_000
	maxDepth    = 100
)

// ErrNotSupported is wrapped by every error of Parse and Render: the template uses what is not known here, or refuses the
// conversation itself.
var ErrNotSupported = errors.New("chat template is not supported")

// Template is a parsed chat template. It may be rendered any number of times.
type Template struct{ body []node }

// Message is one turn of a conversation.
type Message struct{ Role, Content string }

// Conversation is what a template is rendered for. The reply of the model comes next, without its thinking aloud.
type Conversation struct {
	Messages []Message
	// BOS and EOS are the texts of the model's first and last token, empty if it has none.
	BOS, EOS string
}

// Parse reads a template.
func Parse(text string) (*Template, error) {
	if len(text) > maxTemplate {
		return nil, notSupported("it has %d bytes", len(text))
	}
	// A single line break at the end is not part of the template, as its language has it.
	pieces, err := split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"))
	if err != nil {
		return nil, err
	}
	p := parser{pieces: pieces}
	body, end, err := p.body(0)
	if err != nil {
		return nil, err
	}
	if end != "" {
		return nil, notSupported("%s closes nothing", end)
	}
	return &Template{body: body}, nil
}

// Render writes the conversation and the beginning of the model's reply.
func (t *Template) Render(c Conversation) (string, error) {
	messages := make([]any, 0, len(c.Messages))
	for _, m := range c.Messages {
		messages = append(messages, map[string]any{"role": m.Role, "content": m.Content})
	}
	s := &state{scopes: []map[string]any{{
		"messages":              messages,
		"add_generation_prompt": true,
		"enable_thinking":       false,
		"bos_token":             c.BOS,
		"eos_token":             c.EOS,
	}}}
	if err := s.run(t.body); err != nil {
		return "", err
	}
	return s.out.String(), nil
}

func notSupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotSupported, fmt.Sprintf(format, args...))
}
