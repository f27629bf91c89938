package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/testkit"
)

// with is a policy with one tool and one opinion.
func with(t testing.TB, name string, class v1alpha1.ClassName, options ...testkit.Option) *Compiled {
	t.Helper()
	return compiled(t, name, append(options, testkit.WithTool("act", class))...)
}

func ruling(t testing.TB, name string, outcome v1alpha1.StricterOutcome, options ...testkit.Option) *Compiled {
	t.Helper()
	return compiled(t, name, append(options, testkit.WithTool("act", read, testkit.Rule("of-"+name, "true", outcome)))...)
}

func brokenPolicy(options ...testkit.Option) *Compiled {
	p, _ := Compile(testkit.ToolPolicy("broken", append(options, testkit.WithTool("act", "Nonesuch"))...))
	return p
}

func brokenCluster(options ...testkit.Option) *Compiled {
	p, _ := CompileCluster(testkit.ClusterToolPolicy("broken", append(options, testkit.WithTool("act", "Nonesuch"))...))
	return p
}

func TestSeveralPolicies(t *testing.T) {
	invalid := shown{"Block", ReasonPolicyInvalid, byPolicyInvalid}
	none := shown{"Block", ReasonNoPolicy, byNoPolicy}
	auditOnly := shown{"Allow", ReasonAuditOnly, byAudit}
	by := func(outcome, rule string) shown { return shown{outcome, ReasonRule, "rule:of-" + rule} }
	cluster := func(outcome v1alpha1.StricterOutcome, options ...testkit.Option) *Compiled {
		return compiledCluster(t, "c", append(options, testkit.WithTool("act", read, testkit.Rule("of-c", "true", outcome)))...)
	}
	floor := testkit.MinimumMode(v1alpha1.ModeEnforce)
	for name, c := range map[string]struct {
		policies []*Compiled
		want     shown
	}{
		"none":                                             {nil, none},
		"Block before Clarify and Confirm":                 {[]*Compiled{ruling(t, "a", orConfirm), ruling(t, "b", orClarify), ruling(t, "d", orBlock)}, by("Block", "d")},
		"Clarify before Confirm":                           {[]*Compiled{ruling(t, "a", orConfirm), ruling(t, "b", orClarify)}, by("Clarify", "b")},
		"of equals the first by name":                      {[]*Compiled{ruling(t, "b", orBlock), ruling(t, "a", orBlock)}, by("Block", "a")},
		"for another service account":                      {[]*Compiled{with(t, "a", read), ruling(t, "b", orBlock, testkit.ForSubjects("other"))}, allowed},
		"for this service account":                         {[]*Compiled{with(t, "a", read), ruling(t, "b", orBlock, testkit.ForSubjects("other", "agent"))}, by("Block", "b")},
		"of another namespace":                             {[]*Compiled{with(t, "a", read), ruling(t, "b", orBlock, testkit.InNamespace("bank"))}, allowed},
		"of another namespace only":                        {[]*Compiled{with(t, "a", read, testkit.InNamespace("bank"))}, none},
		"a cluster policy alone":                           {[]*Compiled{compiledCluster(t, "c", testkit.WithTool("act", read))}, none},
		"a cluster policy alone that is only observed":     {[]*Compiled{compiledCluster(t, "c", testkit.InAudit(), testkit.WithTool("act", read))}, none},
		"a cluster policy adds":                            {[]*Compiled{with(t, "a", read), cluster(orBlock)}, by("Block", "c")},
		"a cluster policy for other namespaces":            {[]*Compiled{with(t, "a", read), cluster(orBlock, testkit.ForNamespaces("bank"))}, allowed},
		"a cluster policy for this namespace":              {[]*Compiled{with(t, "a", read), cluster(orBlock, testkit.ForNamespaces("bank", "shop"))}, by("Block", "c")},
		"a cluster policy takes nothing away":              {[]*Compiled{ruling(t, "a", orBlock), compiledCluster(t, "c", testkit.WithTool("act", read))}, by("Block", "a")},
		"one that does not compile blocks":                 {[]*Compiled{brokenPolicy()}, invalid},
		"one that does not compile beside one that allows": {[]*Compiled{with(t, "a", read), brokenPolicy()}, invalid},
		"one that does not compile for others":             {[]*Compiled{with(t, "a", read), brokenPolicy(testkit.ForSubjects("other"))}, allowed},
		"a cluster policy that does not compile":           {[]*Compiled{with(t, "a", read), brokenCluster()}, invalid},
		"a cluster policy alone that does not compile":     {[]*Compiled{brokenCluster()}, invalid},
		"the same, only observed, admits nobody":           {[]*Compiled{brokenCluster(testkit.InAudit())}, none},
		"a file that could not be read":                    {[]*Compiled{Invalid(PolicyID{Kind: "ToolPolicy", Namespace: "shop", Name: "x"}, []string{"shop"}, nil)}, invalid},
		"a file that could not be read, about others":      {[]*Compiled{with(t, "a", read), Invalid(PolicyID{Name: "x"}, []string{"bank"}, nil)}, allowed},
		"a file that could not be read, about whom":        {[]*Compiled{with(t, "a", read), Invalid(PolicyID{Name: "x"}, nil, nil)}, invalid},
		"Audit only": {[]*Compiled{ruling(t, "a", orBlock, testkit.InAudit())}, auditOnly},
		"Audit only for a tool that nobody lists":              {[]*Compiled{compiled(t, "a", testkit.InAudit())}, auditOnly},
		"Audit only that does not compile":                     {[]*Compiled{brokenPolicy(testkit.InAudit())}, auditOnly},
		"Audit beside Enforce adds nothing":                    {[]*Compiled{with(t, "a", read), ruling(t, "b", orBlock, testkit.InAudit())}, allowed},
		"Audit beside Enforce takes nothing away":              {[]*Compiled{ruling(t, "a", orBlock), with(t, "b", read, testkit.InAudit())}, by("Block", "a")},
		"Audit beside a cluster policy in force":               {[]*Compiled{with(t, "a", read, testkit.InAudit()), cluster(orConfirm)}, by("Confirm", "c")},
		"a cluster policy that wants Enforce":                  {[]*Compiled{ruling(t, "a", orBlock, testkit.InAudit()), compiledCluster(t, "c", floor)}, by("Block", "a")},
		"a cluster policy that wants Enforce elsewhere":        {[]*Compiled{ruling(t, "a", orBlock, testkit.InAudit()), compiledCluster(t, "c", floor, testkit.ForNamespaces("bank"))}, auditOnly},
		"a cluster policy that wants Enforce and only watches": {[]*Compiled{ruling(t, "a", orBlock, testkit.InAudit()), compiledCluster(t, "c", floor, testkit.InAudit())}, by("Block", "a")},
		"the same, though it does not compile":                 {[]*Compiled{ruling(t, "a", orBlock, testkit.InAudit()), brokenCluster(floor, testkit.InAudit())}, by("Block", "a")},
		"a cluster policy in Audit stays so":                   {[]*Compiled{with(t, "a", read), cluster(orBlock, testkit.InAudit(), floor)}, allowed},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, show(decide(request("act", nil), c.policies...))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWouldBe(t *testing.T) {
	asks := testkit.WithClass(read, testkit.Asks(toAllow, testkit.Questions("asked"), testkit.Step(toBlock, testkit.Below("asked", 50))))
	watching := with(t, "b", read, testkit.InAudit(), testkit.WithDecider("judge"), asks)
	for name, c := range map[string]struct {
		policies []*Compiled
		asked    float64
		approval *Approval
		want     []AuditVerdict
	}{
		"of a rule":                            {[]*Compiled{with(t, "a", read), ruling(t, "b", orBlock, testkit.InAudit())}, 1, nil, []AuditVerdict{{"ToolPolicy/shop/b", Block, ReasonRule, "rule:of-b"}}},
		"of nothing to object":                 {[]*Compiled{with(t, "a", read), with(t, "b", read, testkit.InAudit())}, 1, nil, []AuditVerdict{{"ToolPolicy/shop/b", Allow, ReasonRulesPassed, byRules}}},
		"of a person needed":                   {[]*Compiled{with(t, "a", read), with(t, "b", destructive, testkit.InAudit())}, 1, nil, []AuditVerdict{{"ToolPolicy/shop/b", Confirm, ReasonIrreversible, byIrreversible}}},
		"of a ladder":                          {[]*Compiled{with(t, "a", read), watching}, 0.2, nil, []AuditVerdict{{"ToolPolicy/shop/b", Block, ReasonThreshold, byDecider}}},
		"of one that does not compile":         {[]*Compiled{with(t, "a", read), brokenPolicy(testkit.InAudit())}, 1, nil, []AuditVerdict{{"ToolPolicy/shop/broken", Block, ReasonPolicyInvalid, byPolicyInvalid}}},
		"of an unknown tool":                   {[]*Compiled{with(t, "a", read), compiled(t, "b", testkit.InAudit())}, 1, nil, []AuditVerdict{{"ToolPolicy/shop/b", Block, ReasonUnknownTool, "rule:unknown-tool"}}},
		"of one that has no opinion":           {[]*Compiled{with(t, "a", read), compiled(t, "b", testkit.InAudit(), testkit.UnknownTools("Defer"))}, 1, nil, nil},
		"of a ladder after others blocked":     {[]*Compiled{ruling(t, "a", orBlock), watching}, 0.2, nil, nil},
		"of a ladder that an approval skips":   {[]*Compiled{ruling(t, "a", orConfirm), watching}, 0.2, &Approval{"x", []string{"any"}}, nil},
		"of each policy that is only observed": {[]*Compiled{with(t, "a", read), ruling(t, "b", orConfirm, testkit.InAudit()), ruling(t, "d", orClarify, testkit.InAudit())}, 1, nil, []AuditVerdict{{"ToolPolicy/shop/b", Confirm, ReasonRule, "rule:of-b"}, {"ToolPolicy/shop/d", Clarify, ReasonRule, "rule:of-d"}}},
	} {
		t.Run(name, func(t *testing.T) {
			j := judge(request("act", nil), c.policies...)
			v := j.Settle(replying(j, questions.Answers{"asked": yes(c.asked)}), c.approval)
			if diff := cmp.Diff(c.want, v.WouldBe); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTheClassOfACallIsTheStrictestOfAll(t *testing.T) {
	cluster := func(class v1alpha1.ClassName, options ...testkit.Option) *Compiled {
		return compiledCluster(t, "c", append(options, testkit.WithClass("Own", testkit.Base("Destructive")), testkit.WithTool("act", class))...)
	}
	for name, c := range map[string]struct {
		policies   []*Compiled
		name, base string
	}{
		"one":                                       {[]*Compiled{with(t, "a", write)}, "Write", "Write"},
		"the stricter of two":                       {[]*Compiled{with(t, "a", write), with(t, "b", read)}, "Write", "Write"},
		"the stricter of cluster and namespace":     {[]*Compiled{with(t, "a", read), cluster(write)}, "Write", "Write"},
		"the namespace names what both see":         {[]*Compiled{with(t, "a", destructive), cluster("Own")}, "Destructive", "Destructive"},
		"External and Destructive, in any order":    {[]*Compiled{with(t, "a", external), with(t, "b", destructive)}, "Destructive", "Destructive"},
		"Destructive and External, in any order":    {[]*Compiled{with(t, "a", destructive), with(t, "b", external)}, "Destructive", "Destructive"},
		"an Audit policy says nothing":              {[]*Compiled{with(t, "a", read), with(t, "b", destructive, testkit.InAudit())}, "ReadOnly", "ReadOnly"},
		"Audit only counts, for the record":         {[]*Compiled{with(t, "b", destructive, testkit.InAudit())}, "Destructive", "Destructive"},
		"Audit only of a read":                      {[]*Compiled{with(t, "b", read, testkit.InAudit())}, "ReadOnly", "ReadOnly"},
		"Audit only beside a cluster's read":        {[]*Compiled{with(t, "b", write, testkit.InAudit()), cluster(read)}, "Write", "Write"},
		"Audit only, and nobody knows the tool":     {[]*Compiled{compiled(t, "b", testkit.InAudit())}, "", "Destructive"},
		"Audit only, and nobody has an opinion":     {[]*Compiled{compiled(t, "b", testkit.InAudit(), testkit.UnknownTools("Defer"))}, "", "Destructive"},
		"no policy":                                 {nil, "", "Destructive"},
		"a policy that does not compile":            {[]*Compiled{with(t, "a", read), brokenPolicy()}, "", "Destructive"},
		"unknown to one and a read to another":      {[]*Compiled{with(t, "a", read), compiled(t, "b", testkit.UnknownTools("Confirm"))}, "", "Destructive"},
		"listed by an Audit policy and by no other": {[]*Compiled{with(t, "a", write, testkit.InAudit()), compiled(t, "b")}, "", "Destructive"},
	} {
		t.Run(name, func(t *testing.T) {
			j := judge(request("act", nil), c.policies...)
			gotName, base := j.Class()
			if gotName != c.name || base != c.base || j.IsRead() != (c.base == "ReadOnly") {
				t.Errorf("got %q (%s), read %v; want %q (%s)", gotName, base, j.IsRead(), c.name, c.base)
			}
		})
	}
}

func TestPoliciesAreNamedWithTheirGenerations(t *testing.T) {
	j := judge(request("act", nil), with(t, "b", read, testkit.InAudit()), with(t, "d", read), compiledCluster(t, "c", testkit.WithTool("act", read)))
	want := []string{"ClusterToolPolicy/c@1", "ToolPolicy/shop/d@1", "ToolPolicy/shop/b@1"}
	if diff := cmp.Diff(want, j.Policies()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSet(t *testing.T) {
	a, b := with(t, "a", read), with(t, "b", read, testkit.InNamespace("bank"))
	everywhere := compiledCluster(t, "everywhere")
	some := compiledCluster(t, "some", testkit.ForNamespaces("bank", "farm"))
	s := NewSet([]*Compiled{b, some, a, everywhere})
	if s.Len() != 4 {
		t.Errorf("Len is %d", s.Len())
	}
	names := func(list []*Compiled) []string {
		var out []string
		for _, p := range list {
			out = append(out, p.ID.String())
		}
		return out
	}
	for namespace, want := range map[string][]string{
		"shop":     {"ClusterToolPolicy/everywhere", "ToolPolicy/shop/a"},
		"bank":     {"ClusterToolPolicy/everywhere", "ClusterToolPolicy/some", "ToolPolicy/bank/b"},
		"farm":     {"ClusterToolPolicy/everywhere", "ClusterToolPolicy/some"},
		"nonesuch": {"ClusterToolPolicy/everywhere"},
		"":         {"ClusterToolPolicy/everywhere"},
	} {
		if diff := cmp.Diff(want, names(s.forNamespace(namespace))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", namespace, diff)
		}
	}
	want := []string{"ClusterToolPolicy/everywhere", "ClusterToolPolicy/some", "ToolPolicy/bank/b", "ToolPolicy/shop/a"}
	if diff := cmp.Diff(want, names(s.Policies())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if v := NewSet(nil).Judge(t.Context(), request("act", nil)).Settle(nil, nil); v.Reason != ReasonNoPolicy {
		t.Errorf("an empty set says %s", v.Reason)
	}
}

func TestPoliciesThatWantPermitsForDifferentToolServersBlock(t *testing.T) {
	permitting := func(name, audience string, o ...testkit.Option) *Compiled {
		return compiled(t, name, append([]testkit.Option{testkit.WithTool("act", read, testkit.Permit(audience))}, o...)...)
	}
	fine := shown{"Allow", ReasonRulesPassed, byRules}
	conflict := shown{"Block", ReasonPermitConflict, byPermitConflict}
	for name, c := range map[string]struct {
		policies []*Compiled
		want     shown
	}{
		"one wants a permit":           {[]*Compiled{permitting("a", "shop"), with(t, "b", read)}, fine},
		"both want the same":           {[]*Compiled{permitting("a", "shop"), permitting("b", "shop")}, fine},
		"two want different ones":      {[]*Compiled{permitting("a", "shop"), permitting("b", "bank")}, conflict},
		"in the other order":           {[]*Compiled{permitting("b", "bank"), permitting("a", "shop")}, conflict},
		"a third wants none":           {[]*Compiled{permitting("a", "shop"), with(t, "b", read), permitting("c", "bank")}, conflict},
		"names that differ in a case":  {[]*Compiled{permitting("a", "shop"), permitting("b", "Shop")}, conflict},
		"one is only observed":         {[]*Compiled{permitting("a", "shop"), permitting("b", "bank", testkit.InAudit())}, fine},
		"a cluster policy and another": {[]*Compiled{permitting("a", "shop"), compiledCluster(t, "c", testkit.WithTool("act", read, testkit.Permit("bank")))}, conflict},
		"for another tool":             {[]*Compiled{permitting("a", "shop"), compiled(t, "b", testkit.WithTool("act", read), testkit.WithTool("other", read, testkit.Permit("bank")))}, fine},
	} {
		t.Run(name, func(t *testing.T) {
			v := judge(request("act", nil), c.policies...).Settle(nil, nil)
			if diff := cmp.Diff(c.want, shown{v.Outcome.String(), v.Reason, v.By}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestNoApprovalSettlesAConflictOfPermits(t *testing.T) {
	want := func(name, audience string) *Compiled {
		return compiled(t, name, testkit.WithTool("act", destructive, testkit.Permit(audience)))
	}
	j := judge(request("act", nil), want("a", "shop"), want("b", "bank"))
	if v := j.Settle(nil, &Approval{Name: "ta", Shown: []string{"a", "b"}}); v.Outcome != Block || v.Reason != ReasonPermitConflict || !j.IsSettled() || j.MayNeedPerson() {
		t.Errorf("%+v", v)
	}
}
