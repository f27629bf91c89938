package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/audit"
	"gatewright.dev/gatewright/internal/capture"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/manifest"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/policy/effects"
	"gatewright.dev/gatewright/internal/questions"
)

var (
	// ErrDigestOnly says that a record has digests only, so that its call cannot be judged again.
	ErrDigestOnly = errors.New("the record holds digests only: captureState of a policy and --capture-dir keep calls")
	// ErrNotJudged says that the gate itself decided, without its policies: it was full, or had no answer in time.
	ErrNotJudged = errors.New("the gate decided without its policies")
)

// ReplayOptions of NewReplayer.
type ReplayOptions struct {
	// Manifests to judge by.
	Manifests string
	// Kept are the calls.
	Kept *capture.Store
	// Recorded answers questions with what deciders said at the time, and asks none.
	Recorded bool
	// Llama says with what deciders of runtime LlamaCpp are run, unless answers are taken from the record.
	Llama LlamaConfig
	Log   *slog.Logger
}

// Replayer judges recorded calls again. It is for one goroutine.
type Replayer struct {
	options   ReplayOptions
	processes *Processes
	gate      *gate.Gate
	source    *source
	set       *manifest.Set
	clock     setClock
	// deciders answer from the record, if so wanted.
	deciders map[string]*gate.ServedDecider
	entry    *audit.Entry // that is being judged
}

// setClock shows the time of the record.
type setClock struct{ now atomic.Pointer[time.Time] }

// Now implements clock.PassiveClock.
func (c *setClock) Now() time.Time { return *c.now.Load() }

// Since implements clock.PassiveClock.
func (c *setClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *setClock) set(t time.Time) { c.now.Store(&t) }

// NewReplayer reads the manifests, and starts deciders that run in processes of their own. Close ends it.
func NewReplayer(ctx context.Context, o ReplayOptions) (*Replayer, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := &Replayer{options: o}
	r.clock.set(time.Unix(0, 0))
	var err error
	approvals := approval.NewMemory(clock.RealClock{}) // what a person decided is not replayed
	r.gate, err = gate.New(gate.Options{
		Identify: gate.Anyone{}, Recorder: discard{}, Approvals: approvals, Seals: approvals, Clock: &r.clock, Log: o.Log,
		Disclose: v1alpha1.DiscloseFull, NoReuse: true,
	})
	if err != nil {
		return nil, err
	}
	r.source = newSource(o.Manifests, r.gate, o.Log)
	if r.set, err = manifest.LoadDir(o.Manifests); err != nil {
		return nil, err
	}
	if !o.Recorded {
		return r.begin(ctx)
	}
	r.deciders = map[string]*gate.ServedDecider{}
	for _, m := range r.set.DeciderModels() {
		r.deciders[m.Name] = &gate.ServedDecider{Decider: recorded{r, m.Name}, Allowed: m.Spec.AllowsNamespace, Verified: true}
	}
	return r, r.use(r.source.policies(r.set))
}

// begin puts the manifests in force as serve does.
func (r *Replayer) begin(ctx context.Context) (*Replayer, error) {
	var err error
	if r.processes, err = StartProcesses(ctx, r.set.DeciderModels(), r.options.Llama, r.options.Log); err != nil {
		return nil, err
	}
	r.source.shared = r.processes
	if err := r.source.load(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Replayer) use(policies []*policy.Compiled) error {
	if slices.ContainsFunc(policies, (*policy.Compiled).UsesSQL) {
		if err := effects.Warm(); err != nil {
			return fmt.Errorf("preparing the SQL parsers: %w", err)
		}
	}
	r.gate.SetSnapshot(&gate.Snapshot{Policies: policy.NewSet(policies), Deciders: r.deciders})
	return nil
}

// Close ends what deciders do in the background, and their processes.
func (r *Replayer) Close() {
	r.source.close()
	_ = r.processes.Close() // never fails
}

// Replayed is a call judged again.
type Replayed struct {
	Explanation policy.Explanation `json:"explanation"`
	Response    *review.Response   `json:"response"`
	State       capture.State      `json:"-"`
}

// Judge judges the call of a record again, at the time of the record.
func (r *Replayer) Judge(ctx context.Context, e *audit.Entry) (*Replayed, error) {
	if e.By == "gate" {
		return nil, ErrNotJudged
	}
	if e.Captured == "" {
		return nil, ErrDigestOnly
	}
	data, err := r.options.Kept.Get(e.StateDigest)
	if err != nil {
		return nil, err
	}
	out := &Replayed{}
	if err := json.Unmarshal(data, &out.State); err != nil {
		return nil, fmt.Errorf("%w: %w", capture.ErrCorrupt, err)
	}
	caller, err := gate.ServiceAccount(e.Caller.Namespace, e.Caller.ServiceAccount)
	if err != nil {
		return nil, err
	}
	r.clock.set(e.Time)
	r.entry = e
	out.Explanation, out.Response, err = r.gate.Replay(ctx, out.State, e.UID, e.StateDigest, caller)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// recorded answers as a decider did at the time.
type recorded struct {
	replayer *Replayer
	name     string
}

// Decide implements inference.Decider.
func (d recorded) Decide(_ context.Context, r inference.Request) (inference.Result, error) {
	out := inference.Result{Answers: questions.Answers{}}
	for _, a := range d.replayer.entry.Deciders {
		if a.Decider != d.name || a.Error != "" {
			continue
		}
		for _, q := range r.Questions {
			if given, ok := a.Answers[q.Name]; ok {
				out.Answers[q.Name] = asAnswer(q.Type, given)
				out.Fingerprint = a.Fingerprint
			}
		}
	}
	if err := questions.CheckAll(r.Questions, out.Answers); err != nil {
		return inference.Result{}, &inference.Error{Reason: inference.QuestionNotSupported, Detail: "the record has no such answer"}
	}
	return out, nil
}

func asAnswer(t questions.Type, a review.Answer) questions.Answer {
	out := questions.Answer{Type: t, Choice: a.Choice, Probabilities: a.Probabilities, Coverage: 1, Verdict: t == questions.Choice && len(a.Probabilities) == 0}
	if a.Probability != nil {
		out.Probability = *a.Probability
	}
	if a.Score != nil {
		out.Score = *a.Score
	}
	return out
}
