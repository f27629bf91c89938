package gate

import (
	"context"
	"time"

	"gatewright.dev/gatewright/internal/policy"
)

// Authorizer says whether a caller may use a tool at all, whatever policies say: a second lock, kept elsewhere.
type Authorizer interface {
	// Authorize returns an error if nobody could say.
	Authorize(ctx context.Context, c policy.Caller, tool string) (isAllowed bool, err error)
}

// Reasons why no policy was asked, or its word did not do.
const (
	ReasonStaleSnapshot            policy.Reason = "StaleSnapshot"
	ReasonNotAuthorized            policy.Reason = "NotAuthorized"
	ReasonAuthorizationUnavailable policy.Reason = "AuthorizationUnavailable"
)

// defaultMaxStaleness is how long policies that may have been changed meanwhile still admit what is no read.
const defaultMaxStaleness = 300 * time.Second

// noteworthyAge is the age of a snapshot from which answers and records state it. Below it lies the rhythm in which a
// gate makes sure that it is up to date.
const noteworthyAge = 15 * time.Second

// age is how long ago what the snapshot holds was last known to be in force.
func (g *Gate) age() time.Duration {
	if g.options.Age == nil {
		return 0
	}
	return g.options.Age()
}

// ageSeconds is what answers and records state, 0 where it is not worth a word.
func (d *decision) ageSeconds() int64 {
	if d.age < noteworthyAge {
		return 0
	}
	return int64(d.age / time.Second)
}

// isBarred blocks what may not go on although no rule objects: policies may have been tightened unseen, or RBAC does not
// let the caller use the tool. A read goes on where that cannot be known.
func (d *decision) isBarred(ctx context.Context) bool {
	if d.judgement.IsSettled() {
		return false // rules block it, and say why
	}
	if d.age > d.gate.options.MaxStaleness && !d.judgement.IsRead() {
		d.block(ReasonStaleSnapshot, "the gate has not heard from the API server for too long, so policies may have changed: only reads are judged until it has", true)
		return true
	}
	a := d.gate.options.Authorize
	if a == nil {
		return false
	}
	isAllowed, err := a.Authorize(ctx, d.in.caller, d.in.request.Tool)
	switch {
	case err != nil && d.judgement.IsRead():
		d.gate.options.Log.WarnContext(ctx, "a read goes on although nobody can say whether RBAC allows the tool", "decision", d.id, "error", err)
		return false
	case err != nil:
		d.gate.options.Log.ErrorContext(ctx, "tool could not be authorized", "decision", d.id, "error", err)
		d.block(ReasonAuthorizationUnavailable, "the API server does not say whether this service account may use the tool: call again in a moment", true)
	case !isAllowed:
		d.block(ReasonNotAuthorized, "RBAC does not let this service account use the tool: an admin can grant the verb invoke on the resource tools in gatewright.dev", false)
		d.verdict.Remedy = policy.RemedyAskAdmin
	}
	return d.verdict.Reason != ""
}
