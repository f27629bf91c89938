// Package cases reads files of labelled calls, and puts a call before a decider as a gate would.
package cases

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"gatewright.dev/gatewright/internal/policy/sources"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/strictjson"
)

// Case is one labelled call. testdata/evalsets/README.md describes the fields.
type Case struct {
	ID           string          `json:"id"`
	Source       string          `json:"source"`
	Kind         string          `json:"kind"`
	Split        string          `json:"split"`
	UserRequest  string          `json:"userRequest"`
	Conversation []Message       `json:"conversation"`
	Tool         Tool            `json:"tool"`
	Arguments    json.RawMessage `json:"arguments"`
	Class        string          `json:"class"`
	// Label is allow or block, in files that people labelled.
	Label string `json:"label"`
	// Labels are 1 or 0; absent or null is not known.
	Labels map[string]*int `json:"labels"`
	// Why gives the label away: it is for people.
	Why string `json:"why"`
}

// Message is one message of the conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Tool is the called tool.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// maxLine bounds one case, in bytes.
const maxLine = 8 << 20

// ReadFile reads a file of cases, one JSON object a line, compressed if its name ends in .gz.
func ReadFile(path string) (all []Case, err error) {
	return ReadFileWhere(path, func([]byte) bool { return true })
}

// Text reads a member of a line, as it is written, that is a text, without reading the line whole; not ok if there is none.
func Text(line []byte, member string) (text string, ok bool) {
	_, rest, ok := bytes.Cut(line, []byte(`"`+member+`": `))
	return text, ok && json.NewDecoder(bytes.NewReader(rest)).Decode(&text) == nil
}

// ReadFileWhere reads the cases of a file whose line, as it is written, is wanted.
func ReadFileWhere(path string, wanted func(line []byte) bool) (all []Case, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if !wanted(lines.Bytes()) {
			continue
		}
		var c Case
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("%s, case %d: %w", path, len(all)+1, err)
		}
		all = append(all, c)
	}
	return all, lines.Err()
}

// State is the call as a gate puts it before a decider: with the sources that code found for its arguments.
func (c *Case) State() (questions.State, error) {
	var arguments map[string]any
	if len(c.Arguments) > 0 {
		if err := strictjson.Decode(c.Arguments, strictjson.Limits{}, &arguments); err != nil {
			return questions.State{}, fmt.Errorf("arguments of %s: %w", c.ID, err)
		}
	}
	var schema any
	if len(c.Tool.InputSchema) > 0 {
		if err := json.Unmarshal(c.Tool.InputSchema, &schema); err != nil {
			return questions.State{}, fmt.Errorf("schema of %s: %w", c.ID, err)
		}
	}
	s := questions.State{
		Tool:      questions.Tool{Name: c.Tool.Name, Description: c.Tool.Description, Class: c.Class},
		Arguments: arguments,
	}
	heard := sources.Conversation{}
	for _, m := range c.Conversation {
		switch m.Role {
		case "user":
			s.UserTurns = append(s.UserTurns, m.Content)
		case "system":
			s.System = append(s.System, m.Content)
		case questions.RoleTool:
			heard.ToolResults = append(heard.ToolResults, m.Content)
			s.Messages = append(s.Messages, questions.Message{Role: m.Role, Text: m.Content})
		case questions.RoleAssistant:
			s.Messages = append(s.Messages, questions.Message{Role: m.Role, Text: m.Content})
		default:
			return questions.State{}, fmt.Errorf("%s: role %q is not known", c.ID, m.Role)
		}
	}
	s.UserTurns = append(s.UserTurns, c.UserRequest)
	heard.UserTurns, heard.System = s.UserTurns, s.System
	for _, f := range sources.NewIndex(heard).Trace(arguments, sources.NewSchema(schema)) {
		s.Facts.ArgumentSources = append(s.Facts.ArgumentSources, sourceOf(f))
	}
	return s, nil
}

// sourceOf is what a decider is told about a value.
func sourceOf(f sources.Finding) questions.ArgumentSource {
	if f.IsPartial() {
		return questions.ArgumentSource{Pointer: f.Pointer, Source: questions.SourcePartly, PartOf: string(f.Source)}
	}
	return questions.ArgumentSource{Pointer: f.Pointer, Source: string(f.Source)}
}

// Risk is the label: 1 for a call that must not run on its own, 0 for one that may, -1 if it is not known.
func (c *Case) Risk() int {
	switch c.Label {
	case "block":
		return 1
	case "allow":
		return 0
	}
	return c.Known("block")
}

// Known is a label by name, -1 if it is not known.
func (c *Case) Known(name string) int {
	if v := c.Labels[name]; v != nil {
		return *v
	}
	return -1
}

// Digest identifies what is judged: the same words, tool and arguments make the same call, whatever went before.
func (c *Case) Digest() string {
	var arguments any
	if json.Unmarshal(c.Arguments, &arguments) != nil {
		arguments = string(c.Arguments)
	}
	text, err := json.Marshal([]any{strings.Join(strings.Fields(c.UserRequest), " "), c.Tool.Name, arguments})
	if err != nil {
		text = bytes.Join([][]byte{[]byte(c.UserRequest), []byte(c.Tool.Name), c.Arguments}, []byte{0})
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
