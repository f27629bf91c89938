package manifest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var timeUTC = time.UTC

// A refused manifest must cover at least those that it was about, whatever is wrong with it: a caller who is left out
// is judged by the other policies as if this one had never been written.
func TestScopeOfARefusedManifest(t *testing.T) {
	cluster := func(spec string) string {
		return "apiVersion: gatewright.dev/v1alpha1\nkind: ClusterToolPolicy\nmetadata: {name: p}\nspec: " + spec + "\n"
	}
	everybody := Scope{}
	tests := map[string]struct {
		data string
		want Scope
	}{
		"a bad field elsewhere keeps namespace and subjects":   {policy("p", "a", "{mode: X, subjects: [agent, other]}"), Scope{Namespaces: []string{"a"}, Subjects: []string{"agent", "other"}}},
		"no subjects are all of the namespace":                 {policy("p", "a", "{mode: X}"), Scope{Namespaces: []string{"a"}}},
		"no namespace is default":                              {policy("p", "", "{mode: X}"), Scope{Namespaces: []string{"default"}}},
		"a bad name keeps the scope":                           {policy("P", "a", "{subjects: [agent]}"), Scope{Namespaces: []string{"a"}, Subjects: []string{"agent"}}},
		"subjects of the wrong type are all":                   {policy("p", "a", "{subjects: agent}"), Scope{Namespaces: []string{"a"}}},
		"a subject that is no name makes it all":               {policy("p", "a", "{subjects: [agent, My_Agent]}"), Scope{Namespaces: []string{"a"}}},
		"subjects with a wrong name beside right ones":         {policy("p", "a", "{subjects: [agent], subject: [other]}"), Scope{Namespaces: []string{"a"}}},
		"a wrong name deeper down keeps the subjects":          {policy("p", "a", "{subjects: [agent], tools: [{name: t, clas: Write}]}"), Scope{Namespaces: []string{"a"}, Subjects: []string{"agent"}}},
		"a namespace that is no name is everybody's":           {policy("p", "Team_A", "{subjects: [agent]}"), Scope{Subjects: []string{"agent"}}},
		"a field of metadata with a wrong name is everybody's": {strings.Replace(policy("p", "a", "{subjects: [agent]}"), "namespace:", "namspace:", 1), Scope{Subjects: []string{"agent"}}},
		"metadata of the wrong type is everybody's":            {"apiVersion: gatewright.dev/v1alpha1\nkind: ToolPolicy\nmetadata: p\nspec: {}\n", everybody},
		"a namespace that is a number is everybody's":          {"apiVersion: gatewright.dev/v1alpha1\nkind: ToolPolicy\nmetadata: {name: p, namespace: 7}\nspec: {}\n", everybody},
		"a key that is there twice is everybody's":             {policy("p", "a", "{mode: Audit, mode: Enforce, subjects: [agent]}"), everybody},
		"text that cannot be read is everybody's":              {"a: [", everybody},
		"a misspelt kind is everybody's":                       {strings.Replace(policy("p", "a", "{}"), "ToolPolicy", "ToolPolcy", 1), everybody},
		"another version is everybody's":                       {strings.Replace(policy("p", "a", "{}"), "v1alpha1", "v9", 1), everybody},
		"no spec is all of the namespace":                      {"apiVersion: gatewright.dev/v1alpha1\nkind: ToolPolicy\nmetadata: {name: p, namespace: a}\n", Scope{Namespaces: []string{"a"}}},
		"a cluster policy covers its namespaces":               {cluster("{mode: X, namespaces: [a, b]}"), Scope{Namespaces: []string{"a", "b"}}},
		"a cluster policy without namespaces covers all":       {cluster("{mode: X}"), everybody},
		"namespaces with a wrong name are all":                 {cluster("{namespaces: [a], namespace: [b]}"), everybody},
		"namespaces of the wrong type are all":                 {cluster("{namespaces: a}"), everybody},
		"a model covers nobody":                                {"apiVersion: gatewright.dev/v1alpha1\nkind: DeciderModel\nmetadata: {name: m}\nspec: {}\n", Scope{Nobody: true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			set := Read("f", []byte(tt.data))
			if len(set.Problems) != 1 || len(set.Objects) != 0 {
				t.Fatalf("%d problems and %d objects, want one problem", len(set.Problems), len(set.Objects))
			}
			if diff := cmp.Diff(tt.want, set.Problems[0].Scope); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, set.Err())
			}
		})
	}
}

func TestDuplicatesCoverAllThatAnyOfThemWasAbout(t *testing.T) {
	set := Read("f", []byte(policy("p", "a", "{subjects: [one]}")+"---\n"+policy("p", "a", "{subjects: [two]}")))
	var got []Scope
	for _, p := range set.Problems {
		got = append(got, p.Scope)
	}
	want := []Scope{{Namespaces: []string{"a"}, Subjects: []string{"one"}}, {Namespaces: []string{"a"}, Subjects: []string{"two"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCovers(t *testing.T) {
	tests := map[string]struct {
		scope     Scope
		namespace string
		account   string
		want      bool
	}{
		"the zero scope is everybody":      {Scope{}, "a", "x", true},
		"nobody is nobody":                 {Scope{Nobody: true}, "a", "x", false},
		"one of the namespaces":            {Scope{Namespaces: []string{"a", "b"}}, "b", "x", true},
		"another namespace":                {Scope{Namespaces: []string{"a"}}, "b", "x", false},
		"one of the subjects":              {Scope{Namespaces: []string{"a"}, Subjects: []string{"x"}}, "a", "x", true},
		"another subject":                  {Scope{Namespaces: []string{"a"}, Subjects: []string{"x"}}, "a", "y", false},
		"a subject in another namespace":   {Scope{Namespaces: []string{"a"}, Subjects: []string{"x"}}, "b", "x", false},
		"a subject where no one knows who": {Scope{Subjects: []string{"x"}}, "b", "x", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.scope.Covers(tt.namespace, tt.account); got != tt.want {
				t.Errorf("Covers(%s, %s) = %t, want %t", tt.namespace, tt.account, got, tt.want)
			}
		})
	}
}

func TestAProblemNamesFileObjectFieldAndRemedy(t *testing.T) {
	data := policy("ok", "a", "{}") + "---\n" + policy("p", "team-a", "{tools: [{name: db.drop, class: Destructive, requiredScope: [db]}]}")
	got := Read("policies.yaml", []byte(data)).Err().Error()
	want := "policies.yaml (document 2): ToolPolicy team-a/p: spec.tools[0].requiredScope: Forbidden: unknown field: did you mean requiredScopes? " +
		"It would be dropped, and what it says would not hold"
	if got != want {
		t.Errorf("message = %s\nwant      %s", got, want)
	}
}
