package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/testkit"
)

func TestTerms(t *testing.T) {
	disclose := func(d v1alpha1.Disclosure) testkit.Option {
		return testkit.WithRules(func(r *v1alpha1.PolicyRules) { r.Disclose = d })
	}
	capture := func(c v1alpha1.CaptureState) testkit.Option {
		return testkit.WithRules(func(r *v1alpha1.PolicyRules) { r.CaptureState = c })
	}
	settings := func(a v1alpha1.ApprovalSettings) testkit.Option {
		return testkit.WithRules(func(r *v1alpha1.PolicyRules) { r.Approvals = &a })
	}
	budget := func(n, window int32, beyond v1alpha1.BudgetOutcome) testkit.Option {
		return settings(v1alpha1.ApprovalSettings{Budget: &v1alpha1.ConfirmationBudget{Confirmations: n, WindowSeconds: window, Beyond: beyond}})
	}
	sensitive := func(p ...v1alpha1.Pointer) testkit.ToolOption {
		return func(r *v1alpha1.ToolRule) { r.Sensitive = p }
	}
	defaults := func(change func(*Terms)) Terms {
		out := Terms{ClarifyLimit: 2, Approvals: v1alpha1.ApprovalSettings{TTLSeconds: 900, PermitSeconds: 30}}
		if change != nil {
			change(&out)
		}
		return out
	}
	deferring := func(options ...testkit.Option) *Compiled { return compiledCluster(t, "c", options...) }
	for name, c := range map[string]struct {
		policies []*Compiled
		want     Terms
	}{
		"the defaults":                       {[]*Compiled{with(t, "a", read)}, defaults(nil)},
		"of one policy":                      {[]*Compiled{with(t, "a", read, disclose("Full"), settings(v1alpha1.ApprovalSettings{TTLSeconds: 60, PermitSeconds: 5}))}, defaults(func(w *Terms) { w.Disclose, w.Approvals.TTLSeconds, w.Approvals.PermitSeconds = "Full", 60, 5 })},
		"nothing is said about keeping":      {[]*Compiled{with(t, "a", read, capture("Plain")), with(t, "b", read)}, defaults(func(w *Terms) { w.CaptureState = "Plain" })},
		"Encrypted before Plain":             {[]*Compiled{with(t, "a", read, capture("Plain")), deferring(capture("Encrypted"))}, defaults(func(w *Terms) { w.CaptureState = "Encrypted" })},
		"Digest before all":                  {[]*Compiled{with(t, "a", read, capture("Encrypted")), with(t, "b", read, capture("Digest")), deferring(capture("Plain"))}, defaults(func(w *Terms) { w.CaptureState = "Digest" })},
		"Minimal before Full":                {[]*Compiled{with(t, "a", read, disclose("Full")), with(t, "b", read, disclose("Minimal"))}, defaults(func(w *Terms) { w.Disclose = "Minimal" })},
		"Minimal before Full, in any order":  {[]*Compiled{with(t, "a", read, disclose("Minimal")), with(t, "b", read, disclose("Full"))}, defaults(func(w *Terms) { w.Disclose = "Minimal" })},
		"Full only when all say so":          {[]*Compiled{with(t, "a", read, disclose("Full")), with(t, "b", read)}, defaults(nil)},
		"all say Full":                       {[]*Compiled{with(t, "a", read, disclose("Full")), with(t, "b", read, disclose("Full"))}, defaults(func(w *Terms) { w.Disclose = "Full" })},
		"a cluster policy discloses nothing": {[]*Compiled{with(t, "a", read, disclose("Full")), deferring(disclose("Minimal"))}, defaults(func(w *Terms) { w.Disclose = "Minimal" })},
		"the shortest times":                 {[]*Compiled{with(t, "a", read, settings(v1alpha1.ApprovalSettings{TTLSeconds: 60, PermitSeconds: 60})), with(t, "b", read, settings(v1alpha1.ApprovalSettings{TTLSeconds: 600, PermitSeconds: 10}))}, defaults(func(w *Terms) { w.Approvals.TTLSeconds, w.Approvals.PermitSeconds = 60, 10 })},
		"the least clarifications":           {[]*Compiled{with(t, "a", read, testkit.WithRules(func(r *v1alpha1.PolicyRules) { r.ClarifyLimit = 5 })), with(t, "b", read, testkit.WithRules(func(r *v1alpha1.PolicyRules) { r.ClarifyLimit = 1 }))}, defaults(func(w *Terms) { w.ClarifyLimit = 1 })},
		"one budget": {[]*Compiled{with(t, "a", read), with(t, "b", read, budget(9, 60, "Clarify"))}, defaults(func(w *Terms) {
			w.Approvals.Budget = &v1alpha1.ConfirmationBudget{Confirmations: 9, WindowSeconds: 60, Beyond: "Clarify"}
		})},
		"the tighter of two budgets": {[]*Compiled{with(t, "a", read, budget(9, 60, "Clarify")), with(t, "b", read, budget(5, 600, "Clarify"))}, defaults(func(w *Terms) {
			w.Approvals.Budget = &v1alpha1.ConfirmationBudget{Confirmations: 5, WindowSeconds: 600, Beyond: "Clarify"}
		})},
		"what neither budget would spend": {[]*Compiled{with(t, "a", read, budget(5, 60, "Block")), with(t, "b", read, budget(9, 600, "Clarify"))}, defaults(func(w *Terms) {
			w.Approvals.Budget = &v1alpha1.ConfirmationBudget{Confirmations: 5, WindowSeconds: 600, Beyond: "Block"}
		})},
		"a budget of a policy that does not know the tool": {[]*Compiled{with(t, "a", read), deferring(budget(3, 7200, "Block"))}, defaults(func(w *Terms) {
			w.Approvals.Budget = &v1alpha1.ConfirmationBudget{Confirmations: 3, WindowSeconds: 7200, Beyond: "Block"}
		})},
		"with that of one that does": {[]*Compiled{with(t, "a", read, budget(9, 60, "Clarify")), deferring(budget(30, 7200, "Block"))}, defaults(func(w *Terms) {
			w.Approvals.Budget = &v1alpha1.ConfirmationBudget{Confirmations: 9, WindowSeconds: 7200, Beyond: "Block"}
		})},
		"but its times are not those of the call":          {[]*Compiled{with(t, "a", read), deferring(settings(v1alpha1.ApprovalSettings{TTLSeconds: 60, PermitSeconds: 5}))}, defaults(nil)},
		"no budget of a policy that is only observed":      {[]*Compiled{with(t, "a", read), with(t, "b", read, testkit.InAudit(), budget(1, 60, "Block"))}, defaults(nil)},
		"no budget of a policy that is not for the caller": {[]*Compiled{with(t, "a", read), with(t, "b", read, testkit.ForSubjects("another"), budget(1, 60, "Block"))}, defaults(nil)},
		"an Audit policy sets no times":                    {[]*Compiled{with(t, "a", read), with(t, "b", read, testkit.InAudit(), settings(v1alpha1.ApprovalSettings{TTLSeconds: 30}))}, defaults(nil)},
		"all that is sensitive": {[]*Compiled{compiled(t, "a", testkit.WithTool("act", read, sensitive("/b", "/a"))), compiled(t, "b", testkit.WithTool("act", read, sensitive("/a", "/c")))},
			defaults(func(w *Terms) { w.Sensitive = []string{"/a", "/b", "/c"} })},
		"a permit":                       {[]*Compiled{with(t, "a", read), compiled(t, "b", testkit.WithTool("act", read, testkit.Permit("mcp.shop")))}, defaults(func(w *Terms) { w.PermitAudience = "mcp.shop" })},
		"a permit of another tool":       {[]*Compiled{compiled(t, "b", testkit.WithTool("act", read), testkit.WithTool("other", read, testkit.Permit("mcp.shop")))}, defaults(nil)},
		"a policy that does not compile": {[]*Compiled{with(t, "a", read), brokenPolicy()}, defaults(nil)},
		"no policy":                      {nil, Terms{ClarifyLimit: 10, Approvals: v1alpha1.ApprovalSettings{TTLSeconds: 86400, PermitSeconds: 60}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, judge(request("act", nil), c.policies...).Terms()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTermsShareNothingWithThePolicy(t *testing.T) {
	p := with(t, "a", read, testkit.WithRules(func(r *v1alpha1.PolicyRules) {
		r.Approvals = &v1alpha1.ApprovalSettings{Budget: &v1alpha1.ConfirmationBudget{Confirmations: 3, WindowSeconds: 60}}
	}))
	judge(request("act", nil), p).Terms().Approvals.Budget.Confirmations = 1000
	if got := judge(request("act", nil), p).Terms().Approvals.Budget.Confirmations; got != 3 {
		t.Errorf("a caller changed the policy: %d confirmations", got)
	}
}

func TestConfirmMessage(t *testing.T) {
	says := func(expression v1alpha1.Expression) testkit.Option {
		return testkit.WithTool("act", destructive, func(r *v1alpha1.ToolRule) { r.ConfirmMessage = expression })
	}
	const plain = "Run act with exactly these arguments?"
	for name, c := range map[string]struct {
		policies []*Compiled
		tool     string
		want     string
	}{
		"without words":                     {[]*Compiled{with(t, "a", destructive)}, "act", plain},
		"with words":                        {[]*Compiled{compiled(t, "a", says("'Delete ' + args.name + '?'"))}, "act", "Delete db1?"},
		"words about what is missing":       {[]*Compiled{compiled(t, "a", says("'Delete ' + args.nonesuch + '?'"))}, "act", plain},
		"no words after all":                {[]*Compiled{compiled(t, "a", says("''"))}, "act", plain},
		"the first policy that has words":   {[]*Compiled{with(t, "a", destructive), compiled(t, "b", says("'b?'")), compiled(t, "c", says("'c?'"))}, "act", "b?"},
		"not those of an Audit policy":      {[]*Compiled{with(t, "a", destructive), compiled(t, "b", testkit.InAudit(), says("'b?'"))}, "act", plain},
		"of a policy that does not compile": {[]*Compiled{brokenPolicy()}, "act", plain},
		"of no policy":                      {nil, "act", plain},
		"of a name that nobody can list":    {[]*Compiled{compiled(t, "a", testkit.UnknownTools("Confirm"))}, "act\n\u202eyes", `Run "act\n\u202eyes" with exactly these arguments?`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judge(request(c.tool, args{"name": "db1"}), c.policies...).ConfirmMessage(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestPolicyDigest(t *testing.T) {
	base := func() []testkit.Option {
		return []testkit.Option{testkit.WithTool("act", write, testkit.Scopes("a:b")), testkit.Grant("a:b"), testkit.WithClass(write)}
	}
	digest := func(policies ...*Compiled) string { return judge(request("act", nil), policies...).PolicyDigest() }
	was := digest(compiled(t, "p", base()...))
	rules := func(change func(*v1alpha1.PolicyRules)) []testkit.Option {
		return append(base(), testkit.WithRules(change))
	}
	generation := testkit.ToolPolicy("p", base()...)
	generation.Generation = 7
	later, _ := Compile(generation)
	for name, c := range map[string]struct {
		policies []*Compiled
		isSame   bool
	}{
		"the same policy":                    {[]*Compiled{compiled(t, "p", base()...)}, true},
		"the same at another generation":     {[]*Compiled{later}, true},
		"another tool beside it":             {[]*Compiled{compiled(t, "p", append(base(), testkit.WithTool("other", read))...)}, true},
		"another tool before it":             {[]*Compiled{compiled(t, "p", append([]testkit.Option{testkit.WithTool("other", read)}, base()...)...)}, true},
		"an Audit policy beside it":          {[]*Compiled{compiled(t, "p", base()...), with(t, "q", read, testkit.InAudit())}, true},
		"a policy without opinion beside it": {[]*Compiled{compiled(t, "p", base()...), compiledCluster(t, "c")}, true},
		"another policy beside it":           {[]*Compiled{compiled(t, "p", base()...), with(t, "q", read)}, false},
		"another name":                       {[]*Compiled{compiled(t, "q", base()...)}, false},
		"another class":                      {[]*Compiled{compiled(t, "p", rules(func(r *v1alpha1.PolicyRules) { r.Tools[0].Class = read })...)}, false},
		"a rule of the tool":                 {[]*Compiled{compiled(t, "p", rules(func(r *v1alpha1.PolicyRules) { r.Tools[0].Note = "careful" })...)}, false},
		"the class's own settings":           {[]*Compiled{compiled(t, "p", rules(func(r *v1alpha1.PolicyRules) { r.Classes[0].Approval = "Always" })...)}, false},
		"a grant":                            {[]*Compiled{compiled(t, "p", rules(func(r *v1alpha1.PolicyRules) { r.Grants[0].Scopes = append(r.Grants[0].Scopes, "c:d") })...)}, false},
		"a fact":                             {[]*Compiled{compiled(t, "p", rules(func(r *v1alpha1.PolicyRules) { r.FactsFrom = []v1alpha1.FactSource{{Name: "x"}} })...)}, false},
		"a decider":                          {[]*Compiled{compiled(t, "p", append(base(), testkit.WithDecider("judge"))...)}, false},
		"what happens to unknown tools":      {[]*Compiled{compiled(t, "p", append(base(), testkit.UnknownTools("Defer"))...)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := digest(c.policies...); (got == was) != c.isSame || len(got) != 64 || strings.Trim(got, "0123456789abcdef") != "" {
				t.Errorf("digest %s, was %s; want the same: %v", got, was, c.isSame)
			}
		})
	}
	if listed, not := digest(compiled(t, "p", base()...)), judge(request("other", nil), compiled(t, "p", base()...)).PolicyDigest(); listed == not {
		t.Error("a tool that is not listed has the digest of one that is")
	}
}

func TestSourcesAreThoseOfTheFirstPolicyInForce(t *testing.T) {
	r := request("act", args{"memo": "walrus harbour", "n": int64(7)}, userSaid("pay walrus harbour"))
	places := func(policies ...*Compiled) map[string]string {
		out := map[string]string{}
		for _, f := range judge(r, policies...).Sources() {
			out[f.Pointer] = string(f.Source)
		}
		return out
	}
	want := map[string]string{"/memo": "User", "/n": "Nowhere"}
	if diff := cmp.Diff(want, places(with(t, "a", write), with(t, "b", write, testkit.InAudit()))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, policies := range map[string][]*Compiled{
		"no policy": nil, "an unknown tool": {compiled(t, "a")}, "a policy that does not compile": {brokenPolicy()}, "Audit only": {with(t, "a", write, testkit.InAudit())},
	} {
		if got := places(policies...); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
