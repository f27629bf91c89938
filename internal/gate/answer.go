package gate

import (
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/questions"
)

// promptVersion is the wording and the layout by which questions are put.
const promptVersion = questions.SetVersion + "/" + questions.PromptVersion

// response turns a decision into what its caller sees. Numbers go only to those who may see them.
func (d *decision) response() *review.Response {
	v := &d.verdict
	r := &review.Response{
		UID: d.in.review.UID, Outcome: outcome(v.Outcome), Reason: string(v.Reason), By: v.By, Message: v.Message,
		Remedy: remedy(v.Remedy), Retryable: d.retryable(), Missing: v.Missing, WouldBe: wouldBe(v.WouldBe),
		Decision: review.Decision{
			ID: d.id, PolicyDigest: d.digest, ArgumentsDigest: d.in.argumentsDigest,
			Decider: d.decider, Fingerprint: d.fingerprint, Milliseconds: milliseconds(d.took), Repeats: d.repeats, SnapshotAgeSeconds: d.ageSeconds(),
		},
	}
	if d.judgement != nil {
		r.Decision.Class, r.Decision.Base = d.judgement.Class()
		r.Decision.Policies = d.policies
	}
	if d.decider != "" {
		r.Decision.PromptVersion = promptVersion
	}
	if d.discloses() {
		r.Decision.Obligations, r.Decision.Answers = obligations(v.Obligations), d.answers()
	}
	if d.approval != nil && v.Outcome == policy.Confirm {
		r.Approval = &review.Approval{Name: d.approval.Name, ExpiresAt: d.approval.Call.ExpiresAt}
	}
	if v.Outcome == policy.Allow {
		r.Permit = d.permit
	}
	return r
}

func (d *decision) discloses() bool {
	disclose := d.terms.Disclose
	if disclose == "" {
		disclose = d.gate.options.Disclose
	}
	return disclose == v1alpha1.DiscloseFull
}

// answers returns what was answered, with what code answered marked as such.
func (d *decision) answers() map[string]review.Answer {
	if d.judgement == nil {
		return nil
	}
	answers, fromCode := d.judgement.Answers()
	if len(answers) == 0 {
		return nil
	}
	out := make(map[string]review.Answer, len(answers))
	for name, a := range answers {
		out[name] = answer(a, fromCode[name])
	}
	return out
}

func answer(a questions.Answer, fromCode bool) review.Answer {
	out := review.Answer{FromCode: fromCode}
	switch a.Type {
	case questions.YesNo:
		out.Probability = &a.Probability
	case questions.Choice:
		out.Choice, out.Probabilities = a.Choice, a.Probabilities
	case questions.Score:
		out.Score, out.Probabilities = &a.Score, a.Probabilities
	}
	return out
}

func obligations(list []policy.Obligation) []review.Obligation {
	if len(list) == 0 {
		return nil
	}
	out := make([]review.Obligation, len(list))
	for i, o := range list {
		out[i] = review.Obligation{Outcome: outcome(o.Outcome), Reason: string(o.Reason), By: o.By, Policy: o.Policy}
	}
	return out
}

func wouldBe(list []policy.AuditVerdict) []review.WouldBe {
	if len(list) == 0 {
		return nil
	}
	out := make([]review.WouldBe, len(list))
	for i, w := range list {
		out[i] = review.WouldBe{Policy: w.Policy, Outcome: outcome(w.Outcome), Reason: string(w.Reason), By: w.By}
	}
	return out
}

func remedy(r policy.Remedy) review.Remedy {
	switch r {
	case policy.RemedyAskUser:
		return review.RemedyAskUser
	case policy.RemedyWaitForApproval:
		return review.RemedyWaitForApproval
	case policy.RemedyChangeArguments:
		return review.RemedyChangeArguments
	case policy.RemedyAskAdmin:
		return review.RemedyAskAdmin
	case policy.RemedyRetry:
		return review.RemedyRetry
	case policy.RemedyNone:
	}
	return review.RemedyNone
}

// milliseconds with microsecond precision.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
