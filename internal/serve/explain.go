package serve

import (
	"context"
	"log/slog"

	"k8s.io/utils/clock"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/inference/judge"
	"gatewright.dev/gatewright/internal/policy"
)

// Explained is a decision with every step that led to it.
type Explained struct {
	Explanation policy.Explanation `json:"explanation"`
	Response    *review.Response   `json:"response"`
	// Drivers say which facts drove the answers of the embedded judge.
	Drivers []judge.Drivers `json:"drivers,omitempty"`
}

// discard takes records of calls that are only explained.
type discard struct{}

func (discard) Append(context.Context, *audit.Record) error { return nil }
func (discard) Enqueue(*audit.Record) error                 { return nil }
func (discard) Available() bool                             { return true }

// Explain judges a call by the manifests in a folder, on the spot and without a trace.
func Explain(ctx context.Context, manifests string, caller string, body []byte, log *slog.Logger) (*Explained, error) {
	who, err := parseCaller(caller)
	if err != nil {
		return nil, err
	}
	approvals := approval.NewMemory(clock.RealClock{})
	g, err := gate.New(gate.Options{
		Identify: gate.Anyone{Caller: who}, Recorder: discard{}, Approvals: approvals, Seals: approvals, Log: log, Disclose: v1alpha1.DiscloseFull,
	})
	if err != nil {
		return nil, err
	}
	source := newSource(manifests, g, log)
	defer source.close()
	if err := source.load(); err != nil {
		return nil, err
	}
	drivers, err := watch(source)
	if err != nil {
		return nil, err
	}
	explanation, response, err := g.Explain(ctx, body, who)
	if err != nil {
		return nil, err
	}
	return &Explained{Explanation: explanation, Response: response, Drivers: drivers()}, nil
}
