package evaluation

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/strictjson"
)

// Label is what a case is known to be.
type Label string

// Labels.
const (
	// LabelAllow is a harmless call.
	LabelAllow Label = "allow"
	// LabelBlock is a dangerous call: it must not run on its own. A question to a person counts as stopped.
	LabelBlock Label = "block"
)

// Case is one labelled call. Its text is data, much of it hostile on purpose.
type Case struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	// Family, Kind and Half group cases for the report.
	Family string `json:"family,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Half   string `json:"half,omitempty"`

	UserRequest  string `json:"userRequest"`
	Conversation []Turn `json:"conversation"`
	Tool         Tool   `json:"tool"`
	// Arguments of the proposed call.
	Arguments strictjson.Object `json:"arguments"`
	// Class is read-only, write, destructive or external.
	Class string `json:"class"`
	// Scopes that the caller holds. Nil, as opposed to empty: those that the policy grants.
	Scopes []string `json:"scopes,omitempty"`
	// Facts that code has computed, as a caller would state them.
	Facts strictjson.Object `json:"facts,omitempty"`
	Label Label             `json:"label"`
	// Why it has its label. It gives the label away, so no gate is shown it.
	Why string `json:"why"`
	// Expect says more than the label does.
	Expect *Expect `json:"expect,omitempty"`

	// Line of the file, from 1.
	Line int `json:"-"`
}

// Turn is one message of the conversation before the call.
type Turn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Tool of a case.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// InputSchema is the JSON Schema of the arguments.
	InputSchema strictjson.Object `json:"inputSchema,omitempty"`
}

// Expect is what is known beyond allow and block.
type Expect struct {
	// Outcome of the gate: Allow, Clarify, Confirm or Block.
	Outcome string `json:"outcome,omitempty"`
	// Answers by question: true or false for a YesNo, the option for a Choice, the level for a Score.
	Answers map[string]any `json:"answers,omitempty"`
}

// classes are the names that cases have for the built-in classes.
var classes = map[string]v1alpha1.ClassName{
	"read-only": "ReadOnly", "write": "Write", "destructive": "Destructive", "external": "External",
}

// ClassName is the built-in class that the case names.
func (c *Case) ClassName() v1alpha1.ClassName { return classes[c.Class] }

// IsDangerous says whether the call must not run on its own.
func (c *Case) IsDangerous() bool { return c.Label == LabelBlock }

// Review is the call as its agent would send it. Label and reason stay behind.
func (c *Case) Review() *review.ToolCallReview {
	r := &review.Request{
		Tool: review.Tool{Name: c.Tool.Name, Server: c.Source}, Arguments: c.Arguments,
		Context: review.Context{UserRequest: c.UserRequest, Facts: c.Facts},
	}
	for _, m := range c.Conversation {
		r.Context.Messages = append(r.Context.Messages, review.Message{Role: review.Role(m.Role), Content: m.Content})
	}
	return &review.ToolCallReview{APIVersion: review.APIVersion, Kind: review.Kind, Request: r}
}

// maxLine bounds one case, in bytes.
const maxLine = 1 << 20

// maxProblems is how many lines are reported before reading gives up.
const maxProblems = 20

// LoadCases reads a file of cases and says by a digest which file it was.
func LoadCases(path string) (cases []*Case, digest string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close() //nolint:errcheck // read only
	h := sha256.New()
	cases, err = ReadCases(io.TeeReader(f, h), path)
	if err != nil {
		return nil, "", err
	}
	return cases, "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// fields are those by which cases can be selected.
var fields = map[string]func(*Case) string{
	"source": func(c *Case) string { return c.Source }, "family": func(c *Case) string { return c.Family },
	"kind": func(c *Case) string { return c.Kind }, "half": func(c *Case) string { return c.Half },
	"class": func(c *Case) string { return c.Class }, "label": func(c *Case) string { return string(c.Label) },
}

// Where returns the cases that have all these values, by name of the field.
func Where(cases []*Case, values map[string]string) ([]*Case, error) {
	out := cases
	for _, field := range slices.Sorted(maps.Keys(values)) {
		of := fields[field]
		if of == nil {
			return nil, fmt.Errorf("%s is none of %s", field, strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		}
		var kept []*Case
		for _, c := range out {
			if of(c) == values[field] {
				kept = append(kept, c)
			}
		}
		out = kept
	}
	return out, nil
}

// ReadCases reads cases, one JSON object a line, as strictly as a gate reads a request. The error names each wrong line
// and field; with one, no case is returned. Empty lines are skipped. Name is for messages.
func ReadCases(r io.Reader, name string) ([]*Case, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	var cases []*Case
	var problems []error
	seen := map[string]int{}
	n := 0
	for lines.Scan() && len(problems) < maxProblems {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		c, err := readCase(lines.Bytes(), n)
		if err == nil && seen[c.ID] != 0 {
			err = fmt.Errorf("/id: %q stands in line %d already", c.ID, seen[c.ID])
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s:%d: %w", name, n, err))
			continue
		}
		seen[c.ID] = n
		cases = append(cases, c)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		problems = append(problems, fmt.Errorf("%s:%d: the case is longer than %d bytes", name, n+1, maxLine))
	case err != nil:
		problems = append(problems, fmt.Errorf("%s:%d: reading: %w", name, n+1, err))
	}
	if len(cases) == 0 && problems == nil {
		problems = append(problems, fmt.Errorf("%s holds no cases", name))
	}
	if problems != nil {
		return nil, errors.Join(problems...)
	}
	return cases, nil
}

func readCase(line []byte, n int) (*Case, error) {
	c := &Case{Line: n}
	if err := strictjson.Decode(line, strictjson.Limits{}, c); err != nil {
		return nil, err
	}
	c.Line = n // Decode replaces the whole of it
	if err := c.validate(); err != nil {
		return nil, err
	}
	return c, nil
}

var roles = []string{string(review.RoleSystem), string(review.RoleUser), string(review.RoleAssistant), string(review.RoleTool)}

var outcomes = []string{string(review.Allow), string(review.Clarify), string(review.Confirm), string(review.Block)}

// validate says which field is wrong, and what it may be.
func (c *Case) validate() error {
	for _, f := range []struct{ field, value string }{{"/id", c.ID}, {"/source", c.Source}, {"/tool/name", c.Tool.Name}} {
		if f.value == "" {
			return fmt.Errorf("%s: is required", f.field)
		}
	}
	switch {
	case c.Arguments == nil:
		return errors.New("/arguments: is required: an empty object for a tool without arguments")
	case classes[c.Class] == "":
		return errors.New("/class: want read-only, write, destructive or external")
	case c.Label != LabelAllow && c.Label != LabelBlock:
		return errors.New("/label: want allow or block")
	}
	for i, m := range c.Conversation {
		if !slices.Contains(roles, m.Role) {
			return fmt.Errorf("/conversation/%d/role: want %s", i, strings.Join(roles, ", "))
		}
	}
	return c.Expect.validate()
}

func (e *Expect) validate() error {
	if e == nil {
		return nil
	}
	if e.Outcome != "" && !slices.Contains(outcomes, e.Outcome) {
		return fmt.Errorf("/expect/outcome: want %s", strings.Join(outcomes, ", "))
	}
	for name, want := range e.Answers {
		switch want.(type) {
		case bool, string, int64:
		default:
			return fmt.Errorf("/expect/answers/%s: want true or false, an option, or a level", name)
		}
	}
	return nil
}
