package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	gatewright "gatewright.dev/gatewright/clients/go"
	"gatewright.dev/gatewright/permit"
)

// readiness is what a part says of itself.
type readiness interface {
	Ready(ctx context.Context) error
}

// byPermit lets a call through with a permit for it, which it uses up.
type byPermit struct {
	verifier *permit.Verifier
	audience string
	server   string
	// parts are looked at for readiness: the keys and the store.
	parts []readiness
}

func (b *byPermit) check(ctx context.Context, c *call) (http.Header, *denial) {
	claims, err := b.verifier.Verify(ctx, c.permit, permit.Call{Audience: b.audience, Server: b.server, Tool: c.tool, Arguments: c.arguments})
	if err != nil {
		d := &denial{status: http.StatusForbidden, code: CodeInternal, message: err.Error(), reason: permit.ReasonOf(err)}
		if refused, ok := errors.AsType[*permit.Error](err); ok {
			d.cause = refused.Cause
		}
		return nil, d
	}
	return told(claims), nil
}

func (b *byPermit) ready(ctx context.Context) error {
	for _, part := range b.parts {
		if err := part.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// reviewer asks a gate.
type reviewer interface {
	Review(ctx context.Context, r review.Request) gatewright.Decision
}

// byAsking asks the gate about each call, as the service account whose token the proxy has.
type byAsking struct {
	gate   reviewer
	server string
	isUp   func(ctx context.Context) error
}

func (b *byAsking) check(ctx context.Context, c *call) (http.Header, *denial) {
	d := b.gate.Review(ctx, review.Request{
		Tool: review.Tool{Name: c.tool, Server: b.server}, Arguments: c.arguments, Approval: c.about.approval,
		Context: review.Context{UserRequest: c.about.userRequest, Session: c.about.session},
	})
	if !d.Allowed() {
		return nil, &denial{status: http.StatusForbidden, code: Code(d.Reason), message: d.ForModel(), decision: &d.Response}
	}
	// The gate has read the arguments again from what the client wrote. It has to have come to the same.
	digest, err := permit.ArgumentsDigest(c.arguments)
	if err != nil || digest != d.Decision.ArgumentsDigest {
		return nil, &denial{status: http.StatusBadGateway, code: CodeGateMismatch, cause: errors.Join(err, fmt.Errorf("decision %s", d.Decision.ID)),
			message: "the gate has judged other arguments than these: nothing was run"}
	}
	extra := http.Header{decisionHeader: {d.Decision.ID}}
	if d.Permit != "" { // for a tool server that looks for itself
		extra.Set(permit.Header, d.Permit)
	}
	return extra, nil
}

func (b *byAsking) ready(ctx context.Context) error { return b.isUp(ctx) }
