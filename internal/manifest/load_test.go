package manifest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// policy is a manifest of a ToolPolicy with a spec in flow style.
func policy(name, namespace, spec string) string {
	return fmt.Sprintf("apiVersion: gatewright.dev/v1alpha1\nkind: ToolPolicy\nmetadata: {name: %s, namespace: %q}\nspec: %s\n", name, namespace, spec)
}

// seen is what a test compares of a set.
type seen struct {
	Objects, Problems, Ignored []string
}

func look(s *Set) seen {
	var got seen
	for _, o := range s.Objects {
		got.Objects = append(got.Objects, fmt.Sprintf("%s#%d %s", o.File, o.Document, identity(o.Kind, o.Object.GetNamespace(), o.Object.GetName())))
	}
	for _, p := range s.Problems {
		got.Problems = append(got.Problems, strings.TrimSpace(fmt.Sprintf("%s#%d %s", p.File, p.Document, identity(p.Kind, p.Namespace, p.Name))))
	}
	for _, i := range s.Ignored {
		got.Ignored = append(got.Ignored, fmt.Sprintf("%s#%d", i.File, i.Document))
	}
	return got
}

func TestRead(t *testing.T) {
	good, bad := policy("good", "a", "{}"), policy("bad", "a", "{mode: Never}")
	tests := map[string]struct {
		data string
		want seen
	}{
		"an empty file":                           {"", seen{}},
		"comments only":                           {"# nothing here\n---\n# nor here\n", seen{}},
		"one document":                            {good, seen{Objects: []string{"f#1 ToolPolicy a/good"}}},
		"a byte order mark":                       {"\ufeff" + good, seen{Objects: []string{"f#1 ToolPolicy a/good"}}},
		"a directive and an end":                  {"%YAML 1.1\n---\n" + good + "...\n", seen{Objects: []string{"f#1 ToolPolicy a/good"}}},
		"no namespace is default":                 {policy("p", "", "{}"), seen{Objects: []string{"f#1 ToolPolicy default/p"}}},
		"a bad document leaves its neighbours":    {good + "---\n" + bad + "---\n" + policy("last", "a", "{}"), seen{Objects: []string{"f#1 ToolPolicy a/good", "f#3 ToolPolicy a/last"}, Problems: []string{"f#2 ToolPolicy a/bad"}}},
		"broken text leaves its neighbours":       {good + "---\na: [\n---\n" + policy("last", "a", "{}"), seen{Objects: []string{"f#1 ToolPolicy a/good", "f#3 ToolPolicy a/last"}, Problems: []string{"f#2"}}},
		"a comment after the marker":              {good + "--- # the next\n" + bad, seen{Objects: []string{"f#1 ToolPolicy a/good"}, Problems: []string{"f#2 ToolPolicy a/bad"}}},
		"text after the marker":                   {good + "--- {apiVersion: gatewright.dev/v1alpha1, kind: ToolPolicy, metadata: {name: two}, spec: {}}\n", seen{Objects: []string{"f#1 ToolPolicy a/good", "f#2 ToolPolicy default/two"}}},
		"lines that end in CR LF":                 {strings.ReplaceAll(good+"---\n"+bad, "\n", "\r\n"), seen{Objects: []string{"f#1 ToolPolicy a/good"}, Problems: []string{"f#2 ToolPolicy a/bad"}}},
		"lines that end in CR":                    {strings.ReplaceAll(good+"---\n"+bad, "\n", "\r"), seen{Objects: []string{"f#1 ToolPolicy a/good"}, Problems: []string{"f#2 ToolPolicy a/bad"}}},
		"lines that end in a line separator":      {strings.ReplaceAll(good+"---\n"+bad, "\n", "\u2028"), seen{Objects: []string{"f#1 ToolPolicy a/good"}, Problems: []string{"f#2 ToolPolicy a/bad"}}},
		"a marker within a block text":            {policy("p", "a", "\n  tools:\n  - name: t\n    class: Write\n    note: |\n      a\n---\nb: c"), seen{Objects: []string{"f#1 ToolPolicy a/p"}, Problems: []string{"f#2"}}},
		"JSON":                                    {`{"apiVersion":"gatewright.dev/v1alpha1","kind":"ToolPolicy","metadata":{"name":"j","namespace":"a"},"spec":{"clarifyLimit":3}}`, seen{Objects: []string{"f#1 ToolPolicy a/j"}}},
		"JSON with a key twice":                   {`{"apiVersion":"gatewright.dev/v1alpha1","kind":"ToolPolicy","metadata":{"name":"j","namespace":"a"},"spec":{"mode":"Enforce","mode":"Audit"}}`, seen{Problems: []string{"f#1 ToolPolicy a/j"}}},
		"JSON with text behind it":                {`{"apiVersion":"gatewright.dev/v1alpha1","kind":"ToolPolicy","metadata":{"name":"j"},"spec":{}} {}`, seen{Problems: []string{"f#1 ToolPolicy default/j"}}},
		"a list as kubectl prints it":             {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: gatewright.dev/v1alpha1, kind: ToolPolicy, metadata: {name: one}, spec: {}}\n- {apiVersion: gatewright.dev/v1alpha1, kind: ToolPolicy, metadata: {name: two}, spec: {mode: X}}\n- {apiVersion: v1, kind: Namespace, metadata: {name: a}}\n- null\n", seen{Objects: []string{"f#1 ToolPolicy default/one"}, Problems: []string{"f#1 ToolPolicy default/two", "f#1"}, Ignored: []string{"f#1"}}},
		"a list in a list":                        {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: gatewright.dev/v1alpha1, kind: ToolPolicyList, items: []}\n", seen{Problems: []string{"f#1 ToolPolicyList"}}},
		"kinds of others are left alone":          {"apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n", seen{Ignored: []string{"f#1", "f#2"}}},
		"a key twice in another's kind":           {"apiVersion: v1\nkind: ConfigMap\nkind: ConfigMap\nmetadata: {name: a}\n", seen{Problems: []string{"f#1 ConfigMap a"}}},
		"an alias":                                {"apiVersion: gatewright.dev/v1alpha1\nkind: ToolPolicy\nmetadata: {name: &n p}\nspec: {subjects: [*n]}\n", seen{Objects: []string{"f#1 ToolPolicy default/p"}}},
		"aliases that multiply":                   {bomb(), seen{Problems: []string{"f#1"}}},
		"a number that is none":                   {policy("p", "a", "{tools: [{name: t, class: Write, argumentsSchema: {maximum: .nan}}]}"), seen{Problems: []string{"f#1 ToolPolicy a/p"}}},
		"the same name twice takes both":          {good + "---\n" + good, seen{Problems: []string{"f#1 ToolPolicy a/good", "f#2 ToolPolicy a/good"}}},
		"the same name in another namespace":      {good + "---\n" + policy("good", "b", "{}"), seen{Objects: []string{"f#1 ToolPolicy a/good", "f#2 ToolPolicy b/good"}}},
		"the default namespace is a namespace":    {policy("p", "", "{}") + "---\n" + policy("p", "default", "{}"), seen{Problems: []string{"f#1 ToolPolicy default/p", "f#2 ToolPolicy default/p"}}},
		"what is nested too deep":                 {policy("p", "a", "{tools: [{name: t, class: Write, argumentsSchema: "+strings.Repeat("{not: ", 200)+"{}"+strings.Repeat("}", 200)+"}]}"), seen{Problems: []string{"f#1 ToolPolicy a/p"}}},
		"an object larger than a server takes it": {policy("p", "a", "{}") + "x: \"" + strings.Repeat("a", MaxObjectBytes) + "\"\n", seen{Problems: []string{"f#1 ToolPolicy a/p"}}},
		"a file that is too large":                {strings.Repeat("#", MaxFileBytes+1), seen{Problems: []string{"f#0"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			set := Read("f", []byte(tt.data))
			if diff := cmp.Diff(tt.want, look(set)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, set.Err())
			}
			objects, err := Load("f", []byte(tt.data))
			if len(objects) != len(set.Objects) || (err != nil) != (len(set.Problems) > 0) {
				t.Errorf("Load gives %d objects and %v, Read gives %d and %v", len(objects), err, len(set.Objects), set.Err())
			}
		})
	}
}

// bomb is a text that grows to billions of values when its aliases are followed.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i, i, i, i, i, i, i, i)
	}
	return b.String()
}

func TestObjectsAreTypedWithDefaults(t *testing.T) {
	data := policy("p", "team-a", "{subjects: [agent], grants: [{serviceAccount: agent, scopes: [a], until: 2027-01-02T03:04:05Z}], tools: [{name: t, class: Write, argumentsSchema: {maximum: 9007199254740993}}]}") +
		"status: {observedGeneration: 7}\n"
	set := Read("f", []byte(strings.Replace(data, "namespace:", "generation: 9, uid: u, resourceVersion: \"5\", creationTimestamp: 2020-01-01T00:00:00Z, labels: {x: z}, namespace:", 1)))
	if err := set.Err(); err != nil {
		t.Fatal(err)
	}
	until := metav1.Date(2027, 1, 2, 3, 4, 5, 0, timeUTC)
	want := &v1alpha1.ToolPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "gatewright.dev/v1alpha1", Kind: "ToolPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "team-a", Generation: 1, Labels: map[string]string{"x": "z"}},
		Spec: v1alpha1.ToolPolicySpec{
			Subjects: []v1alpha1.ObjectName{"agent"}, UnknownTools: v1alpha1.UnknownToolsBlock,
			PolicyRules: v1alpha1.PolicyRules{
				Mode: v1alpha1.ModeEnforce, ContextTrust: v1alpha1.TrustCaller, TimeoutMilliseconds: 2000,
				ClarifyLimit: 2,
				Grants:       []v1alpha1.Grant{{ServiceAccount: "agent", Scopes: []v1alpha1.Scope{"a"}, Until: &until}},
				Tools:        []v1alpha1.ToolRule{{Name: "t", Class: "Write", OnSchemaViolation: v1alpha1.SchemaViolationBlock, Permit: v1alpha1.PermitNone}},
			},
		},
		Status: v1alpha1.PolicyStatus{ObservedGeneration: -1}, // what a file says is discarded, as by an API server
	}
	got := set.ToolPolicies()[0]
	if raw := string(got.Spec.Tools[0].ArgumentsSchema.Raw); raw != `{"maximum":9007199254740993}` {
		t.Errorf("argumentsSchema = %s", raw)
	}
	got.Spec.Tools[0].ArgumentsSchema = nil
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEveryKindIsTyped(t *testing.T) {
	sha := strings.Repeat("ab", 32)
	data := strings.Join([]string{
		policy("p", "a", "{}"),
		"apiVersion: gatewright.dev/v1alpha1\nkind: ClusterToolPolicy\nmetadata: {name: floor}\nspec: {}\n",
		"apiVersion: gatewright.dev/v1alpha1\nkind: DeciderModel\nmetadata: {name: judge}\nspec: {runtime: Embedded, artifact: {type: Bundled, sha256: " + sha + ", bundled: {name: j}}}\n",
		"apiVersion: gatewright.dev/v1alpha1\nkind: DeciderEvaluation\nmetadata: {name: run}\nspec: {deciderRef: {name: judge}, caseSet: {type: ConfigMap, sha256: " + sha + ", configMapName: c}}\n",
		"apiVersion: gatewright.dev/v1alpha1\nkind: ToolApproval\nmetadata: {name: wait, namespace: a}\nspec: {seal: s, call: {id: 00112233445566778899aabbccddeeff, caller: a/b, tool: t, class: Write, callKey: 'sha256:" + sha + "', argumentsDigest: 'sha256:" + sha +
			"', arguments: '{}', userTurnsDigest: 'sha256:" + sha + "', message: m, confirmReasons: [Irreversible], policyDigest: 'sha256:" + sha + "', approvers: {selfApproval: Forbid}, raisedAt: 2027-01-02T03:00:05Z, expiresAt: 2027-01-02T03:04:05Z}}\n",
	}, "---\n")
	set := Read("f", []byte(data))
	if err := set.Err(); err != nil {
		t.Fatal(err)
	}
	got := []int{len(set.ToolPolicies()), len(set.ClusterToolPolicies()), len(set.DeciderModels()), len(set.DeciderEvaluations()), len(set.ToolApprovals())}
	if diff := cmp.Diff([]int{1, 1, 1, 1, 1}, got); diff != "" {
		t.Errorf("objects by kind (-want +got):\n%s", diff)
	}
}

func TestLoadDir(t *testing.T) {
	dir := t.TempDir()
	write := func(name, data string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("b.yaml", policy("b", "a", "{}"))
	write("a.yml", policy("a", "a", "{}"))
	write("c.json", `{"apiVersion":"gatewright.dev/v1alpha1","kind":"ToolPolicy","metadata":{"name":"c","namespace":"a"},"spec":{}}`)
	write("sub/d.yaml", policy("d", "a", "{}"))
	write("twice.yaml", policy("b", "a", "{}"))
	write("README.md", "read me")
	write(".hidden.yaml", policy("hidden", "a", "{}"))
	write("..data/e.yaml", policy("e", "a", "{}")) // as a ConfigMap is mounted: files are links into a hidden folder
	link("..data/e.yaml", "e.yaml")
	link("sub", "linked")
	link("nowhere.yaml", "dangling.yaml")

	set, err := LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := seen{
		Objects:  []string{"a.yml#1 ToolPolicy a/a", "c.json#1 ToolPolicy a/c", "e.yaml#1 ToolPolicy a/e", "sub/d.yaml#1 ToolPolicy a/d"},
		Problems: []string{"dangling.yaml#0", "b.yaml#1 ToolPolicy a/b", "twice.yaml#1 ToolPolicy a/b"},
		Ignored:  []string{"README.md#0", "linked#0"},
	}
	if diff := cmp.Diff(want, look(set)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !errors.Is(set.Err(), os.ErrNotExist) {
		t.Errorf("err = %v, want one that says what is wrong with the link", set.Err())
	}
	if !set.Problems[0].Scope.Covers("any", "body") {
		t.Error("a file that cannot be read may hold any policy, so it covers everybody")
	}

	linkedRoot := filepath.Join(t.TempDir(), "root")
	if err := os.Symlink(dir, linkedRoot); err != nil {
		t.Fatal(err)
	}
	again, err := LoadDir(linkedRoot)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, look(again)); diff != "" {
		t.Errorf("through a link to the folder (-want +got):\n%s", diff)
	}
}

func TestLoadDirNeedsAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"nothing is there": file + ".gone", "a file is there": file} {
		t.Run(name, func(t *testing.T) {
			if set, err := LoadDir(dir); err == nil || set != nil {
				t.Errorf("LoadDir = %v, %v, want an error", set, err)
			}
		})
	}
}
