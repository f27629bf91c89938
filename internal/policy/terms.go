package policy

import (
	"slices"
	"strconv"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// Terms are the settings that bear on what happens around a verdict, the strictest of all policies in force.
type Terms struct {
	// Disclose says how much the caller may see; empty is for the gate to say.
	Disclose v1alpha1.Disclosure
	// CaptureState is what may be kept of the call: the most private of what the policies of the caller say. Empty: none
	// says anything, which is Digest.
	CaptureState v1alpha1.CaptureState
	// ClarifyLimit is how often the same call may be answered Clarify.
	ClarifyLimit int
	// Approvals says how long a confirmation holds and how many a caller may cause. The budget is that of all policies in
	// force for the caller, those included that have no opinion about the tool, and so the same for each of its calls.
	Approvals v1alpha1.ApprovalSettings
	// Sensitive arguments are not shown to approvers.
	Sensitive []string
	// PermitAudience is the tool server that checks a permit; empty if none is required. Policies in force that want
	// different ones block the call.
	PermitAudience string
	// ConfirmMessage asks a person in plain words.
	ConfirmMessage string
}

// Terms returns what holds around the verdict of this call.
func (j *Judgement) Terms() Terms {
	t := Terms{
		Disclose: j.disclose, CaptureState: j.capture, ClarifyLimit: 10,
		Approvals: v1alpha1.ApprovalSettings{TTLSeconds: 86400, PermitSeconds: 60, Budget: j.confirmations.DeepCopy()},
	}
	for i := range j.evaluations {
		if e := &j.evaluations[i]; e.enforced && !e.policy.Invalid {
			t.tighten(e.policy, e.tool.rule)
		}
	}
	slices.Sort(t.Sensitive)
	t.Sensitive = slices.Compact(t.Sensitive)
	return t
}

func (t *Terms) tighten(p *Compiled, rule *v1alpha1.ToolRule) {
	t.ClarifyLimit = min(t.ClarifyLimit, p.clarify)
	t.Approvals.TTLSeconds = min(t.Approvals.TTLSeconds, p.approvals.TTLSeconds)
	t.Approvals.PermitSeconds = min(t.Approvals.PermitSeconds, p.approvals.PermitSeconds)
	for _, s := range rule.Sensitive {
		t.Sensitive = append(t.Sensitive, string(s))
	}
	if rule.Permit == v1alpha1.PermitRequired && t.PermitAudience == "" {
		t.PermitAudience = rule.PermitAudience
	}
}

// hasPermitConflict says whether policies in force name different tool servers. A permit has one audience, so with either
// one of the policies would be passed over.
func (j *Judgement) hasPermitConflict() bool {
	first := ""
	for i := range j.evaluations {
		e := &j.evaluations[i]
		if !e.enforced || e.policy.Invalid || e.tool.rule.Permit != v1alpha1.PermitRequired {
			continue
		}
		if audience := e.tool.rule.PermitAudience; first == "" {
			first = audience
		} else if audience != first {
			return true
		}
	}
	return false
}

func permitConflict() Obligation {
	return Obligation{Outcome: Block, Reason: ReasonPermitConflict, By: byPermitConflict, Remedy: RemedyAskAdmin,
		Message: "policies name different permitAudiences for this tool, and a call has one permit: an admin has to make them agree"}
}

// tighterBudget is a budget that spends no more than either of two: fewer confirmations in the longer window. Where there is
// only one, it is that one itself.
func tighterBudget(a, b *v1alpha1.ConfirmationBudget) *v1alpha1.ConfirmationBudget {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	out := v1alpha1.ConfirmationBudget{
		Confirmations: min(a.Confirmations, b.Confirmations),
		WindowSeconds: max(a.WindowSeconds, b.WindowSeconds),
		Beyond:        v1alpha1.BudgetClarify,
	}
	if a.Beyond != v1alpha1.BudgetClarify || b.Beyond != v1alpha1.BudgetClarify {
		out.Beyond = v1alpha1.BudgetBlock
	}
	return &out
}

// leastDisclosing joins what policies say about disclosure: only what all of them want disclosed is.
func leastDisclosing(a, b v1alpha1.Disclosure) v1alpha1.Disclosure {
	switch {
	case a == v1alpha1.DiscloseMinimal || b == v1alpha1.DiscloseMinimal:
		return v1alpha1.DiscloseMinimal
	case a == v1alpha1.DiscloseFull:
		return b
	}
	return a
}

// ConfirmMessage asks a person in plain words: the first policy in force that has words for this tool speaks.
func (j *Judgement) ConfirmMessage() string {
	for i := range j.evaluations {
		e := &j.evaluations[i]
		if !e.enforced || e.tool == nil || e.tool.confirm == nil {
			continue
		}
		if v, err := e.budget.eval(e.ctx, e.tool.confirm, activation{e}); err == nil {
			if text, ok := v.(string); ok && text != "" {
				return text
			}
		}
	}
	name := j.request.Tool
	if !isToolName(name) {
		name = strconv.QuoteToASCII(name) // a name that no policy can list must not add words to the question
	}
	return "Run " + name + " with exactly these arguments?"
}

// mostPrivate joins what policies say about keeping calls. A policy without an opinion leaves it to the others.
func mostPrivate(a, b v1alpha1.CaptureState) v1alpha1.CaptureState {
	for _, c := range []v1alpha1.CaptureState{v1alpha1.CaptureDigest, v1alpha1.CaptureEncrypted, v1alpha1.CapturePlain} {
		if a == c || b == c {
			return c
		}
	}
	if a != "" || b != "" {
		return v1alpha1.CaptureDigest // what is not known keeps nothing
	}
	return ""
}
