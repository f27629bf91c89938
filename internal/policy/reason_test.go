package policy

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/testkit"
)

// reached has for each reason a call that comes to it, by the name of its constant.
func reached(t *testing.T) map[string]struct {
	want Reason
	got  Verdict
} {
	type one = struct {
		want Reason
		got  Verdict
	}
	key, _ := newFrontDoor(t)
	past, cancel := context.WithCancel(t.Context())
	cancel()
	act := func(options ...testkit.Option) Verdict {
		return decide(request("act", args{"x": "/etc"}), compiled(t, "p", options...))
	}
	tool := func(options ...testkit.ToolOption) Verdict { return act(testkit.WithTool("act", read, options...)) }
	asks := asking(t, toAllow, testkit.Questions("asked"), testkit.Step(toBlock, testkit.Below("asked", 50)))
	saying := func(p float64) Verdict { return answer(request("act", nil), questions.Answers{"asked": yes(p)}, asks) }
	all := map[string]one{
		"ReasonNoPolicy":          {ReasonNoPolicy, decide(request("act", nil))},
		"ReasonPolicyInvalid":     {ReasonPolicyInvalid, decide(request("act", nil), brokenPolicy())},
		"ReasonUnknownTool":       {ReasonUnknownTool, act()},
		"ReasonClassForbidden":    {ReasonClassForbidden, act(testkit.WithClass(read, testkit.Approval("Forbidden")), testkit.WithTool("act", read))},
		"ReasonNotAttested":       {ReasonNotAttested, act(testkit.Attested(key), testkit.WithTool("act", read))},
		"ReasonFactMissing":       {ReasonFactMissing, act(testkit.WithFact("f", "", "Required"), testkit.WithTool("act", read))},
		"ReasonMissingScope":      {ReasonMissingScope, tool(testkit.Scopes("a:b"))},
		"ReasonArgumentsInvalid":  {ReasonArgumentsInvalid, tool(testkit.Schema(`{"required": ["y"]}`))},
		"ReasonPathNotAllowed":    {ReasonPathNotAllowed, tool(testkit.Path("/x", "/srv"))},
		"ReasonHostNotAllowed":    {ReasonHostNotAllowed, tool(testkit.Host("/x", "example.com"))},
		"ReasonSourceNotAccepted": {ReasonSourceNotAccepted, tool(testkit.Source("/x", orBlock, "User"))},
		"ReasonPermitConflict": {ReasonPermitConflict, decide(request("act", nil),
			compiled(t, "p", testkit.WithTool("act", read, testkit.Permit("shop"))), compiled(t, "q", testkit.WithTool("act", read, testkit.Permit("bank"))))},
		"ReasonRule":               {ReasonRule, tool(testkit.Rule("r", "true", orBlock))},
		"ReasonRuleFailed":         {ReasonRuleFailed, tool(testkit.Rule("r", "args.y == 1", orConfirm))},
		"ReasonCanceled":           {ReasonCanceled, NewSet([]*Compiled{with(t, "p", read)}).Judge(past, request("act", nil)).Settle(nil, nil)},
		"ReasonThreshold":          {ReasonThreshold, saying(0.1)},
		"ReasonNoThresholdMatched": {ReasonNoThresholdMatched, saying(0.9)},
		"ReasonIrreversible":       {ReasonIrreversible, act(testkit.WithTool("act", destructive))},
		"ReasonApprovalRequired":   {ReasonApprovalRequired, act(testkit.WithClass(read, testkit.Approval("Always")), testkit.WithTool("act", read))},
		"ReasonClassDefault":       {ReasonClassDefault, act(testkit.WithTool("act", write))},
		"ReasonRulesPassed":        {ReasonRulesPassed, tool()},
		"ReasonAuditOnly":          {ReasonAuditOnly, act(testkit.InAudit())},
		"ReasonApproved": {ReasonApproved, judge(request("act", nil), with(t, "p", destructive)).
			Settle(nil, &Approval{Name: "x", Shown: []string{"ToolPolicy/shop/p policy:irreversible Irreversible"}})},
	}
	for _, r := range unavailable {
		all["Reason"+string(r)] = one{r, judge(request("act", nil), asks).Settle([]Answered{{Unavailable: r}}, nil)}
	}
	// These the engine finds itself.
	all["ReasonDeciderMismatch"] = one{ReasonDeciderMismatch, judge(request("act", nil), asks).Settle([]Answered{{Fingerprint: "other"}}, nil)}
	all["ReasonDeciderBadReply"] = one{ReasonDeciderBadReply, judge(request("act", nil), asks).Settle([]Answered{{Fingerprint: testkit.Fingerprint}}, nil)}
	all["ReasonDeciderUnavailable"] = one{ReasonDeciderUnavailable, decide(request("act", nil), asks)}
	all["ReasonFingerprintRequired"] = one{ReasonFingerprintRequired, act(testkit.WithUnpinnedDecider("judge", ""),
		testkit.WithTool("act", write, testkit.ToolAsks(toAllow, testkit.Questions("asked"))))}
	return all
}

func TestEveryReasonIsReached(t *testing.T) {
	all := reached(t)
	constants := reasonConstants(t)
	for _, name := range constants {
		c, ok := all[name]
		if !ok {
			t.Errorf("no call of this test comes to %s", name)
			continue
		}
		if c.got.Reason != c.want {
			t.Errorf("%s: got %s (%s), want %s", name, c.got.Reason, c.got.Message, c.want)
		}
		if c.got.Message == "" || c.got.By == "" {
			t.Errorf("%s has message %q and by %q", name, c.got.Message, c.got.By)
		}
	}
	for name := range all {
		if !slices.Contains(constants, name) {
			t.Errorf("%s is no constant", name)
		}
	}
}

// reasonConstants reads the names of all reasons from the source, so that a new one cannot be left out.
func reasonConstants(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for _, name := range spec.Names {
				if strings.HasPrefix(name.Name, "Reason") {
					names = append(names, name.Name)
				}
			}
		}
		return true
	})
	if len(names) < 30 {
		t.Fatalf("only %d reasons found: %v", len(names), names)
	}
	return names
}
