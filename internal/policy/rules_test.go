package policy

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/testkit"
)

func TestRules(t *testing.T) {
	failed := shown{"Block", ReasonRuleFailed, "rule:r"}
	matched := func(outcome string) shown { return shown{outcome, ReasonRule, "rule:r"} }
	for name, c := range map[string]struct {
		when      v1alpha1.Expression
		outcome   v1alpha1.StricterOutcome
		arguments args
		change    func(*Request)
		want      shown
	}{
		"true blocks":                               {when: "args.n > 5", arguments: args{"n": int64(6)}, outcome: orBlock, want: matched("Block")},
		"true asks a person":                        {when: "args.n > 5", arguments: args{"n": int64(6)}, outcome: orConfirm, want: matched("Confirm")},
		"true asks the user":                        {when: "args.n > 5", arguments: args{"n": int64(6)}, outcome: orClarify, want: matched("Clarify")},
		"false leaves the call alone":               {when: "args.n > 5", arguments: args{"n": int64(5)}, outcome: orBlock, want: allowed},
		"a float beside a whole number":             {when: "args.n > 5", arguments: args{"n": 5.5}, outcome: orBlock, want: matched("Block")},
		"a missing argument blocks":                 {when: "args.n > 5", outcome: orConfirm, want: failed},
		"a missing argument blocks when negated":    {when: "!(args.n > 5)", outcome: orConfirm, want: failed},
		"a missing argument blocks a comparison":    {when: "args.n != 'x'", outcome: orConfirm, want: failed},
		"has() asks without failing":                {when: "has(args.n) && args.n > 5", outcome: orBlock, want: allowed},
		"text where a number is compared":           {when: "args.n > 5", arguments: args{"n": "6"}, outcome: orConfirm, want: failed},
		"null where a number is compared":           {when: "args.n > 5", arguments: args{"n": nil}, outcome: orConfirm, want: failed},
		"a member of what has none":                 {when: "args.n.x == 1", arguments: args{"n": "6"}, outcome: orConfirm, want: failed},
		"an index beyond the end":                   {when: "args.l[3] == 1", arguments: args{"l": []any{int64(1)}}, outcome: orConfirm, want: failed},
		"division by zero":                          {when: "1 / args.n == 1", arguments: args{"n": int64(0)}, outcome: orConfirm, want: failed},
		"a value that is no truth":                  {when: "args.n || false", arguments: args{"n": "true"}, outcome: orConfirm, want: failed},
		"a missing fact":                            {when: "facts.tier == 'gold'", outcome: orConfirm, want: failed},
		"a fact":                                    {when: "facts.tier != 'gold'", change: func(r *Request) { r.Facts = args{"tier": "gold"} }, outcome: orBlock, want: allowed},
		"the scopes held":                           {when: "!('db:read' in scopes)", outcome: orBlock, want: allowed},
		"where a value comes from":                  {when: "sources['/n'] != 'User'", arguments: args{"n": "quartz"}, outcome: orBlock, want: matched("Block")},
		"the user's latest words":                   {when: "user.contains('second')", change: userSaid("first", "second"), outcome: orBlock, want: matched("Block")},
		"not the user's earlier words":              {when: "user.contains('first')", change: userSaid("first", "second"), outcome: orBlock, want: allowed},
		"no words at all":                           {when: "user == ''", outcome: orBlock, want: matched("Block")},
		"the caller":                                {when: "caller.namespace == 'shop' && caller.serviceAccount == 'agent'", outcome: orBlock, want: matched("Block")},
		"the end user and the session":              {when: "caller.onBehalfOf + caller.session == 'adas1'", change: func(r *Request) { r.OnBehalfOf, r.Session = "ada", "s1" }, outcome: orBlock, want: matched("Block")},
		"the tool and its server":                   {when: "tool.name + '@' + tool.server == 'act@mcp'", change: func(r *Request) { r.Server = "mcp" }, outcome: orBlock, want: matched("Block")},
		"more than a call is given":                 {when: "args.l.all(x, !args.s.contains('q'))", arguments: args{"l": numbers(2000), "s": strings.Repeat("a", 20_000)}, outcome: orConfirm, want: failed},
		"a command that is understood":              {when: "!shell(args.n).isRead", arguments: args{"n": "ls"}, outcome: orBlock, want: allowed},
		"a command that is no text":                 {when: "shell(args.n).isRead", arguments: args{"n": int64(1)}, outcome: orConfirm, want: failed},
		"text that is compared with its own length": {when: "size(args.n) > 3", arguments: args{"n": "four"}, outcome: orBlock, want: matched("Block")},
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, "p", testkit.Grant("db:read"), testkit.WithFact("tier", "Caller", ""),
				testkit.WithTool("act", read, testkit.Rule("r", c.when, c.outcome)))
			r := request("act", c.arguments)
			if c.change != nil {
				c.change(r)
			}
			if diff := cmp.Diff(c.want, show(decide(r, p))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTheFirstRuleThatIsTrueDecides(t *testing.T) {
	p := compiled(t, "p", testkit.WithTool("act", read,
		testkit.Rule("first", "args.n > 10", orClarify), testkit.Rule("second", "args.n > 5", orConfirm), testkit.Rule("third", "args.n > 1", orBlock)))
	for n, want := range map[int64]shown{
		11: {"Clarify", ReasonRule, "rule:first"}, 6: {"Confirm", ReasonRule, "rule:second"}, 2: {"Block", ReasonRule, "rule:third"}, 1: allowed,
	} {
		if diff := cmp.Diff(want, show(decide(request("act", args{"n": n}), p))); diff != "" {
			t.Errorf("n = %d (-want +got):\n%s", n, diff)
		}
	}
}

func TestARuleMayNameItsReason(t *testing.T) {
	named := func(r *v1alpha1.ToolRule) { r.Rules[0].Reason = "TooMuch" }
	p := compiled(t, "p", testkit.WithTool("act", read, testkit.Rule("r", "true", orBlock), named))
	if diff := cmp.Diff(shown{"Block", "TooMuch", "rule:r"}, show(decide(request("act", nil), p))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAllRulesOfACallShareOneBudget(t *testing.T) {
	const dear = "args.l.all(x, !args.s.contains('q'))"
	p := compiled(t, "p", testkit.WithTool("act", read,
		testkit.Rule("first", "!("+dear+")", orBlock), testkit.Rule("second", "!("+dear+")", orBlock), testkit.Rule("third", "!("+dear+")", orBlock)))
	large := args{"l": numbers(1000), "s": strings.Repeat("a", 4000)}
	if diff := cmp.Diff(shown{"Block", ReasonRuleFailed, "rule:third"}, show(decide(request("act", large), p))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAnAuditPolicyCannotUseUpTheBudgetOfOthers(t *testing.T) {
	const dear = "args.l.all(x, !args.s.contains('q'))"
	large := args{"l": numbers(2000), "s": strings.Repeat("a", 20_000)}
	words := func(r *v1alpha1.ToolRule) { r.ConfirmMessage = "'all ' + string(size(args.l))" }
	enforced := compiled(t, "z", testkit.WithTool("act", read, testkit.Rule("cheap", "size(args.l) > 5000", orBlock), words))
	watching := compiled(t, "a", testkit.InAudit(), testkit.WithTool("act", read, testkit.Rule("dear", dear, orBlock)))
	j := judge(request("act", large), enforced, watching)
	v := j.Settle(nil, nil)
	if diff := cmp.Diff(allowed, show(v)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := j.ConfirmMessage(); got != "all 2000" {
		t.Errorf("the words for a person cost too much: %q", got)
	}
	want := []AuditVerdict{{"ToolPolicy/shop/a", Block, ReasonRuleFailed, "rule:dear"}}
	if diff := cmp.Diff(want, v.WouldBe); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestACallWhoseDeadlineHasPassedIsBlocked(t *testing.T) {
	canceledContext, cancel := context.WithCancel(t.Context())
	cancel()
	want := shown{"Block", ReasonCanceled, "rule:deadline"}
	for name, tool := range map[string][]testkit.ToolOption{
		"with rules that loop": {testkit.Rule("r", "args.l.exists(x, x == 5000)", orConfirm)},
		"with a plain rule":    {testkit.Rule("r", "args.n == 1", orConfirm)},
		"without any rule":     nil,
	} {
		t.Run(name, func(t *testing.T) {
			p := compiled(t, "p", testkit.WithTool("act", read, tool...))
			r := request("act", args{"l": numbers(1000), "n": int64(2)})
			j := NewSet([]*Compiled{p}).Judge(canceledContext, r)
			if diff := cmp.Diff(want, show(j.Settle(nil, nil))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestListsThatAreTooLongForExpressions(t *testing.T) {
	long := make([]any, inputSize+1)
	for i := range long {
		long[i] = "x"
	}
	p, errs := Compile(testkit.ToolPolicy("p", testkit.WithTool("t", "ReadOnly", func(r *v1alpha1.ToolRule) {
		r.Rules = []v1alpha1.CallRule{{Name: "r", When: "args.a.all(x, x != 'q' || x in ['a'])", Outcome: "Block", Message: "m"}}
	})))
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	for name, test := range map[string]struct {
		list []any
		want Reason
	}{"as long as it may be": {long[:inputSize], ReasonRule}, "one longer": {long, ReasonRuleFailed}} {
		t.Run(name, func(t *testing.T) {
			r := &Request{Caller: Caller{Namespace: p.ID.Namespace, ServiceAccount: "a"}, Tool: "t", Arguments: map[string]any{"nested": map[string]any{"b": test.list}, "a": test.list}, Now: time.Unix(1, 0)}
			if got := NewSet([]*Compiled{p}).Judge(t.Context(), r).Settle(nil, nil); got.Outcome != Block || got.Reason != test.want {
				t.Errorf("got %s %s, want Block %s", got.Outcome, got.Reason, test.want)
			}
		})
	}
}
