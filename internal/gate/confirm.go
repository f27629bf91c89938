package gate

import (
	"context"
	"errors"
	"slices"
	"time"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/policy"
)

// binding is what an approval of this call has to cover.
func (d *decision) binding() approval.Binding {
	r, w := &d.in.request, &d.words
	caller := r.Caller.String()
	return approval.Binding{
		PolicyDigest: d.digest, Caller: caller, Server: r.Server, Tool: r.Tool, ArgumentsDigest: d.in.argumentsDigest,
		OnBehalfOf: w.onBehalfOf, Session: r.Session, UserTurnsDigest: w.digest, AttestedBy: w.attestedBy,
		CallKey: approval.CallKey(caller, r.Server, r.Tool, d.in.argumentsDigest, r.Session, r.OnBehalfOf, w.claimed),
	}
}

// lookUpApproval looks for a person's word about this very call before anything is asked. It returns an approval that
// may be used, or settled when the verdict stands: rejected, or waiting for a person who sees every reason there is. A
// rejection counts even where the policies of now would not ask a person: it was the call that was rejected.
func (d *decision) lookUpApproval(ctx context.Context) (approved *policy.Approval, settled bool) {
	if d.judgement.IsSettled() {
		return nil, false
	}
	mayNeedPerson := d.judgement.MayNeedPerson()
	if mayNeedPerson {
		d.noteClaims()
	}
	if d.gate.hasNoApprovals() {
		return nil, false
	}
	all, err := d.gate.options.Approvals.Find(ctx, d.binding())
	if err != nil {
		d.gate.options.Log.ErrorContext(ctx, "approvals could not be read", "decision", d.id, "error", err)
		d.block(ReasonApprovalUnavailable, "it could not be looked up whether a person has rejected this call: call again in a moment", true)
		return nil, true
	}
	found := foremost(d.genuine(ctx, all))
	if found == nil || !mayNeedPerson && found.State != approval.Rejected {
		return nil, false
	}
	switch found.State {
	case approval.Approved:
		d.approval = found
		if !d.mayUse(ctx, found) {
			return nil, true
		}
		return &policy.Approval{Name: found.Name, Shown: found.Call.ConfirmReasons}, false
	case approval.Rejected:
		d.rejected(found)
		return nil, true
	case approval.Pending:
		return nil, d.stillPending(found)
	case approval.Consumed, approval.Expired:
	}
	return nil, false
}

// noteClaims counts claims of an approval in the conversation. They change nothing.
func (d *decision) noteClaims() {
	d.claims = d.in.inbandClaims()
	for _, role := range d.claims {
		d.gate.approvals.inband.WithLabelValues(role).Inc()
	}
}

// hasNoApprovals spares most calls the look-up, where the store can tell at once that it is empty.
func (g *Gate) hasNoApprovals() bool {
	store, ok := g.options.Approvals.(interface{ IsEmpty() bool })
	return ok && store.IsEmpty()
}

// genuine drops what no key of ours has sealed as it is, whatever it says, and reports it.
func (d *decision) genuine(ctx context.Context, all []approval.Approval) []approval.Approval {
	out := all[:0]
	for i := range all {
		if d.isGenuine(ctx, &all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}

func (d *decision) isGenuine(ctx context.Context, a *approval.Approval) bool {
	err := d.gate.options.Seals.Verify(a)
	if err != nil {
		d.gate.ignored(ctx, d.id, a.Name, string(approval.WhyIgnored(a, err)), err)
	}
	return err == nil
}

// ignored reports an approval that was not believed.
func (g *Gate) ignored(ctx context.Context, decision, name, reason string, err error) {
	g.approvals.ignored.WithLabelValues(reason).Inc()
	g.options.Log.ErrorContext(ctx, "approval ignored", "decision", decision, "approval", name, "reason", reason, "error", err)
}

// mayUse checks again who has decided, by the policies of now and by the evidence itself. What was decided by somebody
// who may not is no approval, and since it was decided, nobody can be asked anew before it has expired.
func (d *decision) mayUse(ctx context.Context, a *approval.Approval) bool {
	err := approval.ErrBadDecision
	if a.Decision != nil && a.Decision.Outcome == approval.Approved {
		err = d.gate.approvers(d.judgement.Approvers()).Check(a.ID, &a.Call, a.Decision, d.in.request.Now)
	}
	if err == nil {
		return true
	}
	d.gate.ignored(ctx, d.id, a.Name, "NotAuthorised", err)
	d.block(ReasonApprovalInvalid, "whoever approved this call may not: an admin has to look at it", false)
	d.verdict.Remedy = policy.RemedyAskAdmin
	return false
}

func (g *Gate) approvers(p policy.Approvers) approval.Approvers {
	out := approval.Approvers{SelfApproval: p.SelfApproval}
	for _, c := range p.Channels {
		out.Channels = append(out.Channels, approval.Channel(c))
	}
	for _, a := range p.Attestors {
		out.Attestors = append(out.Attestors, approval.Attestor{Name: a.Name, Key: a.PublicKey})
	}
	if slices.Contains(out.Channels, approval.ChannelOIDC) {
		out.Issuers = g.options.ApproverIssuers
	}
	return out
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

// rejected blocks a call with the words of the person who rejected it.
func (d *decision) rejected(a *approval.Approval) {
	d.approval = a
	message := rejectedMessage
	if a.Decision != nil && a.Decision.Message != "" {
		message += ". They said: " + a.Decision.Message
	}
	d.verdict = policy.Verdict{Outcome: policy.Block, Reason: ReasonApprovalRejected, By: "approval:" + a.Name, Message: message}
}

const rejectedMessage = "a person rejected this very call: do not try it again"

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
	case errors.Is(err, approval.ErrUsed):
		d.block(ReasonApprovalUsed, "the approval was used by another call: it covers one, and this one needs an approval of its own", false)
		d.verdict.Remedy = policy.RemedyWaitForApproval
	case errors.Is(err, approval.ErrExpired), errors.Is(err, approval.ErrNotFound):
		d.block(ReasonApprovalExpired, "the approval has expired, so the call may not run, and no waiting changes that", false)
	case errors.Is(err, approval.ErrRejected), errors.Is(err, approval.ErrNotApproved):
		d.block(ReasonApprovalRejected, rejectedMessage, false)
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
		d.block(ReasonTooLargeToApprove, tooLargeMessage, false)
		return
	}
	settle, err := d.gate.budgets.reserve(ctx, d)
	if over, ok := errors.AsType[*overBudgetError](err); ok {
		d.overBudget(over.until)
		return
	}
	if err != nil {
		d.raised(ctx, nil, err)
		return
	}
	raised, err := d.gate.options.Approvals.Raise(ctx, call)
	if err == nil && !d.isGenuine(ctx, &raised) {
		err = approval.ErrNotSealed
	}
	if err != nil || raised.State == approval.Rejected {
		settle("")
	} else {
		settle(raised.ID)
	}
	d.raised(ctx, &raised, err)
}

const tooLargeMessage = "the call is too large to be shown to a person: split it"

// raised takes over what came of asking a person.
func (d *decision) raised(ctx context.Context, a *approval.Approval, err error) {
	switch {
	case errors.Is(err, approval.ErrTooLarge):
		d.block(ReasonTooLargeToApprove, tooLargeMessage, false)
	case errors.Is(err, approval.ErrTooManyPending):
		d.block(ReasonTooManyPending, "too many calls of this caller wait for a person: wait until some are decided", true)
	case err != nil:
		d.gate.options.Log.ErrorContext(ctx, "approval could not be raised", "decision", d.id, "error", err)
		d.block(ReasonApprovalUnavailable, "a person has to confirm this call and cannot be asked: call again in a moment", true)
	case a.State == approval.Rejected:
		d.rejected(a) // since it was looked up
	default:
		d.approval = a
	}
}

// overBudget answers a call for which nobody is asked any more. Until when is no secret: the caller has caused all of them.
func (d *decision) overBudget(until time.Time) {
	message, remedy := "this caller has caused as many confirmations as its policies allow for now", ": do not ask for more"
	if !until.IsZero() {
		message = "this caller has caused as many confirmations as its policies allow until " + until.UTC().Truncate(time.Second).Add(time.Second).Format(time.RFC3339)
		remedy += " before"
	}
	d.block(ReasonConfirmationBudget, message+remedy, true)
	if d.terms.Approvals.Budget.Beyond == v1alpha1.BudgetClarify {
		d.verdict.Outcome, d.verdict.Remedy = policy.Clarify, policy.RemedyAskUser
		d.verdict.Message = message + ": ask the user what to do first"
	}
}
