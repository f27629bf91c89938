package doctor

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/testkit"
)

func TestWhoDecides(t *testing.T) {
	asks := testkit.WithClass("Write", testkit.Asks("Block", testkit.Questions("asked"), testkit.Step("Allow", testkit.AtLeast("asked", 90))))
	model := func(fingerprint v1alpha1.Fingerprint) v1alpha1.DeciderModel {
		m := readyModel()
		m.Status.Active = &v1alpha1.DeciderRevision{Name: "judge-1", Fingerprint: fingerprint}
		return *m
	}
	all := []Applied{{Policy: "ToolPolicy/shop/p", Generation: 1, Mode: "Enforce", Why: "its subjects are all service accounts of namespace shop", State: "Unknown"}}
	tests := map[string]struct {
		policies []*v1alpha1.ToolPolicy
		floors   []*v1alpha1.ClusterToolPolicy
		models   []v1alpha1.DeciderModel
		tool     string
		want     Who
	}{
		"nobody": {
			policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p", testkit.ForSubjects("other"))},
			want:     Who{Verdict: "Block NoPolicy: no ToolPolicy selects service account shop/agent: an admin has to apply one in its namespace"},
		},
		"a floor alone admits nobody": {
			floors: []*v1alpha1.ClusterToolPolicy{testkit.ClusterToolPolicy("f")},
			want: Who{
				Policies: []Applied{{Policy: "ClusterToolPolicy/f", Generation: 1, Mode: "Enforce", Why: "it is for all namespaces", State: "Unknown"}},
				Verdict:  "Block NoPolicy: no ToolPolicy selects service account shop/agent: an admin has to apply one in its namespace",
			},
		},
		"a policy that does not compile": {
			policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p", testkit.WithTool("a", "Write", testkit.Rule("r", "args.", "Block")))},
			want: Who{
				Policies: all, Verdict: "Block PolicyInvalid: a policy that applies to this service account does not compile: its admin has to mend it",
				Tools: []ToolView{{Tool: "a", Base: "Destructive", AtLeast: "Block", Because: []string{"PolicyInvalid ToolPolicy/shop/p"}, Checks: []string{"rule r by ToolPolicy/shop/p"}}},
			},
		},
		"tools of every kind": {
			policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p", testkit.ForSubjects("agent"),
				testkit.WithTool("db.read", "ReadOnly", testkit.Schema(`{"required":["sql"]}`), testkit.Rule("small", "size(args.sql) > 9", "Block")),
				testkit.WithTool("db.*", "Write"),
				testkit.WithTool("db.drop", "Destructive", testkit.Permit("db"), testkit.Scopes("db:drop"), testkit.Path("/file", "/srv"), testkit.Host("/url", "a.example.com"), testkit.Source("/id", "Block", "User"), testkit.LowerTo("ReadOnly", "false")))},
			want: Who{
				Policies: []Applied{{Policy: "ToolPolicy/shop/p", Generation: 1, Mode: "Enforce", Why: "spec.subjects names agent", State: "Unknown"}},
				Tools: []ToolView{
					{Tool: "db.*", Class: "Write", Base: "Write", AtLeast: "Confirm", Because: []string{"ClassDefault ToolPolicy/shop/p"}},
					{Tool: "db.drop", Class: "Destructive", Base: "Destructive", AtLeast: "Block", Because: []string{"MissingScope ToolPolicy/shop/p"}, Permit: "db",
						Checks: []string{"path /file by ToolPolicy/shop/p", "host /url by ToolPolicy/shop/p", "source of /id by ToolPolicy/shop/p", "lower to ReadOnly by ToolPolicy/shop/p"}},
					{Tool: "db.read", Class: "ReadOnly", Base: "ReadOnly", AtLeast: "Allow", Checks: []string{"schema by ToolPolicy/shop/p", "rule small by ToolPolicy/shop/p"}},
				},
			},
		},
		"a scope that is held, by a floor": {
			policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p", testkit.WithTool("db.drop", "Destructive", testkit.Scopes("db:drop")))},
			floors:   []*v1alpha1.ClusterToolPolicy{testkit.ClusterToolPolicy("f", testkit.ForNamespaces("shop"), testkit.GrantUntil(now.Add(time.Hour), "db:drop"), testkit.GrantUntil(now, "old"))},
			want: Who{
				Policies: append(append([]Applied{}, all...), Applied{Policy: "ClusterToolPolicy/f", Generation: 1, Mode: "Enforce", Why: "spec.namespaces names shop", State: "Unknown"}),
				Grants:   []Held{{Scope: "db:drop", By: "ClusterToolPolicy/f", Until: "2030-01-01T01:00:00Z"}},
				Tools:    []ToolView{{Tool: "db.drop", Class: "Destructive", Base: "Destructive", AtLeast: "Confirm", Because: []string{"Irreversible ToolPolicy/shop/p"}}},
			},
		},
		"one tool that nobody lists": {
			policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p", testkit.WithTool("db.read", "ReadOnly"))}, tool: "db.drop",
			want: Who{Policies: all, Tools: []ToolView{{Tool: "db.drop", Class: "", Base: "Destructive", AtLeast: "Block", Because: []string{"UnknownTool ToolPolicy/shop/p"}}}},
		},
		"one tool of two servers": {
			policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p", testkit.WithTool("run", "Write"), testkit.WithTool("run", "ReadOnly", testkit.OnServer("s")))}, tool: "run",
			want: Who{Policies: all, Tools: []ToolView{
				{Tool: "run", Class: "Write", Base: "Write", AtLeast: "Confirm", Because: []string{"ClassDefault ToolPolicy/shop/p"}},
				{Tool: "run", Server: "s", Class: "ReadOnly", Base: "ReadOnly", AtLeast: "Allow"},
			}},
		},
		"a decider whose fingerprint fits": {
			policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p", testkit.WithDecider("judge"), asks, testkit.WithTool("a", "Write"))}, models: []v1alpha1.DeciderModel{model(testkit.Fingerprint)},
			want: Who{
				Policies: all, Deciders: []Asked{{Decider: "judge", Policy: "ToolPolicy/shop/p", Pinned: "judge-1", Active: "judge-1", State: "Fits", Ready: "Ready"}},
				Tools: []ToolView{{Tool: "a", Class: "Write", Base: "Write", AtLeast: "Allow", Asks: []string{"judge (asked) by ToolPolicy/shop/p"}}},
			},
		},
		"a decider of another fingerprint": {
			policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p", testkit.WithDecider("judge"))}, models: []v1alpha1.DeciderModel{model("judge-2")},
			want: Who{Policies: all, Deciders: []Asked{{Decider: "judge", Policy: "ToolPolicy/shop/p", Pinned: "judge-1", Active: "judge-2", State: "Mismatch", Ready: "Ready"}}},
		},
		"a decider that is not there": {
			policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p", testkit.WithDecider("judge"))},
			want:     Who{Policies: all, Deciders: []Asked{{Decider: "judge", Policy: "ToolPolicy/shop/p", Pinned: "judge-1", State: "NotFound", Ready: "Unknown"}}},
		},
		"a decider that the namespace may not ask": {
			policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p", testkit.WithDecider("judge"))},
			models: []v1alpha1.DeciderModel{func() v1alpha1.DeciderModel {
				m := model("judge-1")
				m.Spec.Runtime = v1alpha1.RuntimeExternal
				return m
			}()},
			want: Who{Policies: all, Deciders: []Asked{{Decider: "judge", Policy: "ToolPolicy/shop/p", Pinned: "judge-1", Active: "judge-1", State: "NotAllowed", Ready: "Ready"}}},
		},
		"a policy in Audit": {
			policies: []*v1alpha1.ToolPolicy{testkit.ToolPolicy("p", testkit.InAudit(), testkit.WithTool("a", "Write"))},
			want: Who{
				Policies: []Applied{{Policy: "ToolPolicy/shop/p", Generation: 1, Mode: "Audit", Why: "its subjects are all service accounts of namespace shop", State: "Unknown"}},
				Tools:    []ToolView{{Tool: "a", Class: "Write", Base: "Write", AtLeast: "Allow", WouldBe: []string{"ToolPolicy/shop/p: Confirm ClassDefault"}}},
			},
		},
		"a state that the manager wrote": {
			policies: []*v1alpha1.ToolPolicy{func() *v1alpha1.ToolPolicy {
				p := testkit.ToolPolicy("p")
				p.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "DeciderNotFound"}}
				return p
			}()},
			want: Who{Policies: []Applied{{Policy: "ToolPolicy/shop/p", Generation: 1, Mode: "Enforce", Why: all[0].Why, State: "DeciderNotFound"}}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := &Snapshot{Now: now, DeciderModels: tt.models}
			for _, p := range tt.policies {
				s.ToolPolicies = append(s.ToolPolicies, *p)
			}
			for _, p := range tt.floors {
				s.ClusterToolPolicies = append(s.ClusterToolPolicies, *p)
			}
			tt.want.Caller = "shop/agent"
			got := WhoDecides(t.Context(), s, policy.Caller{Namespace: testkit.Namespace, ServiceAccount: testkit.ServiceAccount}, tt.tool)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
