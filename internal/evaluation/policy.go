package evaluation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// Ladder is how the tools of cases are judged where no policy lists them.
type Ladder struct {
	// Decider that is asked.
	Decider *v1alpha1.DeciderReference
	// Questions beside the built-in set.
	Questions []v1alpha1.Question
	// Classes with questions and thresholds.
	Classes []v1alpha1.ClassPolicy
	// FactsFrom are the facts that count.
	FactsFrom []v1alpha1.FactSource
	// TimeoutMilliseconds of the decider; the policy's default for 0.
	TimeoutMilliseconds int32
}

// Matching is the ladder that lets matches_request alone decide, for the irreversible classes too: what more likely than not
// is what the user asked for runs, what hardly is is asked about, and the rest waits for a person. The bars are even odds and
// one in five, set on no case. It shows what that one question is worth; a policy for real use keeps approval: Always there.
func Matching(decider v1alpha1.DeciderReference) Ladder {
	l := Ladder{Decider: &decider}
	for _, name := range []v1alpha1.ClassName{"ReadOnly", "Write", "External", "Destructive"} {
		matching, other := int32(50), int32(20)
		l.Classes = append(l.Classes, v1alpha1.ClassPolicy{
			Name: name, Decider: v1alpha1.DeciderAsk, Questions: []v1alpha1.QuestionName{"matches_request"}, Approval: v1alpha1.ApprovalWhenUnsure,
			Thresholds: []v1alpha1.Threshold{
				{When: []v1alpha1.Condition{{Question: "matches_request", AtLeast: &matching}}, Outcome: v1alpha1.OutcomeAllow, Reason: "MatchesRequest"},
				{When: []v1alpha1.Condition{{Question: "matches_request", AtMost: &other}}, Outcome: v1alpha1.OutcomeClarify, Reason: "OtherThanAsked"},
			},
			Otherwise: &v1alpha1.Fallback{Outcome: v1alpha1.OutcomeConfirm, Reason: "InDoubt"},
		})
	}
	return l
}

// LadderOf takes the ladder of a policy and leaves its tools behind.
func LadderOf(p *v1alpha1.ToolPolicy) Ladder {
	return Ladder{
		Decider: p.Spec.DeciderRef, Questions: p.Spec.Questions, Classes: p.Spec.Classes, FactsFrom: p.Spec.FactsFrom,
		TimeoutMilliseconds: p.Spec.TimeoutMilliseconds,
	}
}

// maxTools is how many tools one policy may list.
const maxTools = 256

// PolicyForCases lists the tools of the cases below a ladder, each with the worst class and any of the schemas of its cases. More tools than a policy may list are spread over several policies.
func PolicyForCases(cases []*Case, l Ladder, namespace, name string) ([]*v1alpha1.ToolPolicy, error) {
	tools, err := toolsOf(cases)
	if err != nil {
		return nil, err
	}
	var out []*v1alpha1.ToolPolicy
	for len(tools) > 0 {
		n := min(len(tools), maxTools)
		p := &v1alpha1.ToolPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindToolPolicy},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		}
		if len(out) > 0 {
			p.Name = fmt.Sprintf("%s-%d", name, len(out)+1)
		}
		p.Spec.DeciderRef, p.Spec.Questions, p.Spec.Classes = l.Decider, l.Questions, l.Classes
		p.Spec.FactsFrom, p.Spec.TimeoutMilliseconds = l.FactsFrom, l.TimeoutMilliseconds
		p.Spec.Tools = tools[:n:n]
		tools = tools[n:]
		out = append(out, p)
	}
	if len(out) > 1 { // each leaves the others' tools to them
		for _, p := range out {
			p.Spec.UnknownTools = v1alpha1.UnknownToolsDefer
		}
	}
	return out, nil
}

// caseTool is a tool as all the cases that have it describe it.
type caseTool struct {
	rule    v1alpha1.ToolRule
	schemas []json.RawMessage
}

func toolsOf(cases []*Case) ([]v1alpha1.ToolRule, error) {
	var order []*caseTool
	byKey := map[string]*caseTool{}
	for _, c := range cases {
		key := c.Source + "\x00" + c.Tool.Name
		t := byKey[key]
		if t == nil {
			t = &caseTool{rule: v1alpha1.ToolRule{Name: c.Tool.Name, Server: c.Source, Class: c.ClassName(), Description: clip(c.Tool.Description, 2000)}}
			byKey[key] = t
			order = append(order, t)
		}
		if err := t.add(c); err != nil {
			return nil, err
		}
	}
	out := make([]v1alpha1.ToolRule, len(order))
	for i, t := range order {
		out[i] = t.rule
		schema, err := t.schema()
		if err != nil {
			return nil, fmt.Errorf("schema of tool %s: %w", t.rule.Name, err)
		}
		out[i].ArgumentsSchema = schema
	}
	return out, nil
}

// add keeps the worst class, and every schema that differs.
func (t *caseTool) add(c *Case) error {
	if slices.Index(builtIn, c.ClassName()) > slices.Index(builtIn, t.rule.Class) {
		t.rule.Class = c.ClassName()
	}
	if c.Tool.InputSchema == nil {
		return nil
	}
	raw, err := json.Marshal(c.Tool.InputSchema)
	if err != nil {
		return fmt.Errorf("line %d: /tool/inputSchema: %w", c.Line, err)
	}
	if !slices.ContainsFunc(t.schemas, func(other json.RawMessage) bool { return bytes.Equal(raw, other) }) {
		t.schemas = append(t.schemas, raw)
	}
	return nil
}

// schema is what fits one of the schemas. Benchmarks have tools of one name with different arguments.
func (t *caseTool) schema() (*apiextensionsv1.JSON, error) {
	switch len(t.schemas) {
	case 0:
		return nil, nil
	case 1:
		return &apiextensionsv1.JSON{Raw: t.schemas[0]}, nil
	}
	for _, raw := range t.schemas {
		if bytes.Contains(raw, []byte(`"$ref"`)) {
			return nil, errors.New("differs between cases and refers to parts of itself: give each variant a name of its own")
		}
	}
	raw, err := json.Marshal(map[string]any{"anyOf": t.schemas})
	return &apiextensionsv1.JSON{Raw: raw}, err
}

// clip shortens a description for a person and a decider; nothing is judged by it.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
