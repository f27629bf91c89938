package gate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/policy/sources"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/strictjson"
)

// binding is what an approval of this call has to cover.
func (d *decision) binding() approval.Binding {
	r := &d.in.request
	return approval.Binding{
		PolicyDigest: d.digest, Caller: r.Caller.String(), Server: r.Server, Tool: r.Tool, ArgumentsDigest: d.in.argumentsDigest,
		OnBehalfOf: d.words.onBehalfOf, Session: r.Session, UserTurnsDigest: d.words.digest,
	}
}

// lookUpApproval looks for a person's word about this very call before anything is asked. It returns an approval that
// may be used, or settled when the verdict stands: rejected, or waiting for a person who sees every reason there is.
func (d *decision) lookUpApproval(ctx context.Context) (approved *policy.Approval, settled bool) {
	if !d.judgement.MayNeedPerson() {
		return nil, false
	}
	all, err := d.gate.options.Approvals.Find(ctx, d.binding())
	if err != nil {
		d.gate.options.Log.ErrorContext(ctx, "approvals could not be read", "decision", d.id, "error", err)
		d.block(ReasonApprovalUnavailable, "it could not be looked up whether a person has rejected this call: call again in a moment", true)
		return nil, true
	}
	found := foremost(all)
	if found == nil {
		return nil, false
	}
	switch found.State {
	case approval.Approved:
		d.approval = found
		return &policy.Approval{Name: found.Name, Shown: found.Call.ConfirmReasons}, false
	case approval.Rejected:
		d.approval = found
		d.rejected(found)
		return nil, true
	case approval.Pending:
		return nil, d.stillPending(found)
	case approval.Consumed, approval.Expired:
	}
	return nil, false
}

// foremost picks the approval that counts: a rejection before anything else, then what is approved, then what waits; of
// several the one whose person saw the most reasons.
func foremost(all []approval.Approval) *approval.Approval {
	var found *approval.Approval
	rank := map[approval.State]int{approval.Rejected: 3, approval.Approved: 2, approval.Pending: 1}
	for i := range all {
		a := &all[i]
		if rank[a.State] == 0 {
			continue
		}
		if found == nil || rank[a.State] > rank[found.State] ||
			a.State == found.State && len(a.Call.ConfirmReasons) > len(found.Call.ConfirmReasons) {
			found = a
		}
	}
	return found
}

func (d *decision) rejected(a *approval.Approval) {
	message := "a person rejected this very call: do not try it again"
	if a.Decision != nil && a.Decision.Message != "" {
		message += ". They said: " + a.Decision.Message
	}
	d.verdict = policy.Verdict{Outcome: policy.Block, Reason: ReasonApprovalRejected, By: "approval:" + a.Name, Message: message}
}

// stillPending keeps a call waiting without asking a decider again, if the rules have no reason that the person does
// not see. Rules that have become stricter win.
func (d *decision) stillPending(a *approval.Approval) bool {
	v := d.judgement.Settle(nil, &policy.Approval{Name: a.Name, Shown: a.Call.ConfirmReasons})
	if v.Outcome != policy.Allow {
		return false
	}
	d.approval = a
	d.verdict = policy.Verdict{Outcome: policy.Confirm, Reason: ReasonApprovalPending, By: "approval:" + a.Name, WouldBe: v.WouldBe,
		Remedy: policy.RemedyWaitForApproval, Message: "a person has not decided yet: wait for the approval, then call again"}
	return true
}

// ReasonApprovalPending: the call waits for a person already.
const ReasonApprovalPending policy.Reason = "ApprovalPending"

// consume uses the approval that let the call through. Of two calls for one approval, one is refused.
func (d *decision) consume(ctx context.Context, approved *policy.Approval) {
	if approved == nil || d.verdict.Outcome != policy.Allow || d.in.review.DryRun {
		return
	}
	if d.verdict.Reason != policy.ReasonApproved {
		d.approval = nil // nothing needed it
		return
	}
	err := d.gate.options.Approvals.Consume(ctx, d.approval.ID)
	switch {
	case err == nil:
	case errors.Is(err, approval.ErrUsed), errors.Is(err, approval.ErrExpired):
		d.block(ReasonApprovalUsed, "the approval was used or has expired: it covers one call, and another one needs another approval", false)
		d.verdict.Remedy = policy.RemedyWaitForApproval
	default:
		d.gate.options.Log.ErrorContext(ctx, "approval could not be used", "decision", d.id, "error", err)
		d.block(ReasonApprovalUnavailable, "the approval could not be used: call again in a moment", true)
	}
}

// raise asks a person. A call that cannot be put before one is blocked.
func (d *decision) raise(ctx context.Context) {
	if d.verdict.Outcome != policy.Confirm || d.approval != nil && d.approval.State == approval.Pending || d.in.review.DryRun {
		return
	}
	d.approval = nil
	call, err := d.pendingCall()
	if err != nil {
		d.block(ReasonTooLargeToApprove, "the call is too large to be shown to a person: split it", false)
		return
	}
	if !d.gate.budgets.spend(d) {
		d.overBudget()
		return
	}
	raised, err := d.gate.options.Approvals.Raise(ctx, call)
	switch {
	case err == nil:
		d.approval = &raised
	case errors.Is(err, approval.ErrTooLarge):
		d.block(ReasonTooLargeToApprove, "the call is too large to be shown to a person: split it", false)
	case errors.Is(err, approval.ErrTooManyPending):
		d.block(ReasonTooManyPending, "too many calls of this caller wait for a person: wait until some are decided", true)
	default:
		d.gate.options.Log.ErrorContext(ctx, "approval could not be raised", "decision", d.id, "error", err)
		d.block(ReasonApprovalUnavailable, "a person has to confirm this call and cannot be asked: call again in a moment", true)
	}
}

func (d *decision) overBudget() {
	beyond := d.terms.Approvals.Budget.Beyond
	d.block(ReasonConfirmationBudget, "this caller has caused as many confirmations as its policy allows for now: do not ask for more", true)
	if beyond == "Clarify" {
		d.verdict.Outcome, d.verdict.Remedy = policy.Clarify, policy.RemedyAskUser
		d.verdict.Message = "this caller has caused as many confirmations as its policy allows for now: ask the user what to do first"
	}
}

// pendingCall is what the person sees: exactly the arguments that would run, and why they are asked.
func (d *decision) pendingCall() (approval.Call, error) {
	r := &d.in.request
	arguments, err := strictjson.Canonical(redact(r.Arguments, d.terms.Sensitive))
	if err != nil {
		return approval.Call{}, fmt.Errorf("writing arguments: %w", err)
	}
	b := d.binding()
	b.ConfirmReasons = d.verdict.ConfirmKeys()
	call := approval.Call{
		Binding: b, Message: d.judgement.ConfirmMessage(), Arguments: arguments, Sources: sourceTexts(d.judgement.Sources()),
		Answers: answerTexts(d.judgement), Fingerprint: d.fingerprint, Policies: d.policies,
		ExpiresAt: r.Now.Add(time.Duration(d.terms.Approvals.TTLSeconds) * time.Second),
	}
	call.Class, call.Base = d.judgement.Class()
	call.UserRequest = d.words.latest
	return call, nil
}

func sourceTexts(findings []sources.Finding) map[string]string {
	out := make(map[string]string, len(findings))
	for _, f := range findings {
		out[f.Pointer] = string(f.Certain())
	}
	return out
}

func answerTexts(j *policy.Judgement) map[string]string {
	answers, _ := j.Answers()
	out := make(map[string]string, len(answers))
	for name, a := range answers {
		switch a.Type {
		case questions.YesNo:
			out[name] = fmt.Sprintf("yes %.0f %%", a.Probability*100)
		case questions.Choice:
			out[name] = a.Choice
			if p, ok := a.Probabilities[a.Choice]; ok {
				out[name] = fmt.Sprintf("%s %.0f %%", a.Choice, p*100)
			}
		case questions.Score:
			out[name] = fmt.Sprintf("level %.2f", a.Score)
		}
	}
	return out
}
