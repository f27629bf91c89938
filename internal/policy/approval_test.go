package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/testkit"
)

func TestApprovals(t *testing.T) {
	const (
		p            = "ToolPolicy/shop/p "
		byPerson     = p + "policy:irreversible Irreversible"
		bySource     = p + "rule:argument-source SourceNotAccepted"
		byLadder     = p + "decider Threshold"
		byUnknown    = p + "rule:unknown-tool UnknownTool"
		ofAnotherOne = "ToolPolicy/shop/q policy:irreversible Irreversible"
	)
	approved := shown{"Allow", ReasonApproved, "approval:x"}
	asks := testkit.WithClass(write, testkit.Asks(toAllow, testkit.Questions("asked"), testkit.Step(toConfirm, testkit.Below("asked", 90))))
	decider := testkit.WithDecider("judge")
	sourced := testkit.WithTool("act", destructive, testkit.Source("/n", orConfirm, v1alpha1.SourceUser))
	for name, c := range map[string]struct {
		policies []*Compiled
		shown    []string
		want     shown
	}{
		"of what is irreversible":                     {[]*Compiled{with(t, "p", destructive)}, []string{byPerson}, approved},
		"that shows another policy's reason":          {[]*Compiled{with(t, "p", destructive)}, []string{ofAnotherOne}, irreversible},
		"that shows nothing":                          {[]*Compiled{with(t, "p", destructive)}, nil, irreversible},
		"that shows one reason of two":                {[]*Compiled{compiled(t, "p", sourced)}, []string{byPerson}, shown{"Confirm", ReasonSourceNotAccepted, "rule:argument-source"}},
		"that shows both reasons":                     {[]*Compiled{compiled(t, "p", sourced)}, []string{byPerson, bySource}, approved},
		"that shows one policy's reason of two":       {[]*Compiled{with(t, "p", destructive), with(t, "q", destructive)}, []string{byPerson}, irreversible},
		"that shows the reasons of both policies":     {[]*Compiled{with(t, "p", destructive), with(t, "q", destructive)}, []string{byPerson, ofAnotherOne}, approved},
		"of a ladder, which is not climbed again":     {[]*Compiled{compiled(t, "p", decider, asks, testkit.WithTool("act", write))}, []string{byLadder}, approved},
		"that shows nothing leaves the ladder":        {[]*Compiled{compiled(t, "p", decider, asks, testkit.WithTool("act", write))}, []string{}, shown{"Confirm", ReasonDeciderUnavailable, byDecider}},
		"of an unknown tool":                          {[]*Compiled{compiled(t, "p", testkit.UnknownTools("Confirm"))}, []string{byUnknown}, approved},
		"of a rule that blocks":                       {[]*Compiled{ruling(t, "p", orBlock)}, []string{p + "rule:of-p Rule"}, shown{"Block", ReasonRule, "rule:of-p"}},
		"of a rule that clarifies":                    {[]*Compiled{ruling(t, "p", orClarify)}, []string{p + "rule:of-p Rule"}, shown{"Clarify", ReasonRule, "rule:of-p"}},
		"of a forbidden class":                        {[]*Compiled{with(t, "p", write, testkit.WithClass(write, testkit.Approval("Forbidden")))}, []string{p + "rule:class-forbidden ClassForbidden"}, shown{"Block", ReasonClassForbidden, "rule:class-forbidden"}},
		"without any policy":                          {nil, []string{byPerson}, shown{"Block", ReasonNoPolicy, byNoPolicy}},
		"of a policy that does not compile":           {[]*Compiled{brokenPolicy()}, []string{byPerson}, shown{"Block", ReasonPolicyInvalid, byPolicyInvalid}},
		"of what needs none":                          {[]*Compiled{with(t, "p", read)}, []string{byPerson}, allowed},
		"beside Audit policies only":                  {[]*Compiled{with(t, "p", read, testkit.InAudit()), compiledCluster(t, "c", testkit.WithTool("act", destructive))}, []string{"ClusterToolPolicy/c policy:irreversible Irreversible"}, approved},
		"of Audit policies only, which need none":     {[]*Compiled{with(t, "p", destructive, testkit.InAudit())}, []string{byPerson}, shown{"Allow", ReasonAuditOnly, byAudit}},
		"of a ladder's end without a decider":         {[]*Compiled{with(t, "p", write)}, []string{p + byClassDefault + " ClassDefault"}, approved},
		"of a name that is the same in another place": {[]*Compiled{with(t, "p", destructive)}, []string{"ToolPolicy/bank/p policy:irreversible Irreversible"}, irreversible},
	} {
		t.Run(name, func(t *testing.T) {
			j := judge(request("act", args{"n": "quartz"}), c.policies...)
			if diff := cmp.Diff(c.want, show(j.Settle(nil, &Approval{Name: "x", Shown: c.shown}))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSettleStartsAnew(t *testing.T) {
	p := compiled(t, "p", testkit.WithDecider("judge"),
		testkit.WithClass(destructive, testkit.Asks(toAllow, testkit.Questions("asked"), testkit.Step(toConfirm, testkit.Below("asked", 90)))),
		testkit.WithTool("act", destructive, testkit.Rule("r", "true", orConfirm)))
	j := judge(request("act", nil), p)
	unsure, sure := replying(j, questions.Answers{"asked": yes(0.5)}), replying(j, questions.Answers{"asked": yes(1)})
	first := j.Settle(unsure, nil)
	shownReasons := &Approval{Name: "x", Shown: first.ConfirmKeys()}
	for _, again := range []func() Verdict{
		func() Verdict { return j.Settle(nil, nil) },
		func() Verdict { return j.Settle(sure, nil) },
		func() Verdict { return j.Settle(nil, shownReasons) },
		func() Verdict { return j.Settle(unsure, nil) },
	} {
		again()
	}
	if diff := cmp.Diff(first, j.Settle(unsure, nil)); diff != "" {
		t.Errorf("a later call sees earlier ones (-first +again):\n%s", diff)
	}
	fresh := judge(request("act", nil), p)
	if diff := cmp.Diff(fresh.Settle(sure, nil), j.Settle(sure, nil)); diff != "" {
		t.Errorf("-fresh +again:\n%s", diff)
	}
	if answers, _ := j.Answers(); answers["asked"].Probability != 1 {
		t.Errorf("answers are %v", answers)
	}
}

func TestTheZeroValueOfAnOutcomeIsBlock(t *testing.T) {
	var v Verdict
	if v.Outcome != Block || v.Outcome.String() != "Block" || Outcome(200).API() != v1alpha1.OutcomeBlock {
		t.Errorf("the zero value is %s, one out of range %s", v.Outcome, Outcome(200))
	}
	for text, want := range map[string]Outcome{"Allow": Allow, "Confirm": Confirm, "Clarify": Clarify, "Block": Block, "": Block, "allow": Block, "Permit": Block} {
		if got := outcomeOf(text); got != want {
			t.Errorf("%q is read as %s, want %s", text, got, want)
		}
	}
	for _, o := range []Outcome{Block, Clarify, Confirm, Allow} {
		if outcomeOf(o.API()) != o {
			t.Errorf("%s does not survive the API", o)
		}
	}
	if got := join(nil, Verdict{}); got.Outcome != Block {
		t.Errorf("nothing joined with nothing is %s", got.Outcome)
	}
}
