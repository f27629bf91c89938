package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/testkit"
)

func TestTheOrderOfChecksIsPinned(t *testing.T) {
	want := []string{
		"class-forbidden", "not-attested", "fact-missing", "missing-scope", "arguments-schema", "path-escape",
		"host-not-allowed", "argument-source", "rules",
	}
	var got []string
	for _, c := range checks {
		got = append(got, c.name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("another order shows other reasons and runs dear checks first (-want +got):\n%s", diff)
	}
}

// fault is one thing that a call fails. Faults are in the order in which they are found.
type fault struct {
	name   string
	policy []testkit.Option
	class  []testkit.ClassOption
	tool   []testkit.ToolOption
	want   shown
}

func faults(key string) []fault {
	return []fault{
		{name: "a forbidden class", class: []testkit.ClassOption{testkit.Approval(v1alpha1.ApprovalForbidden)},
			want: shown{"Block", ReasonClassForbidden, "rule:class-forbidden"}},
		{name: "no attestation", policy: []testkit.Option{testkit.Attested(key)},
			want: shown{"Block", ReasonNotAttested, "rule:not-attested"}},
		{name: "a missing fact", policy: []testkit.Option{testkit.WithFact("region", v1alpha1.TrustCaller, v1alpha1.FactRequired)},
			want: shown{"Block", ReasonFactMissing, "rule:fact-missing"}},
		{name: "a missing scope", tool: []testkit.ToolOption{testkit.Scopes("act:do")},
			want: shown{"Block", ReasonMissingScope, "rule:missing-scope"}},
		{name: "arguments that do not fit", tool: []testkit.ToolOption{testkit.Schema(`{"required": ["id"]}`)},
			want: shown{"Block", ReasonArgumentsInvalid, "rule:arguments-schema"}},
		{name: "a path outside", tool: []testkit.ToolOption{testkit.Path("/path", "/srv/data")},
			want: shown{"Block", ReasonPathNotAllowed, "rule:path-escape"}},
		{name: "a host that is not listed", tool: []testkit.ToolOption{testkit.Host("/url", "api.example.com")},
			want: shown{"Block", ReasonHostNotAllowed, "rule:host-not-allowed"}},
		{name: "a value from nowhere", tool: []testkit.ToolOption{testkit.Source("/memo", orBlock, v1alpha1.SourceUser)},
			want: shown{"Block", ReasonSourceNotAccepted, "rule:argument-source"}},
		{name: "a rule", tool: []testkit.ToolOption{testkit.Rule("never", "tool.name == 'act'", orBlock)},
			want: shown{"Block", ReasonRule, "rule:never"}},
		{name: "no answer", policy: []testkit.Option{testkit.WithDecider("judge")},
			class: []testkit.ClassOption{testkit.Asks(toAllow, testkit.Questions("asked")), testkit.WhenUnavailable(v1alpha1.UnavailableBlock)},
			want:  shown{"Block", ReasonDeciderUnavailable, "decider"}},
	}
}

func (f fault) join(o fault) fault {
	return fault{
		policy: append(append([]testkit.Option{}, f.policy...), o.policy...),
		class:  append(append([]testkit.ClassOption{}, f.class...), o.class...),
		tool:   append(append([]testkit.ToolOption{}, f.tool...), o.tool...),
	}
}

func (f fault) judge(t *testing.T) shown {
	t.Helper()
	options := append([]testkit.Option{testkit.WithClass(write, f.class...), testkit.WithTool("act", write, f.tool...)}, f.policy...)
	arguments := args{"path": "/etc/shadow", "url": "https://evil.example.net/", "memo": "quartz zebra"}
	return show(decide(request("act", arguments), compiled(t, "p", options...)))
}

func TestOfTwoFaultsTheEarlierOneIsShown(t *testing.T) {
	key, _ := newFrontDoor(t)
	all := faults(key)
	for i, f := range all {
		t.Run(f.name, func(t *testing.T) {
			if diff := cmp.Diff(f.want, f.judge(t)); diff != "" {
				t.Fatalf("alone (-want +got):\n%s", diff)
			}
			for _, later := range all[i+1:] {
				if diff := cmp.Diff(f.want, f.join(later).judge(t)); diff != "" {
					t.Errorf("with %s too (-want +got):\n%s", later.name, diff)
				}
			}
		})
	}
}

func TestWhatComesBeforeTheChecks(t *testing.T) {
	unlisted := request("other", nil)
	listing := func(options ...testkit.Option) *Compiled {
		return compiled(t, "p", append(options, testkit.WithTool("act", destructive))...)
	}
	broken, errs := Compile(testkit.ToolPolicy("p", testkit.WithTool("act", "Nonesuch")))
	if len(errs) == 0 {
		t.Fatal("a tool of an unknown class must not compile")
	}
	for name, c := range map[string]struct {
		request  *Request
		policies []*Compiled
		want     shown
	}{
		"no policy before an unknown tool":             {unlisted, []*Compiled{listing(testkit.ForSubjects("another"))}, shown{"Block", ReasonNoPolicy, byNoPolicy}},
		"a policy that does not compile before a tool": {unlisted, []*Compiled{broken}, shown{"Block", ReasonPolicyInvalid, byPolicyInvalid}},
		"an unknown tool before all checks":            {unlisted, []*Compiled{listing(testkit.WithFact("f", "", v1alpha1.FactRequired))}, shown{"Block", ReasonUnknownTool, "rule:unknown-tool"}},
		"a rule before the person that a class needs":  {request("act", nil), []*Compiled{compiled(t, "p", testkit.WithTool("act", destructive, testkit.Rule("never", "true", orBlock)))}, shown{"Block", ReasonRule, "rule:never"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, show(decide(c.request, c.policies...))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReasonsToConfirmAddUp(t *testing.T) {
	p := compiled(t, "p", testkit.WithTool("act", destructive,
		testkit.Source("/memo", orConfirm, v1alpha1.SourceUser), testkit.Rule("large", "args.n > 5", orConfirm)))
	v := decide(request("act", args{"memo": "quartz zebra", "n": int64(9)}), p)
	want := []string{
		"ToolPolicy/shop/p policy:irreversible Irreversible",
		"ToolPolicy/shop/p rule:argument-source SourceNotAccepted",
		"ToolPolicy/shop/p rule:large Rule",
	}
	if diff := cmp.Diff(want, v.ConfirmKeys()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(shown{"Confirm", ReasonSourceNotAccepted, "rule:argument-source"}, show(v)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAClarifySettlesItsPolicy(t *testing.T) {
	options := []testkit.Option{testkit.WithDecider("judge"), testkit.WithClass(write, testkit.Asks(toBlock, testkit.Questions("asked"))),
		testkit.WithTool("act", write, testkit.Rule("which", "size(args) == 0", orClarify)),
		testkit.WithTool("fits", write, testkit.Schema(`{"required": ["id"]}`), testkit.ClarifyOnViolation(""), testkit.Rule("never", "true", orBlock))}
	p := compiled(t, "p", options...)
	for tool, want := range map[string]shown{
		"act":  {"Clarify", ReasonRule, "rule:which"},
		"fits": {"Clarify", ReasonArgumentsInvalid, "rule:arguments-schema"},
	} {
		j := judge(request(tool, nil), p)
		if diff := cmp.Diff(want, show(j.Settle(nil, nil))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tool, diff)
		}
		if len(j.Asks()) != 0 || j.IsSettled() {
			t.Errorf("%s: asked %+v; settled for all policies: %v", tool, j.Asks(), j.IsSettled())
		}
	}
	other := ruling(t, "q", orBlock)
	if diff := cmp.Diff(shown{"Block", ReasonRule, "rule:of-q"}, show(decide(request("act", nil), p, other))); diff != "" {
		t.Errorf("beside a policy that blocks (-want +got):\n%s", diff)
	}
}
