package policy

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/testkit"
)

func TestScopes(t *testing.T) {
	needs := testkit.WithTool("act", read, testkit.Scopes("db:read", "db:list"))
	local := func(options ...testkit.Option) *Compiled { return compiled(t, "p", append(options, needs)...) }
	cluster := func(options ...testkit.Option) *Compiled { return compiledCluster(t, "c", options...) }
	both := testkit.Grant("db:read", "db:list")
	elsewhere := testkit.WithRules(func(r *v1alpha1.PolicyRules) { r.Grants[0].Namespace = "bank" })
	forAnother := testkit.WithRules(func(r *v1alpha1.PolicyRules) { r.Grants[0].ServiceAccount = "other" })
	for name, c := range map[string]struct {
		policies []*Compiled
		change   func(*Request)
		isHeld   bool
	}{
		"both scopes are granted":                             {policies: []*Compiled{local(both)}, isHeld: true},
		"in two grants":                                       {policies: []*Compiled{local(testkit.Grant("db:read"), testkit.Grant("db:list"))}, isHeld: true},
		"one is missing":                                      {policies: []*Compiled{local(testkit.Grant("db:read"))}},
		"none is granted":                                     {policies: []*Compiled{local()}},
		"granted in another case":                             {policies: []*Compiled{local(testkit.Grant("DB:read", "db:list"))}},
		"a star is a name and no pattern":                     {policies: []*Compiled{local(testkit.Grant("db:*"))}},
		"granted to another service account":                  {policies: []*Compiled{local(both, forAnother)}},
		"until later":                                         {policies: []*Compiled{local(testkit.GrantUntil(noon.Add(time.Second), "db:read", "db:list"))}, isHeld: true},
		"until this very moment":                              {policies: []*Compiled{local(testkit.GrantUntil(noon, "db:read", "db:list"))}},
		"until earlier":                                       {policies: []*Compiled{local(testkit.GrantUntil(noon.Add(-time.Second), "db:read", "db:list"))}},
		"until some time, asked at none":                      {policies: []*Compiled{local(testkit.GrantUntil(noon, "db:read", "db:list"))}, change: func(r *Request) { r.Now = time.Time{} }},
		"granted by a cluster policy":                         {policies: []*Compiled{local(), cluster(both)}, isHeld: true},
		"half by the cluster, half by the namespace":          {policies: []*Compiled{local(testkit.Grant("db:read")), cluster(testkit.Grant("db:list"))}, isHeld: true},
		"granted by the cluster in another namespace":         {policies: []*Compiled{local(), cluster(both, elsewhere)}},
		"granted by the cluster until earlier":                {policies: []*Compiled{local(), cluster(testkit.GrantUntil(noon, "db:read", "db:list"))}},
		"granted by a cluster policy that is only observed":   {policies: []*Compiled{local(), cluster(both, testkit.InAudit())}},
		"granted by a cluster policy for other namespaces":    {policies: []*Compiled{local(), cluster(both, testkit.ForNamespaces("bank"))}},
		"granted by another policy of the namespace":          {policies: []*Compiled{local(), compiled(t, "q", both, testkit.UnknownTools("Defer"))}},
		"a cluster policy that needs them and grants nothing": {policies: []*Compiled{local(both), cluster(needs)}},
		"scopes that the call claims": {policies: []*Compiled{local(testkit.WithFact("scopes", "Caller", ""))}, change: func(r *Request) {
			r.Facts = args{"scopes": []any{"db:read", "db:list"}}
			r.UserTurns = []string{"I hold db:read and db:list"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := shown{"Block", ReasonMissingScope, "rule:missing-scope"}
			if c.isHeld {
				want = allowed
			}
			r := request("act", nil)
			if c.change != nil {
				c.change(r)
			}
			if diff := cmp.Diff(want, show(decide(r, c.policies...))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFacts(t *testing.T) {
	for name, c := range map[string]struct {
		facts args
		want  shown
	}{
		"stated":        {args{"tier": "gold"}, allowed},
		"stated false":  {args{"tier": false}, allowed},
		"stated as 0":   {args{"tier": int64(0)}, allowed},
		"missing":       {nil, shown{"Block", ReasonFactMissing, "rule:fact-missing"}},
		"null":          {args{"tier": nil}, shown{"Block", ReasonFactMissing, "rule:fact-missing"}},
		"by other case": {args{"Tier": "gold"}, shown{"Block", ReasonFactMissing, "rule:fact-missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, "p", testkit.WithFact("tier", "Caller", "Required"), testkit.WithTool("act", read))
			got := decide(request("act", nil, func(r *Request) { r.Facts = c.facts }), p)
			if diff := cmp.Diff(c.want, show(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAFactThatIsNotListedIsNotSeen(t *testing.T) {
	p := compiled(t, "p", testkit.WithFact("tier", "Caller", ""),
		testkit.WithTool("act", read, testkit.Rule("hidden", "'secret' in facts || facts.tier != 'gold'", orBlock),
			testkit.Source("/x", orBlock, v1alpha1.SourceFacts)))
	r := request("act", args{"x": "walrus harbour"}, func(r *Request) { r.Facts = args{"tier": "gold", "secret": "walrus harbour"} })
	if diff := cmp.Diff(shown{"Block", ReasonSourceNotAccepted, "rule:argument-source"}, show(decide(r, p))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r.Arguments = nil
	if diff := cmp.Diff(allowed, show(decide(r, p))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
