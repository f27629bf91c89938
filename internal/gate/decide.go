package gate

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/permit"
	"gatewright.dev/gatewright/internal/policy"
)

// Reasons of the gate itself. They are part of the wire.
const (
	ReasonOverloaded          policy.Reason = "Overloaded"
	ReasonNotReady            policy.Reason = "NotReady"
	ReasonDeadlineExceeded    policy.Reason = "DeadlineExceeded"
	ReasonAuditUnavailable    policy.Reason = "AuditUnavailable"
	ReasonClarifyExhausted    policy.Reason = "ClarifyExhausted"
	ReasonConfirmationBudget  policy.Reason = "ConfirmationBudget"
	ReasonApprovalRejected    policy.Reason = "ApprovalRejected"
	ReasonApprovalUsed        policy.Reason = "ApprovalUsed"
	ReasonApprovalExpired     policy.Reason = "ApprovalExpired"
	ReasonApprovalInvalid     policy.Reason = "ApprovalInvalid"
	ReasonApprovalUnavailable policy.Reason = "ApprovalUnavailable"
	ReasonTooManyPending      policy.Reason = "TooManyPending"
	ReasonTooLargeToApprove   policy.Reason = "TooLargeToApprove"
	ReasonPermitUnavailable   policy.Reason = "PermitUnavailable"
	byGate                                  = "gate"
)

// decision is a call on its way from request to answer.
type decision struct {
	gate      *Gate
	in        *input
	id        string
	judgement *policy.Judgement
	terms     policy.Terms
	policies  []string
	digest    string // of the policies in force for this tool
	words     words
	verdict   policy.Verdict

	answered    []policy.Answered
	decider     string
	fingerprint string
	modelHash   string
	deciderErr  inference.Reason
	deciderTook time.Duration
	asked       []audit.Asked // what each policy asked, those that are only observed too
	captured    string        // how the call is kept beside its record

	approval *approval.Approval
	claims   []string // who in the conversation claims an approval
	permit   string
	decided  string // digest of the state, once it was needed
	marked   []byte // which messages are calls that were refused
	repeats  int
	// temporary says that the same call may be answered otherwise a little later.
	temporary bool
	took      time.Duration
	// age is how long ago what the snapshot holds was last known to be in force.
	age time.Duration
	// shadow is what candidates are to be compared with, nil for most calls.
	shadow *shadowing
}

// decide judges one call. It returns a decision and no error: what cannot be judged is blocked. Reading it is reading a
// call's way: policies are selected, the tool classified and rules run (Judge), a person's word is looked up, a decider
// is asked, its answers become an outcome, irreversible calls wait for a person, and the decision is recorded.
func (g *Gate) decide(ctx context.Context, in *input, id string) *decision {
	d := &decision{gate: g, in: in, id: id, words: in.words()}
	snapshot := g.snapshot.Load()
	if snapshot == nil {
		d.block(ReasonNotReady, "the gate has no policies yet: call again in a moment", true)
		return d.record(ctx)
	}
	d.markRefused()
	d.judgement = snapshot.Policies.Judge(ctx, &in.request)
	d.terms, d.policies = d.judgement.Terms(), d.judgement.Policies()
	d.digest = "sha256:" + d.judgement.PolicyDigest()
	d.words.attest(d.judgement)
	if d.age = g.age(); d.isBarred(ctx) {
		return d.record(ctx)
	}

	approved, settled := d.lookUpApproval(ctx)
	if !settled && approved == nil && !d.isRepeated() {
		d.ask(ctx, snapshot)
	}
	if !settled && d.repeats == 0 {
		d.verdict = d.judgement.Settle(d.answered, approved)
	}
	d.noteShadow(snapshot, approved)
	d.sign(ctx, approved)
	d.consume(ctx, approved)
	d.remember()
	d.raise(ctx)
	d.checkDeadline(ctx)
	return d.record(ctx)
}

// block sets a verdict of the gate's own.
func (d *decision) block(reason policy.Reason, message string, temporary bool) {
	d.temporary = temporary
	remedy := policy.RemedyNone
	if temporary {
		remedy = policy.RemedyRetry
	}
	d.verdict = policy.Verdict{Outcome: policy.Block, Reason: reason, By: byGate, Message: message, Remedy: remedy, WouldBe: d.verdict.WouldBe}
}

// ask puts the open questions to deciders, each policy's apart.
func (d *decision) ask(ctx context.Context, s *Snapshot) {
	asks := d.judgement.Asks()
	if len(asks) == 0 {
		return
	}
	start := time.Now()
	d.answered = make([]policy.Answered, len(asks))
	results := make([]decision, len(asks)) // each has provenance of its own until all are in
	// What counts is asked first: a decider that takes one call at a time must not be busy with what is only observed.
	for _, audit := range []bool{false, true} {
		var wait sync.WaitGroup
		for i := range asks {
			if asks[i].Audit != audit {
				continue
			}
			results[i] = decision{gate: d.gate, in: d.in, id: d.id}
			wait.Go(func() { results[i].askSafely(ctx, s, &asks[i], &d.answered[i]) })
		}
		wait.Wait()
	}
	d.deciderTook = time.Since(start)
	for i := range results {
		d.asked = append(d.asked, askedRecord(&asks[i], &results[i], &d.answered[i]))
		if asks[i].Audit {
			continue // what is only observed says nothing about the verdict
		}
		r := &results[i]
		d.decider, d.fingerprint, d.modelHash = r.decider, r.fingerprint, r.modelHash
		if r.deciderErr != "" {
			d.deciderErr = r.deciderErr
		}
		d.temporary = d.temporary || isTemporary(d.answered[i].Unavailable)
	}
}

// askSafely keeps a panic from ending the process, since it runs outside of the handler's own recover. No answer is no
// Allow.
func (d *decision) askSafely(ctx context.Context, s *Snapshot, a *policy.Ask, out *policy.Answered) {
	defer func() {
		if p := recover(); p != nil {
			*out = policy.Answered{Unavailable: policy.ReasonDeciderUnavailable}
			d.gate.options.Log.ErrorContext(ctx, "panic", "decision", d.id, "panic", panicText(p), "stack", string(debug.Stack()))
		}
	}()
	d.askOne(ctx, s, a, out)
}

// patience is how long a decider may take. One that is only asked for the record gets at most half of what is left, so
// that it cannot turn an Allow into a deadline that has passed.
func patience(ctx context.Context, a *policy.Ask) time.Duration {
	until, ok := ctx.Deadline()
	if !a.Audit || !ok {
		return a.Timeout
	}
	return min(a.Timeout, time.Until(until)/2) //nolint:forbidigo // a context's deadline is in real time
}

func (d *decision) askOne(ctx context.Context, s *Snapshot, a *policy.Ask, out *policy.Answered) {
	d.decider = a.Decider
	served, reason := s.usable(a.Decider, a.Namespace)
	if reason != "" {
		out.Unavailable = reason
		return
	}
	d.modelHash = served.ModelHash
	ctx, cancel := context.WithTimeout(ctx, patience(ctx, a))
	defer cancel()
	start := time.Now()
	result, err := served.Decider.Decide(ctx, inference.Request{Tenant: a.Namespace, State: a.State, Questions: a.Questions})
	took := time.Since(start)
	d.gate.metrics.asked(a.Decider, took, err)
	d.deciderTook = took
	if d.gate.options.Asked != nil {
		d.gate.options.Asked(d.id, Asked{Decider: a.Decider, Audit: a.Audit, Result: result, Err: inference.ReasonOf(err), Took: took})
	}
	if err != nil {
		d.deciderErr = inference.ReasonOf(err)
		out.Unavailable = unavailable(d.deciderErr)
		return
	}
	d.fingerprint = result.Fingerprint
	out.Answers, out.Fingerprint = result.Answers, result.Fingerprint
}

// unavailable translates why a decider gave no answer into the reason that a caller sees.
func unavailable(r inference.Reason) policy.Reason {
	switch r {
	case inference.Timeout:
		return policy.ReasonDeciderTimeout
	case inference.Canceled:
		return policy.ReasonDeciderCanceled
	case inference.Unreachable:
		return policy.ReasonDeciderUnreachable
	case inference.BadReply, inference.CutReply:
		return policy.ReasonDeciderBadReply
	case inference.Refused:
		return policy.ReasonDeciderRefused
	case inference.Overloaded, inference.QueueFull:
		return policy.ReasonDeciderOverloaded
	case inference.TooLong, inference.StateUnreadable:
		return policy.ReasonInputTooLong
	case inference.BreakerOpen:
		return policy.ReasonDeciderBreakerOpen
	case inference.QuestionNotSupported:
		return policy.ReasonQuestionNotSupported
	case inference.ModelMismatch:
		return policy.ReasonDeciderMismatch
	case inference.LowCoverage:
		return policy.ReasonLowCoverage
	case inference.LanguageNotSupported:
		return policy.ReasonLanguageNotSupported
	}
	return policy.ReasonDeciderUnavailable
}

// isTemporary says whether a decider may well answer the same question a little later.
func isTemporary(r policy.Reason) bool {
	switch r {
	case policy.ReasonDeciderTimeout, policy.ReasonDeciderUnreachable, policy.ReasonDeciderOverloaded,
		policy.ReasonDeciderBreakerOpen, policy.ReasonDeciderCanceled, policy.ReasonDeciderBadReply, policy.ReasonDeciderUnavailable:
		return true
	}
	return false
}

// sign makes the permit that a tool requires, before an approval is used up for it. Without one the tool would refuse the
// call, so it is no Allow. A dry run gets none.
func (d *decision) sign(ctx context.Context, approved *policy.Approval) {
	if d.verdict.Outcome != policy.Allow || d.terms.PermitAudience == "" || d.in.review.DryRun {
		return
	}
	if d.gate.options.Permits == nil {
		d.block(ReasonPermitUnavailable, "the policy requires a permit for this tool and this gate signs none: an admin can set permit: None", false)
		return
	}
	r := &d.in.request
	claims := permit.Claims{
		Audience: d.terms.PermitAudience, Subject: permit.Subject(r.Caller.Namespace, r.Caller.ServiceAccount),
		ID:   permit.JTI(d.gate.options.Cluster, r.Caller.String(), d.in.review.UID, d.in.body),
		Tool: r.Tool, Server: r.Server, ArgumentsDigest: d.in.argumentsDigest, PolicyDigest: d.digest, Decision: d.id, OnBehalfOf: d.words.onBehalfOf,
	}
	if r.Session != "" {
		claims.Session = permit.SessionDigest(r.Session)
	}
	if approved != nil && d.verdict.Reason == policy.ReasonApproved {
		claims.ID = d.approval.ID
	}
	token, err := d.gate.options.Permits.Sign(claims, time.Duration(d.terms.Approvals.PermitSeconds)*time.Second)
	if err != nil {
		d.gate.options.Log.ErrorContext(ctx, "permit could not be signed", "decision", d.id, "error", err)
		d.block(ReasonPermitUnavailable, "the permit that the tool requires could not be signed: call again in a moment", true)
		return
	}
	d.permit = token
}

// checkDeadline refuses to allow a call whose caller no longer waits: it has taken silence for a Block.
func (d *decision) checkDeadline(ctx context.Context) {
	if d.verdict.Outcome == policy.Allow && ctx.Err() != nil {
		d.block(ReasonDeadlineExceeded, "the deadline of the request passed: call again with a longer one", true)
	}
}

// record writes the decision down. What may change anything is durable before it leaves; a decision that cannot be
// written down at all is no Allow.
func (d *decision) record(ctx context.Context) *decision {
	d.took = d.gate.options.Clock.Since(d.in.started)
	d.capture(ctx)
	record := d.auditRecord()
	var err error
	if d.verdict.Outcome == policy.Allow && (!d.judgement.IsRead() || !d.gate.options.Recorder.Available()) {
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout)
		defer cancel()
		err = d.gate.options.Recorder.Append(wait, record)
	} else {
		err = d.gate.options.Recorder.Enqueue(record)
	}
	if err != nil {
		d.gate.metrics.audit.Inc()
		d.gate.options.Log.ErrorContext(ctx, "decision could not be recorded", "decision", d.id, "error", err)
		if d.verdict.Outcome != policy.Block {
			d.block(ReasonAuditUnavailable, "the decision could not be recorded, so the call may not run: call again in a moment", true)
			d.recordRefusal(ctx)
		}
	}
	d.rememberRefused()
	return d
}

// auditTimeout is how long a decision waits for the disk.
const auditTimeout = 5 * time.Second

func (d *decision) auditRecord() *audit.Record {
	in, v := d.in, &d.verdict
	r := &audit.Record{
		Time: d.gate.options.Clock.Now(), ID: d.id, UID: in.review.UID, RequestDigest: digestText(&in.body),
		Caller:     audit.Caller{Namespace: in.caller.Namespace, ServiceAccount: in.caller.ServiceAccount},
		OnBehalfOf: d.words.onBehalfOf, Tool: in.request.Tool, Server: in.request.Server,
		Outcome: outcome(v.Outcome), Reason: string(v.Reason), By: v.By,
		PolicyDigest: d.digest, ArgumentsDigest: in.argumentsDigest, StateDigest: d.decided, UserTurnsDigest: d.words.digest,
		Decider: d.decider, Fingerprint: d.fingerprint, ModelHash: d.modelHash, DeciderError: string(d.deciderErr),
		Deciders: d.asked, Captured: d.captured,
		DryRun: in.review.DryRun, Milliseconds: milliseconds(d.took), DeciderMilliseconds: milliseconds(d.deciderTook),
		EngineSemantics: policy.EngineSemantics, GateVersion: d.gate.options.Version, SnapshotAgeSeconds: d.ageSeconds(),
	}
	if in.request.Session != "" {
		r.Session = digestOf(in.request.Session)
	}
	if d.judgement != nil {
		r.Class, r.Base = d.judgement.Class()
		r.Policies = d.policies
		r.Answers = d.answers()
	}
	if d.decider != "" {
		r.PromptVersion = promptVersion
	}
	r.Obligations, r.WouldBe = obligations(v.Obligations), wouldBe(v.WouldBe)
	if d.approval != nil {
		r.Approval = &audit.Approval{Name: d.approval.Name}
		if decided := d.approval.Decision; decided != nil {
			r.Approval.By, r.Approval.Outcome = decided.By.String(), string(decided.Outcome)
		}
	}
	return r
}

// errNoDecision guards against an answer that nothing decided.
var errNoDecision = errors.New("nothing decided this call")

// retryable says whether the same call can be answered otherwise without anybody changing anything.
func (d *decision) retryable() bool {
	isTemporary := d.temporary || d.verdict.Remedy == policy.RemedyRetry
	return d.verdict.Outcome != policy.Allow && isTemporary && d.repeats == 0
}

func outcome(o policy.Outcome) review.Outcome { return review.Outcome(o.API()) }

// Explain decides one call as a dry run and says how the decision came about.
func (g *Gate) Explain(ctx context.Context, body []byte, caller policy.Caller) (policy.Explanation, *review.Response, error) {
	in, bad := g.decode(body, caller, g.options.Clock.Now())
	if bad != nil {
		return policy.Explanation{}, nil, bad
	}
	in.review.DryRun = true
	ctx, cancel := context.WithTimeout(ctx, g.options.Timeout)
	defer cancel()
	d := g.decide(ctx, in, newID())
	if d.judgement == nil {
		return policy.Explanation{}, d.response(), nil
	}
	return d.judgement.Explain(), d.response(), nil
}
