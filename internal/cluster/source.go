package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/policy/effects"
	"gatewright.dev/gatewright/internal/served"
)

const (
	// settle is how long nothing has to change before a snapshot is built: many objects are often applied at once.
	settle = 100 * time.Millisecond
	// longestSettle is how long a change waits at most.
	longestSettle = time.Second
	// retryEvery is how often a decider that could not be made is tried again.
	retryEvery = 5 * time.Second
)

// SourceOptions say what snapshots are made of.
type SourceOptions struct {
	// Config reaches the API server.
	Config *rest.Config
	// Namespace is Gatewright's own.
	Namespace string
	// Wrap sees the watches: that of a Contact.
	Wrap     func(http.RoundTripper) http.RoundTripper
	Deciders DeciderOptions
	// Gate gets the snapshots.
	Gate     interface{ SetSnapshot(s *gate.Snapshot) }
	Clock    clock.WithTicker
	Log      *slog.Logger
	Registry prometheus.Registerer
}

// Source keeps a gate's snapshot as the API server has its objects: whole, and off the path of calls.
type Source struct {
	options   SourceOptions
	informers *informers
	deciders  *deciderSet
	touched   chan struct{}
	pending   atomic.Pointer[time.Time] // since when a change waits; nil: none does
	compiled  map[types.UID]compiled
	serving   atomic.Pointer[serving]
	builds    prometheus.Counter
	invalid   prometheus.Gauge
}

// compiled is a policy as it was last compiled.
type compiled struct {
	generation int64
	policy     *policy.Compiled
}

// serving is what the snapshot in force was made of.
type serving struct {
	policies map[string]int64
	places   *places
}

// NewSource watches nothing yet.
func NewSource(o SourceOptions) (*Source, error) {
	s := &Source{
		options: o, deciders: newDeciderSet(o.Deciders), touched: make(chan struct{}, 1), compiled: map[types.UID]compiled{},
		builds: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gatewright_snapshots_total", Help: "Snapshots of policies and deciders that were put in force.",
		}),
		invalid: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gatewright_policies_invalid", Help: "Policies in force that do not compile and so block their callers.",
		}),
	}
	var err error
	if s.informers, err = newInformers(o.Config, o.Namespace, o.Wrap, s.touch); err != nil {
		return nil, err
	}
	return s, errors.Join(o.Registry.Register(s.builds), o.Registry.Register(s.invalid))
}

// touch says that something has changed.
func (s *Source) touch() {
	now := s.options.Clock.Now()
	s.pending.CompareAndSwap(nil, &now)
	select {
	case s.touched <- struct{}{}:
	default:
	}
}

// Pending is how long a change has waited to come into force.
func (s *Source) Pending() time.Duration {
	if since := s.pending.Load(); since != nil {
		return s.options.Clock.Since(*since)
	}
	return 0
}

// Run keeps the snapshot until the context ends.
func (s *Source) Run(ctx context.Context) {
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() { s.informers.run(ctx) })
	if !s.waitForSync(ctx) {
		return
	}
	s.build(ctx)
	retry := s.options.Clock.NewTicker(retryEvery)
	defer retry.Stop()
	defer s.close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-retry.C():
			if s.serving.Load().places.hasErrors() {
				s.build(ctx)
			}
		case <-s.touched:
			s.settle(ctx)
			s.build(ctx)
		}
	}
}

func (s *Source) waitForSync(ctx context.Context) bool {
	look := s.options.Clock.NewTicker(syncLook)
	defer look.Stop()
	for !s.informers.isSynced() {
		select {
		case <-ctx.Done():
			return false
		case <-look.C():
		}
	}
	return true
}

// settle waits until nothing has changed for a moment, but not for long.
func (s *Source) settle(ctx context.Context) {
	quiet, overdue := s.options.Clock.NewTimer(settle), s.options.Clock.NewTimer(longestSettle)
	defer quiet.Stop()
	defer overdue.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.touched:
			quiet.Reset(settle)
		case <-quiet.C():
			return
		case <-overdue.C():
			return
		}
	}
}

// build puts what the caches hold now in force.
func (s *Source) build(ctx context.Context) {
	since := s.pending.Load()
	policies, generations := s.policies(ctx)
	models := list[*v1alpha1.DeciderModel](s.informers, "decidermodels")
	at, unused := s.deciders.place(models, s.revisions())
	if slices.ContainsFunc(policies, (*policy.Compiled).UsesSQL) {
		if err := effects.Warm(); err != nil {
			s.options.Log.ErrorContext(ctx, "SQL parsers cannot be prepared: calls with SQL are slow or blocked", "error", err)
		}
	}
	s.serving.Store(&serving{generations, at})
	s.options.Gate.SetSnapshot(&gate.Snapshot{Policies: policy.NewSet(policies), Deciders: at.serve(models)})
	s.builds.Inc()
	for _, r := range unused {
		r.guard.Close()
	}
	s.pending.CompareAndSwap(since, nil)
	if len(s.touched) > 0 { // what came while this was built is not in it
		s.touch()
	}
	s.options.Log.InfoContext(ctx, "policies in force", "policies", len(policies), "deciders", len(at.active))
}

// policies compiles what has changed. A policy that does not compile blocks its scope.
func (s *Source) policies(ctx context.Context) ([]*policy.Compiled, map[string]int64) {
	next, generations := map[types.UID]compiled{}, map[string]int64{}
	var out []*policy.Compiled
	invalid := 0
	add := func(uid types.UID, generation int64, key string, compile func() (*policy.Compiled, field.ErrorList)) {
		c, ok := s.compiled[uid]
		if !ok || c.generation != generation {
			c = compiled{generation: generation}
			var errs field.ErrorList
			c.policy, errs = compile()
			s.report(ctx, c.policy, errs)
		}
		if c.policy.Invalid {
			invalid++
		}
		next[uid] = c
		generations[key] = generation
		out = append(out, c.policy)
	}
	for _, p := range list[*v1alpha1.ToolPolicy](s.informers, "toolpolicies") {
		add(p.UID, p.Generation, served.PolicyKey(p.Namespace, p.Name), func() (*policy.Compiled, field.ErrorList) { return policy.Compile(p) })
	}
	for _, p := range list[*v1alpha1.ClusterToolPolicy](s.informers, "clustertoolpolicies") {
		add(p.UID, p.Generation, served.ClusterPolicyKey(p.Name), func() (*policy.Compiled, field.ErrorList) { return policy.CompileCluster(p) })
	}
	s.compiled = next
	s.invalid.Set(float64(invalid))
	return out, generations
}

func (s *Source) report(ctx context.Context, p *policy.Compiled, errs field.ErrorList) {
	if err := errs.ToAggregate(); err != nil {
		s.options.Log.ErrorContext(ctx, "policy does not compile and blocks its callers", "policy", p.ID.String(), "error", err)
	}
	if p.NeedsFingerprint() {
		s.options.Log.WarnContext(ctx, "policy allows by numbers of an unpinned decider, so its decider is not asked: set deciderRef.fingerprint", "policy", p.ID.String())
	}
}

func (s *Source) revisions() map[string]*appsv1.ControllerRevision {
	out := map[string]*appsv1.ControllerRevision{}
	for _, c := range list[*appsv1.ControllerRevision](s.informers, "controllerrevisions") {
		out[c.Name] = c
	}
	return out
}

func (s *Source) close() {
	for _, r := range s.deciders.kept {
		r.guard.Close()
	}
}

// Report is what is served now, as of a moment when that was known to be up to date.
func (s *Source) Report(upToDate time.Time) (served.Report, error) {
	now := s.serving.Load()
	if now == nil {
		return served.Report{}, fmt.Errorf("nothing is served yet")
	}
	out := served.Report{Policies: now.policies, Deciders: map[string]served.Decider{}, SnapshotAt: upToDate}
	for name, p := range now.places.active {
		out.Deciders[name] = p.state()
	}
	for name, p := range now.places.candidates {
		if out.Candidates == nil {
			out.Candidates, out.Shadow = map[string]served.Decider{}, map[string]served.Shadow{}
		}
		out.Candidates[name] = p.state()
		if p.err == nil {
			out.Shadow[p.name] = p.revision.tally.Count()
		}
	}
	return out, nil
}
