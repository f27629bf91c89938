package suite

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	reviewv1alpha1 "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
)

// APIVersion and Kind stand in every suite.
const (
	APIVersion = "suite.gatewright.dev/v1alpha1"
	Kind       = "PolicySuite"
)

// File is a suite as it is written.
type File struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   Metadata `yaml:"metadata"`
	// Policies are files with manifests, relative to the suite.
	Policies []string `yaml:"policies"`
	// Alongside are files with policies that apply too, and that other suites test: their coverage is not counted.
	Alongside []string `yaml:"alongside"`
	// Now is the clock that grants are held against, RFC 3339. Default: 2000-01-01T00:00:00Z, so that grants hold.
	Now string `yaml:"now"`
	// Defaults are what cases start from.
	Defaults Call   `yaml:"defaults"`
	Cases    []Case `yaml:"cases"`
}

// Metadata names a suite.
type Metadata struct {
	Name string `yaml:"name"`
}

// Call is a proposed call with all that surrounds it.
type Call struct {
	Caller      *Caller   `yaml:"caller"`
	Tool        string    `yaml:"tool"`
	Server      string    `yaml:"server"`
	Arguments   Tree      `yaml:"arguments"`
	UserRequest string    `yaml:"userRequest"`
	Messages    []Message `yaml:"messages"`
	Facts       Tree      `yaml:"facts"`
	OnBehalfOf  string    `yaml:"onBehalfOf"`
	Session     string    `yaml:"session"`
	Language    string    `yaml:"language"`
	Attestation string    `yaml:"attestation"`
	Decider     *Script   `yaml:"decider"`
	// Now is the clock of this call. Default: that of the suite.
	Now string `yaml:"now"`
	// Approved says that a person approved what the same call asks for without an approval.
	Approved bool `yaml:"approved"`
}

// Caller is the service account that calls.
type Caller struct {
	Namespace      string `yaml:"namespace"`
	ServiceAccount string `yaml:"serviceAccount"`
}

// Message is one message of the conversation.
type Message struct {
	Role    string `yaml:"role"`
	Content string `yaml:"content"`
	Name    string `yaml:"name"`
}

// Script is what the decider says.
type Script struct {
	// Answers by question. Those of defaults and of the case are merged.
	Answers map[string]Reply `yaml:"answers"`
	// Fingerprint of the decider. Default: the one that the policy pins.
	Fingerprint string `yaml:"fingerprint"`
	// Unavailable is the reason why there is no answer, such as DeciderTimeout.
	Unavailable string `yaml:"unavailable"`
}

// Case is one call and the verdict that it must come to.
type Case struct {
	Name string `yaml:"name"`
	Call `yaml:",inline"`
	Want Want `yaml:"want"`
	line int
}

// Want is the wanted verdict. What is not written is not compared, but for outcome, which is required.
type Want struct {
	Outcome string    `yaml:"outcome"`
	Reason  string    `yaml:"reason"`
	By      string    `yaml:"by"`
	Asked   *Asked    `yaml:"asked"`
	Class   string    `yaml:"class"`
	Missing []string  `yaml:"missing"`
	WouldBe []WouldBe `yaml:"wouldBe"`
}

// WouldBe is the wanted verdict of a policy in mode Audit.
type WouldBe struct {
	Policy  string `yaml:"policy"`
	Outcome string `yaml:"outcome"`
	Reason  string `yaml:"reason"`
	By      string `yaml:"by"`
}

// Asked lists the questions that the decider must have been asked; none is written as the word none.
type Asked []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (a *Asked) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && n.Value == "none" {
		*a = Asked{}
		return nil
	}
	var list []string
	if n.Kind != yaml.SequenceNode || n.Decode(&list) != nil || len(list) == 0 {
		return fmt.Errorf("line %d: asked is a list of questions, or none", n.Line)
	}
	slices.Sort(list)
	*a = list
	return nil
}

// read decodes a suite strictly: one document, no key that has no place. Errors begin with file and line.
func read(name string, data []byte) (*File, error) {
	f := &File{}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(f); err != nil {
		return nil, atLines(name, err)
	}
	var rest any
	if err := dec.Decode(&rest); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: more than one document: put each suite in a file of its own", name)
	}
	f.number(data)
	return f, f.validate(name)
}

// atLines puts the file before each line of an error of the decoder.
func atLines(name string, err error) error {
	var fault *yaml.TypeError
	if !errors.As(err, &fault) {
		return atLine(name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	errs := make([]error, len(fault.Errors))
	for i, text := range fault.Errors {
		errs[i] = atLine(name, text)
	}
	return errors.Join(errs...)
}

func atLine(name, text string) error {
	if rest, found := strings.CutPrefix(text, "line "); found {
		if line, detail, found := strings.Cut(rest, ": "); found {
			return fmt.Errorf("%s:%s: %s", name, line, detail)
		}
	}
	return fmt.Errorf("%s: %s", name, text)
}

// number notes the line of each case, for reports.
func (f *File) number(data []byte) {
	var root struct {
		Cases []yaml.Node `yaml:"cases"`
	}
	if yaml.Unmarshal(data, &root) != nil {
		return // the strict decoder has taken the same bytes, so this does not happen
	}
	for i := range min(len(f.Cases), len(root.Cases)) {
		f.Cases[i].line = root.Cases[i].Line
	}
}

func (f *File) validate(name string) error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf(name+format, args...))
	}
	if f.APIVersion != APIVersion || f.Kind != Kind {
		fail(": apiVersion and kind are %q and %q: write %s and %s", f.APIVersion, f.Kind, APIVersion, Kind)
	}
	if f.Metadata.Name == "" {
		fail(": metadata.name is required")
	}
	if len(f.Policies) == 0 {
		fail(": policies is required: list the files with the policies under test, relative to this file")
	}
	if _, err := clock(f.Now); err != nil {
		fail(": %w", err)
	}
	if len(f.Cases) == 0 {
		fail(": cases is required: a suite without cases says nothing")
	}
	seen := map[string]bool{}
	for i := range f.Cases {
		c := &f.Cases[i]
		if seen[c.Name] {
			fail(":%d: there are two cases %q: give each a name of its own", c.line, c.Name)
		}
		seen[c.Name] = true
		if err := c.validate(f.Defaults); err != nil {
			fail(":%d: case %q: %w", c.line, c.Name, err)
		}
	}
	return errors.Join(errs...)
}

// clock is the time of a call. The default lies before any grant ends.
func clock(now string) (time.Time, error) {
	if now == "" {
		return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), nil
	}
	t, err := time.Parse(time.RFC3339, now)
	if err != nil {
		return t, fmt.Errorf("now is %q: write a time such as 2026-10-01T00:00:00Z", now)
	}
	return t, nil
}

var outcomes = []string{string(v1alpha1.OutcomeAllow), string(v1alpha1.OutcomeConfirm), string(v1alpha1.OutcomeClarify), string(v1alpha1.OutcomeBlock)}

func (c *Case) validate(defaults Call) error {
	call := c.Call.over(defaults)
	switch {
	case c.Name == "":
		return errors.New("name is required: write a sentence")
	case call.Tool == "":
		return errors.New("tool is required, here or in defaults")
	case call.Caller == nil || call.Caller.Namespace == "" || call.Caller.ServiceAccount == "":
		return errors.New("caller.namespace and caller.serviceAccount are required, here or in defaults")
	case !slices.Contains(outcomes, c.Want.Outcome):
		return fmt.Errorf("want.outcome is %q: write one of %s", c.Want.Outcome, strings.Join(outcomes, ", "))
	}
	if _, err := clock(call.Now); err != nil {
		return err
	}
	for _, tree := range []Tree{call.Arguments, call.Facts} {
		if _, ok := tree.object(); !ok {
			return errors.New("arguments and facts are objects")
		}
	}
	for _, m := range call.Messages {
		switch reviewv1alpha1.Role(m.Role) {
		case reviewv1alpha1.RoleSystem, reviewv1alpha1.RoleUser, reviewv1alpha1.RoleAssistant, reviewv1alpha1.RoleTool:
		default:
			return fmt.Errorf("messages: role is %q: write system, user, assistant or tool", m.Role)
		}
	}
	return nil
}

// over lays a case over the defaults. Each field that the case writes replaces the default as a whole; only the answers
// of the decider are merged by question, so that a case can change one of them.
func (c Call) over(d Call) Call {
	out := Call{
		Caller: c.Caller, Arguments: c.Arguments, Facts: c.Facts, Messages: c.Messages, Approved: c.Approved || d.Approved,
		Tool: cmp.Or(c.Tool, d.Tool), Server: cmp.Or(c.Server, d.Server), UserRequest: cmp.Or(c.UserRequest, d.UserRequest),
		OnBehalfOf: cmp.Or(c.OnBehalfOf, d.OnBehalfOf), Session: cmp.Or(c.Session, d.Session),
		Language: cmp.Or(c.Language, d.Language), Attestation: cmp.Or(c.Attestation, d.Attestation), Now: cmp.Or(c.Now, d.Now),
		Decider: c.Decider.over(d.Decider),
	}
	if out.Caller == nil {
		out.Caller = d.Caller
	}
	if !out.Arguments.set {
		out.Arguments = d.Arguments
	}
	if !out.Facts.set {
		out.Facts = d.Facts
	}
	if out.Messages == nil {
		out.Messages = d.Messages
	}
	return out
}

func (s *Script) over(d *Script) *Script {
	if s == nil || d == nil {
		return cmp.Or(s, d)
	}
	out := &Script{
		Answers: maps.Clone(d.Answers), Fingerprint: cmp.Or(s.Fingerprint, d.Fingerprint), Unavailable: cmp.Or(s.Unavailable, d.Unavailable),
	}
	if out.Answers == nil {
		out.Answers = map[string]Reply{}
	}
	maps.Copy(out.Answers, s.Answers)
	return out
}
