package evaluation

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
)

func TestAccounts(t *testing.T) {
	cases := []*Case{
		{ID: "own"}, {ID: "none", Scopes: []string{}}, {ID: "two", Scopes: []string{"b", "a"}}, {ID: "same", Scopes: []string{"a", "b", "a"}}, {ID: "one", Scopes: []string{"a,b"}},
	}
	accounts, of := Accounts(cases)
	want := []Account{{"evaluated-0", []string{}}, {"evaluated-1", []string{"a", "b"}}, {"evaluated-2", []string{"a,b"}}}
	if diff := cmp.Diff(want, accounts, cmp.Transformer("empty", func(s []string) string { return fmt.Sprintf("%q", s) })); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"own": -1, "none": 0, "two": 1, "same": 1, "one": 2}, of); diff != "" {
		t.Error(diff)
	}
}

func TestGrant(t *testing.T) {
	policy := func(namespace string, subjects ...v1alpha1.ObjectName) *v1alpha1.ToolPolicy {
		p := &v1alpha1.ToolPolicy{}
		p.Namespace, p.Spec.Subjects = namespace, subjects
		return p
	}
	before := Policies{
		Tool:    []*v1alpha1.ToolPolicy{policy("shop"), policy("shop", "agent", "other"), policy("shop", "other"), policy("bank", "agent")},
		Cluster: []*v1alpha1.ClusterToolPolicy{{}},
	}
	after := before.Grant("shop", "agent", []Account{{Name: "none"}, {Name: "some", Scopes: []string{"x"}}})
	var got []string
	for _, p := range after.Tool {
		got = append(got, fmt.Sprintf("%v %v", p.Spec.Subjects, p.Spec.Grants))
	}
	got = append(got, fmt.Sprint(after.Cluster[0].Spec.Grants))
	want := []string{
		"[] [{some  [x] <nil>}]", "[agent other none some] [{some  [x] <nil>}]", "[other] [{some  [x] <nil>}]", "[agent] []", "[{some shop [x] <nil>}]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(before.Tool[1].Spec.Subjects) != 2 || before.Cluster[0].Spec.Grants != nil {
		t.Error("the policies that were given changed")
	}
}

func TestPolicyForCases(t *testing.T) {
	one := func(source, tool, class, schema string) *Case {
		c := &Case{Source: source, Class: class, Tool: Tool{Name: tool}, Line: 7}
		if schema != "" {
			if err := json.Unmarshal([]byte(schema), &c.Tool.InputSchema); err != nil {
				t.Fatal(err)
			}
		}
		return c
	}
	ladder := Matching(v1alpha1.DeciderReference{Name: "d", Fingerprint: "f"})
	policies, err := PolicyForCases([]*Case{
		one("a", "t", "write", `{"type":"object"}`), one("a", "t", "destructive", `{"type":"array"}`), one("a", "t", "read-only", `{"type":"object"}`), one("b", "t", "external", ""),
	}, ladder, "ns", "p")
	if err != nil || len(policies) != 1 {
		t.Fatalf("%v %v", policies, err)
	}
	want := []v1alpha1.ToolRule{
		{Name: "t", Server: "a", Class: "Destructive", ArgumentsSchema: &apiextensionsv1.JSON{Raw: []byte(`{"anyOf":[{"type":"object"},{"type":"array"}]}`)}},
		{Name: "t", Server: "b", Class: "External"},
	}
	if diff := cmp.Diff(want, policies[0].Spec.Tools); diff != "" {
		t.Error(diff)
	}
	if policies[0].Spec.UnknownTools != "" {
		t.Error("one policy leaves tools to others")
	}
	if _, err := PolicyForCases([]*Case{one("a", "t", "write", `{"$ref":"#/x"}`), one("a", "t", "write", `{}`)}, ladder, "ns", "p"); err == nil {
		t.Error("schemas that refer to themselves were joined")
	}
}

func TestManyToolsAreSpreadOverPolicies(t *testing.T) {
	var cases []*Case
	for i := range 300 {
		cases = append(cases, &Case{Source: "s", Class: "write", Tool: Tool{Name: fmt.Sprintf("tool_%d", i)}})
	}
	policies, err := PolicyForCases(cases, Matching(v1alpha1.DeciderReference{Name: "d", Fingerprint: "f"}), "ns", "p")
	if err != nil || len(policies) != 2 {
		t.Fatalf("%d policies, %v", len(policies), err)
	}
	for i, p := range policies {
		if len(p.Spec.Tools) != []int{256, 44}[i] || p.Name != []string{"p", "p-2"}[i] || p.Spec.UnknownTools != v1alpha1.UnknownToolsDefer {
			t.Errorf("%s has %d tools and %q for the others", p.Name, len(p.Spec.Tools), p.Spec.UnknownTools)
		}
	}
}

func TestWhere(t *testing.T) {
	cases := []*Case{{ID: "1", Half: "A", Class: "write"}, {ID: "2", Half: "B", Class: "write"}, {ID: "3", Half: "B", Class: "external"}}
	got, err := Where(cases, map[string]string{"half": "B", "class": "write"})
	if err != nil || len(got) != 1 || got[0].ID != "2" {
		t.Errorf("%v %v", got, err)
	}
	if got, err := Where(cases, nil); err != nil || len(got) != 3 {
		t.Errorf("%v %v", got, err)
	}
	if _, err := Where(cases, map[string]string{"why": "x"}); err == nil {
		t.Error("cases are selected by why")
	}
}
