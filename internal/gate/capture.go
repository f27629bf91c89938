package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/capture"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/strictjson"
)

// Capturer keeps calls, so that their decisions can be judged again.
type Capturer interface {
	// Keeps says whether it can keep a call so.
	Keeps(mode capture.Mode) bool
	// Put keeps a state under its digest, without waiting for a disk.
	Put(mode capture.Mode, digest string, state []byte) error
}

// capture keeps the call if the policies of its caller want that. What cannot be kept is missing in a replay, and the
// record says so: it changes no outcome.
func (d *decision) capture(ctx context.Context) {
	mode := capture.Mode(d.terms.CaptureState)
	if d.gate.options.Capture == nil || d.judgement == nil || !d.gate.options.Capture.Keeps(mode) {
		return
	}
	if d.decided == "" {
		d.decided = d.in.stateDigest()
	}
	state, err := json.Marshal(d.in.state())
	if err == nil {
		err = d.gate.options.Capture.Put(mode, d.decided, state)
	}
	if err != nil {
		d.gate.metrics.captureFailures.Inc()
		d.gate.options.Log.WarnContext(ctx, "call could not be kept", "decision", d.id, "error", err)
		return
	}
	d.captured = string(mode)
}

// state is the call as it is kept: without what belongs to one attempt only.
func (in *input) state() capture.State {
	r := *in.review
	r.UID, r.Approval, r.DryRun = "", "", false
	return capture.State{Caller: in.caller.String(), Request: r}
}

// recordRefusal writes down that a call was refused because its first record could not be made durable. It has its place
// behind that one, and says what was answered; if there is no place either, the log counts it.
func (d *decision) recordRefusal(ctx context.Context) {
	if err := d.gate.options.Recorder.Enqueue(d.auditRecord()); err != nil {
		d.gate.options.Log.ErrorContext(ctx, "refusal could not be recorded", "decision", d.id, "error", err)
	}
}

// askedRecord is what one policy asked and what came of it, for the record.
func askedRecord(a *policy.Ask, r *decision, out *policy.Answered) audit.Asked {
	rec := audit.Asked{
		Policy: a.Policy, Decider: a.Decider, Audit: a.Audit, Fingerprint: r.fingerprint, ModelHash: r.modelHash, PromptVersion: promptVersion,
		Milliseconds: milliseconds(r.deciderTook), Error: string(r.deciderErr),
	}
	if rec.Error == "" {
		rec.Error = string(out.Unavailable)
	}
	if len(out.Answers) > 0 {
		rec.Answers = make(map[string]review.Answer, len(out.Answers))
		for name, a := range out.Answers {
			rec.Answers[name] = answer(a, false)
		}
	}
	return rec
}

// ErrOtherState says that a kept call is not the one that its record speaks of.
var ErrOtherState = errors.New("what was kept is not the call that the record speaks of")

// KeptState reads a kept call, and refuses what is not the call that a record with this digest speaks of.
func KeptState(data []byte, digest string) (*capture.State, error) {
	s := &capture.State{}
	if err := strictjson.Decode(data, strictjson.Limits{}, s); err != nil {
		return nil, fmt.Errorf("%w: %w", capture.ErrCorrupt, err)
	}
	arguments, err := strictjson.Digest(s.Request.Arguments)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", capture.ErrCorrupt, err)
	}
	if stateDigest(s.Caller, &s.Request, arguments) != digest {
		return nil, ErrOtherState
	}
	return s, nil
}

// Replay judges a kept call anew, as a dry run at the time of the gate's clock. It wants the call to have the digest that
// its record has; uid is that of the record.
func (g *Gate) Replay(ctx context.Context, s capture.State, uid, digest string, caller policy.Caller) (policy.Explanation, *review.Response, error) {
	s.Request.UID = uid
	body, err := json.Marshal(review.ToolCallReview{APIVersion: review.APIVersion, Kind: review.Kind, Request: &s.Request})
	if err != nil {
		return policy.Explanation{}, nil, fmt.Errorf("writing the call: %w", err)
	}
	in, bad := g.decode(body, caller, g.options.Clock.Now())
	if bad != nil {
		return policy.Explanation{}, nil, bad
	}
	if in.stateDigest() != digest {
		return policy.Explanation{}, nil, ErrOtherState
	}
	return g.Explain(ctx, body, caller)
}
