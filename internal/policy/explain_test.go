package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/testkit"
)

// steps writes an explanation as lines.
func steps(e Explanation) []string {
	var out []string
	for _, s := range e.Engine {
		out = append(out, "engine: "+s.Name+": "+s.Result)
	}
	for _, p := range e.Policies {
		out = append(out, p.Policy+" "+p.Mode)
		for _, s := range p.Steps {
			out = append(out, s.Name+": "+s.Result)
		}
	}
	return out
}

func TestExplain(t *testing.T) {
	ladder := testkit.ToolAsks(toConfirm, testkit.Questions("asked", "severity", "tone"),
		testkit.Step(toBlock, testkit.Below("asked", 10)), testkit.Step(toAllow, testkit.AtLeast("asked", 90)))
	asks := compiled(t, "p", testkit.WithDecider("judge"), testkit.WithQuestion(tone), testkit.WithTool("act", destructive, ladder))
	good := questions.Answers{"asked": yes(0.95), "severity": score(0.5, 0.5, 0, 0), "tone": tones(0.25)}
	all := compiled(t, "p", testkit.Grant("a:b"), testkit.WithTool("act", write, testkit.LowerTo(read, "args.n < 5"), testkit.Scopes("a:b"),
		testkit.Schema(`{"required": ["n"]}`), testkit.Path("/path", "/srv"), testkit.Host("/url", "example.com"),
		testkit.Source("/n", orConfirm, "User"), testkit.Rule("r", "args.n > 7", orBlock)))
	for name, c := range map[string]struct {
		policies  []*Compiled
		arguments args
		answers   questions.Answers
		approval  *Approval
		want      []string
	}{
		"no policy":       {want: []string{"engine: policies: Block"}},
		"an unknown tool": {policies: []*Compiled{compiled(t, "p")}, want: []string{"ToolPolicy/shop/p@1 Enforce", "match: Block"}},
		"all checks": {policies: []*Compiled{all}, arguments: args{"n": int64(9)}, want: []string{"ToolPolicy/shop/p@1 Enforce", "match: listed as act", "class: Write (Write)",
			"missing-scope: passed", "arguments-schema: passed", "path-escape: passed", "host-not-allowed: passed", "argument-source: Confirm", "rules: Block", "sources: traced"}},
		"a lowered class": {policies: []*Compiled{all}, arguments: args{"n": int64(3)}, want: []string{"ToolPolicy/shop/p@1 Enforce", "match: listed as act", "class: ReadOnly (ReadOnly)",
			"missing-scope: passed", "arguments-schema: passed", "path-escape: passed", "host-not-allowed: passed", "argument-source: Confirm", "rules: passed", "sources: traced", "ladder: Allow"}},
		"a ladder": {policies: []*Compiled{asks}, answers: good, want: []string{"ToolPolicy/shop/p@1 Enforce", "match: listed as act", "class: Destructive (Destructive)",
			"decider: answered", "threshold 1: does not match", "threshold 2: Allow", "person: Confirm"}},
		"no answer": {policies: []*Compiled{asks}, want: []string{"ToolPolicy/shop/p@1 Enforce", "match: listed as act", "class: Destructive (Destructive)", "decider: Block", "person: Confirm"}},
		"an approval": {policies: []*Compiled{asks}, approval: &Approval{"x", []string{"any"}}, want: []string{"ToolPolicy/shop/p@1 Enforce", "match: listed as act",
			"class: Destructive (Destructive)", "decider: not asked", "person: Confirm"}},
		"one that blocks beside a ladder": {policies: []*Compiled{asks, ruling(t, "q", orBlock)}, want: []string{"ToolPolicy/shop/p@1 Enforce", "match: listed as act",
			"class: Destructive (Destructive)", "decider: not asked", "ToolPolicy/shop/q@1 Enforce", "match: listed as act", "class: ReadOnly (ReadOnly)", "rules: Block"}},
		"one that only watches": {policies: []*Compiled{with(t, "p", read, testkit.InAudit())}, want: []string{"ToolPolicy/shop/p@1 Audit", "match: listed as act", "class: ReadOnly (ReadOnly)", "ladder: Allow"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := judge(request("act", c.arguments), c.policies...)
			j.Settle(replying(j, c.answers), c.approval)
			if diff := cmp.Diff(c.want, steps(j.Explain())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAnExplanationHoldsNoValueOfTheCall(t *testing.T) {
	const secret = "walrus harbour"
	r := request("act", args{"memo": secret, "path": "/etc/" + secret, "url": secret, "n": secret}, userSaid("tell "+secret), func(r *Request) {
		r.Facts, r.ToolResults = args{"tier": secret}, []string{secret}
	})
	for name, tool := range map[string]testkit.ToolOption{
		"schema": testkit.Schema(`{"properties": {"n": {"type": "integer"}}}`), "paths": testkit.Path("/path", "/srv"), "hosts": testkit.Host("/url", "example.com"),
		"sources": testkit.Source("/memo", orBlock, "Schema"), "rules": testkit.Rule("r", "args.n > 5", orBlock), "ladder": testkit.ToolAsks(toConfirm, testkit.Questions("asked")),
	} {
		p := compiled(t, "p", testkit.WithDecider("judge"), testkit.WithFact("tier", "Caller", ""), testkit.WithTool("act", read, tool))
		j := judge(r, p)
		v := j.Settle(nil, nil)
		text, err := json.Marshal([]any{j.Explain(), v})
		if err != nil || strings.Contains(string(text), "walrus") || v.Outcome == Allow {
			t.Errorf("%s: %v %s", name, err, text)
		}
	}
}

func TestPointsAndReached(t *testing.T) {
	p := compiled(t, "p", testkit.WithDecider("judge"), testkit.Grant("a:b"), testkit.WithFact("tier", "", "Required"),
		testkit.WithClass(write, testkit.Asks(toConfirm, testkit.Questions("asked"), testkit.Step(toBlock, testkit.Below("asked", 10)))),
		testkit.WithClass(external, testkit.Approval("Forbidden")),
		testkit.WithTool("act", write, testkit.OnServer("mcp"), testkit.LowerTo(read, "args.n < 5"), testkit.Scopes("a:b", "c:d"), testkit.Schema(`{"required": ["n"]}`),
			testkit.Path("/path", "/srv"), testkit.Host("/url", "example.com"), testkit.Source("/memo", orConfirm, "User"), testkit.Rule("r", "args.n > 100", orBlock)),
		testkit.WithTool("ends", write, testkit.ToolOtherwise(toClarify)), testkit.WithTool("wipe", destructive), testkit.WithTool("mail", external))
	want := []string{"unknownTools", "factsFrom[tier]", "tools[act@mcp].lowerTo[0]", "tools[act@mcp].requiredScopes[a:b]", "tools[act@mcp].requiredScopes[c:d]",
		"tools[act@mcp].argumentsSchema", "tools[act@mcp].paths[/path]", "tools[act@mcp].hosts[/url]", "tools[act@mcp].argumentSources[/memo]", "tools[act@mcp].rules[r]",
		"classes[Write].thresholds[0]", "classes[Write].otherwise", "classes[Write].whenDeciderUnavailable", "classes[ReadOnly].otherwise",
		"tools[ends].otherwise", "classes[External].approval", "classes[Destructive].approval", "classes[Destructive].otherwise"}
	if diff := cmp.Diff(want, places(p.Points())); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	fact := func(r *Request) { r.Facts, r.Server = args{"tier": 1.0}, "mcp" }
	for name, c := range map[string]struct {
		request *Request
		asked   float64
		want    []string
	}{
		"unknown":                {request("nonesuch", nil), 1, []string{"unknownTools"}},
		"a fact":                 {request("wipe", nil), 1, []string{"factsFrom[tier]"}},
		"a scope":                {request("act", args{"n": int64(9)}, fact), 1, []string{"tools[act@mcp].requiredScopes[c:d]"}},
		"a person":               {request("wipe", nil, fact), 1, []string{"classes[Destructive].approval", "classes[Destructive].otherwise"}},
		"forbidden":              {request("mail", nil, fact), 1, []string{"classes[External].approval"}},
		"a step of the class":    {request("ends", nil, fact), 0.05, []string{"classes[Write].thresholds[0]"}},
		"an end of the tool":     {request("ends", nil, fact), 0.5, []string{"tools[ends].otherwise"}},
		"an answer that is none": {request("ends", nil, fact), 7, []string{"classes[Write].whenDeciderUnavailable"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := judge(c.request, p)
			j.Settle(replying(j, questions.Answers{"asked": yes(c.asked)}), nil)
			if diff := cmp.Diff(c.want, places(j.Reached())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func places(points []Point) []string {
	var out []string
	for _, p := range points {
		out = append(out, p.Place)
	}
	return out
}
