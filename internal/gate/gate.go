// Package gate answers whether a proposed tool call may run. It decodes a review, identifies the caller, judges the call
// by one immutable snapshot of policies, asks a decider where a policy wants it, records the decision and answers.
//
// Whatever fails, fails closed: an HTTP 200 carries a decision, and anything else means Block to the caller.
package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/permit"
	"gatewright.dev/gatewright/internal/shares"
	"gatewright.dev/gatewright/internal/strictjson"
)

// Recorder keeps decision records.
type Recorder interface {
	// Append returns when the record is durable.
	Append(ctx context.Context, r *audit.Record) error
	// Enqueue returns when the record has its place in the log.
	Enqueue(r *audit.Record) error
	// Available says whether the log was written to when it last had to be.
	Available() bool
}

// Approvals keeps calls that wait for a person.
type Approvals interface {
	// Find returns the approvals of a call that are pending, approved or rejected.
	Find(ctx context.Context, b approval.Binding) ([]approval.Approval, error)
	// Raise asks a person, or returns the approval that already waits for this very call.
	Raise(ctx context.Context, c approval.Call) (approval.Approval, error)
	// Consume uses an approval. Of several calls for one approval exactly one succeeds.
	Consume(ctx context.Context, id string) error
}

// Seals tells approvals that a gate has sealed from all others.
type Seals interface {
	// Verify returns an error unless the approval is what was sealed, by a key that is known.
	Verify(a *approval.Approval) error
}

// Permits signs what a tool checks before it runs.
type Permits interface {
	Sign(c permit.Claims, lifetime time.Duration) (string, error)
}

// Options configure a Gate. Fields without a default are required.
type Options struct {
	Identify  Identifier
	Recorder  Recorder
	Approvals Approvals
	// Seals verifies every approval that Approvals gives: what is not sealed is ignored, whatever it says.
	Seals Seals
	// ApproverIssuers are those whose tokens are checked where approvals are decided. Where a policy opens the channel OIDC
	// an approval counts only if it was decided by a user of one of them.
	ApproverIssuers []string
	// Permits signs permits. Without it a tool that requires one is Block, PermitUnavailable.
	Permits Permits
	// Cluster names what the gates that share their callers belong to. It keeps permits of two clusters apart.
	Cluster string
	// Authorize is asked about every call that rules do not block. Without it whoever is identified may use any tool that
	// policies let it use.
	Authorize Authorizer
	// Age says how long ago what the snapshot holds was last known to be in force. Without it that is always now.
	Age func() time.Duration
	// MaxStaleness is the Age above which only reads are judged; everything else is Block, StaleSnapshot. 300 s by default.
	MaxStaleness time.Duration
	// Clock is the time; the system's by default.
	Clock clock.PassiveClock
	// Log takes what an operator acts on.
	Log *slog.Logger
	// Registry takes the metrics.
	Registry prometheus.Registerer
	// Tracer names the source of spans; the global provider by default.
	Tracer trace.TracerProvider
	// Version of the gate, in records.
	Version string
	// Disclose is what callers see where no policy says it: Minimal by default.
	Disclose v1alpha1.Disclosure
	// Limits of a request body: 1 MiB, 32 levels, 4,096 keys by default.
	Limits strictjson.Limits
	// MaxInFlight is how many calls may be judged at once, at most half of them of one namespace; one more is Block,
	// Overloaded. 1024 by default.
	MaxInFlight int
	// MaxReading is how many bodies may be read and decoded at once, at most half of them of one namespace; with one more
	// the request is refused. 256 by default, which bounds what requests take of memory before they are judged.
	MaxReading int
	// Timeout is the deadline of a request that names none, and the longest that one may name. 15 s by default.
	Timeout time.Duration
	// ReplayBytes bounds the memory that answered requests are kept in for their uid. 64 MiB by default.
	ReplayBytes int
	// Capture keeps calls beside their records where a policy wants that. Without it only digests are kept.
	Capture Capturer
	// NoReuse judges every call anew: no denial is remembered and no clarification is counted. An evaluation needs it, so
	// that the second answer to a case is a second judgement. A gate that guards anything must not have it.
	NoReuse bool
	// Asked, if set, is told what came of each request to a decider, by the id of the decision. Calls overlap, and the
	// decision waits for it.
	Asked func(decision string, a Asked)
}

// Asked is what came of one request to a decider.
type Asked struct {
	Decider string
	// Audit says that only policies in mode Audit wanted to know.
	Audit bool
	// Result is empty if Err is set.
	Result inference.Result
	// Err is why there is no answer.
	Err  inference.Reason
	Took time.Duration
}

// Gate judges calls. Its methods are safe for concurrent use.
type Gate struct {
	options  Options
	snapshot atomic.Pointer[Snapshot]
	draining atomic.Bool
	// slots are of calls being judged, reading of bodies being read, both by namespace: a runaway agent cannot keep everybody
	// else from the gate.
	slots, reading *shares.Shares
	replays        *replays
	repeats        *repeats
	budgets        *budgets
	shadows        *shadows

	// approvals counts what was not believed about them.
	approvals *approvalMetrics

	metrics *metrics
	tracer  trace.Tracer
}

// New returns a gate without a snapshot: it is not ready, and blocks every call with NotReady, until SetSnapshot.
func New(o Options) (*Gate, error) {
	if o.Identify == nil || o.Recorder == nil || o.Approvals == nil || o.Seals == nil {
		return nil, errors.New("gate: Identify, Recorder, Approvals and Seals are required")
	}
	o = o.withDefaults()
	g := &Gate{
		options: o,
		slots:   shares.New(o.MaxInFlight),
		reading: shares.New(o.MaxReading),
		replays: newReplays(o.ReplayBytes),
		repeats: newRepeats(),
		budgets: newBudgets(),
		shadows: newShadows(),
		tracer:  o.Tracer.Tracer("gatewright.dev/gatewright/internal/gate"),
	}
	var err error
	if g.metrics, err = newMetrics(o.Registry, g); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	if g.approvals, err = newApprovalMetrics(o.Registry); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	if err := g.shadows.register(o.Registry); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return g, nil
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Tracer == nil {
		o.Tracer = otel.GetTracerProvider()
	}
	if o.Disclose == "" {
		o.Disclose = v1alpha1.DiscloseMinimal
	}
	if o.MaxStaleness <= 0 {
		o.MaxStaleness = defaultMaxStaleness
	}
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = 1024
	}
	if o.MaxReading <= 0 {
		o.MaxReading = 256
	}
	if o.Timeout <= 0 {
		o.Timeout = 15 * time.Second
	}
	if o.ReplayBytes <= 0 {
		o.ReplayBytes = 64 << 20
	}
	if o.Limits.MaxBytes <= 0 {
		o.Limits.MaxBytes = strictjson.DefaultLimits.MaxBytes
	}
	return o
}

// SetSnapshot puts policies and deciders in force. Calls that are being judged go on with the snapshot they began with.
func (g *Gate) SetSnapshot(s *Snapshot) { g.snapshot.Store(s) }

// Ready says whether a snapshot is in force, and no end has been announced.
func (g *Gate) Ready() bool { return g.snapshot.Load() != nil && !g.draining.Load() }

// Drain announces the end: the gate is no longer Ready, and goes on judging.
func (g *Gate) Drain() { g.draining.Store(true) }
