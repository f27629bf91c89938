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
	"gatewright.dev/gatewright/internal/manifest"
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

// ExplainOptions say by what a call is judged.
type ExplainOptions struct {
	// Manifests is the folder with the policies, Caller who asks, as NAMESPACE/NAME.
	Manifests, Caller string
	// Llama says with what deciders of runtime LlamaCpp are run; they are started and ended for this one call.
	Llama LlamaConfig
	Log   *slog.Logger
}

// Explain judges a call on the spot and without a trace.
func Explain(ctx context.Context, o ExplainOptions, body []byte) (_ *Explained, err error) {
	who, err := parseCaller(o.Caller)
	if err != nil {
		return nil, err
	}
	approvals := approval.NewMemory(clock.RealClock{})
	g, err := gate.New(gate.Options{
		Identify: gate.Anyone{Caller: who}, Recorder: discard{}, Approvals: approvals, Seals: approvals, Log: o.Log, Disclose: v1alpha1.DiscloseFull,
	})
	if err != nil {
		return nil, err
	}
	if err := checkFolder(o.Manifests); err != nil {
		return nil, err
	}
	set, err := manifest.LoadDir(o.Manifests)
	if err != nil {
		return nil, err
	}
	processes, err := StartProcesses(ctx, set.DeciderModels(), o.Llama, o.Log)
	if err != nil {
		return nil, err
	}
	defer closing(&err, processes)
	source := newSource(o.Manifests, g, o.Log)
	source.shared = processes
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
