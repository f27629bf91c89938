package inference

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"gatewright.dev/gatewright/internal/language"
	"gatewright.dev/gatewright/internal/questions"
)

// GuardOptions configures a Guard. Zero values are the defaults in brackets.
type GuardOptions struct {
	// MaxInFlight is how many requests the decider gets at once [1, which every server can bear].
	MaxInFlight int
	// MaxQueue and MaxQueuePerTenant bound who waits, together and per tenant [64, 16].
	MaxQueue, MaxQueuePerTenant int
	// Timeout bounds waiting and answer together when the caller has no nearer deadline [2 s].
	Timeout time.Duration
	// MinTimeout is how long a decider must have had before a time-out counts against it [100 ms]: a call that spent its
	// time in the queue says nothing about the server.
	MinTimeout time.Duration
	// OpenFor is how long the breaker stays open before the decider is tried again [2 s].
	OpenFor time.Duration
	// FailuresToOpen is how many failures in a row open the breaker [1].
	FailuresToOpen int
	// Life numbers the runs of a decider that is watched and has shown that it answers whenever the number changes: what was
	// learnt about one run says nothing about the next, and the calls that wait for it need no trial. Nil for one that nobody
	// watches.
	Life func() int64
	// Languages are what the decider reads, as BCP 47 tags; empty means any. Otherwise a request is refused if it states
	// another language, or if the user's own words show another one, whatever it states. Words that show no language are
	// asked about.
	Languages []string
	// Observe is told of every call, for metrics.
	Observe func(Observation)
	// Tracer names the source of spans; nil is the global provider.
	Tracer trace.TracerProvider
}

// Observation is what metrics may know of one call. It has no text of the call in it.
type Observation struct {
	// Reason is empty for a call that was answered.
	Reason Reason
	// Waited is the time in the queue, Latency all of it.
	Waited, Latency time.Duration
	Retried         bool
	Questions       int
}

// Guard keeps a decider from being overrun and its callers from waiting for a dead one. When the decider fails, one call
// finds out; all others are refused at once until the decider has answered again. That is tried in the background with
// the request of a refused caller, so that no caller pays for the attempt with a time-out.
type Guard struct {
	decider Decider
	options GuardOptions
	learnt  atomic.Pointer[learnt]
	queue   *queue
	tracer  trace.Tracer

	stop    context.Context //nolint:containedctx // the lifetime of background attempts, ended by Close
	cancel  context.CancelFunc
	mu      sync.Mutex // orders the start of attempts and Close
	attempt sync.WaitGroup
}

type breaker = gobreaker.TwoStepCircuitBreaker[struct{}]

// learnt is what is known of one run of the decider.
type learnt struct {
	life    int64
	breaker *breaker
}

var errNotCounted = errors.New("says nothing about the decider's health")

// NewGuard returns a guard, which must be closed.
func NewGuard(d Decider, o GuardOptions) *Guard {
	o = o.withDefaults()
	g := &Guard{decider: d, options: o, queue: newQueue(o.MaxInFlight, o.MaxQueuePerTenant, o.MaxQueue)}
	g.tracer = o.Tracer.Tracer("gatewright.dev/gatewright/internal/inference")
	g.stop, g.cancel = context.WithCancel(context.Background())
	g.learnt.Store(&learnt{life: o.Life(), breaker: g.newBreaker()})
	return g
}

func (g *Guard) newBreaker() *breaker {
	return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		MaxRequests: 1,
		Timeout:     g.options.OpenFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return int(c.ConsecutiveFailures) >= g.options.FailuresToOpen },
		IsExcluded:  func(err error) bool { return errors.Is(err, errNotCounted) },
	})
}

// breaker is that of the present run. Calls that began with an earlier one report to its own.
func (g *Guard) breaker() *breaker {
	for {
		last, life := g.learnt.Load(), g.options.Life()
		if last.life == life {
			return last.breaker
		}
		g.learnt.CompareAndSwap(last, &learnt{life: life, breaker: g.newBreaker()})
	}
}

func (o GuardOptions) withDefaults() GuardOptions {
	orInt := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	orTime := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	orInt(&o.MaxInFlight, 1)
	orInt(&o.MaxQueue, 64)
	orInt(&o.MaxQueuePerTenant, 16)
	orInt(&o.FailuresToOpen, 1)
	orTime(&o.Timeout, 2*time.Second)
	orTime(&o.MinTimeout, 100*time.Millisecond)
	orTime(&o.OpenFor, 2*time.Second)
	if o.Life == nil {
		o.Life = func() int64 { return 0 }
	}
	if o.Observe == nil {
		o.Observe = func(Observation) {}
	}
	if o.Tracer == nil {
		o.Tracer = otel.GetTracerProvider()
	}
	return o
}

// Close ends attempts in the background and waits for them.
func (g *Guard) Close() {
	g.mu.Lock()
	g.cancel()
	g.mu.Unlock()
	g.attempt.Wait()
}

// Decide asks the decider, or says at once why not.
func (g *Guard) Decide(ctx context.Context, r Request) (Result, error) {
	start := time.Now()
	ctx, span := g.tracer.Start(ctx, "decider call", trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	seen := Observation{Questions: len(r.Questions)}
	result, err := g.decide(ctx, r, &seen)
	seen.Reason, seen.Latency = ReasonOf(err), time.Since(start)
	span.SetAttributes(attribute.Int("decider.questions", seen.Questions), attribute.String("decider.reason", string(seen.Reason)),
		attribute.String("decider.model", result.Model), attribute.Bool("decider.retried", seen.Retried),
		attribute.Int64("decider.waited_ms", seen.Waited.Milliseconds()))
	if err != nil {
		span.SetStatus(codes.Error, string(seen.Reason))
	}
	g.options.Observe(seen)
	return result, err
}

// Available says whether calls get through to the decider, for metrics.
func (g *Guard) Available() bool { return g.breaker().State() == gobreaker.StateClosed }

func (g *Guard) decide(ctx context.Context, r Request, seen *Observation) (Result, error) {
	if err := r.validate(); err != nil {
		return Result{}, err
	}
	if !g.reads(&r.State) {
		return Result{}, fail(LanguageNotSupported, "the decider does not read the language of this request")
	}
	if g.isOpen(r) { //nolint:contextcheck // an attempt in the background must outlive the refused caller
		return Result{}, &Error{Reason: BreakerOpen}
	}
	ctx, cancel := context.WithTimeout(ctx, g.options.Timeout)
	defer cancel()
	entered := time.Now()
	if err := g.queue.acquire(ctx, r.Tenant); err != nil {
		seen.Waited = time.Since(entered)
		return Result{}, err
	}
	defer g.queue.release()
	seen.Waited = time.Since(entered)
	done, err := g.breaker().Allow()
	if err != nil { // it failed while this call waited
		return Result{}, &Error{Reason: BreakerOpen}
	}
	return g.counted(ctx, r, done, seen)
}

// counted asks and reports how it went, also when the decider panics.
func (g *Guard) counted(ctx context.Context, r Request, done func(error), seen *Observation) (result Result, err error) {
	began, health := time.Now(), error(&Error{Reason: Unreachable})
	defer func() { done(health) }()
	result, err = g.ask(ctx, r, seen)
	health = g.health(err, time.Since(began))
	return result, err
}

// ask tries again once if not one byte was sent, and checks the answers whatever decider gave them.
func (g *Guard) ask(ctx context.Context, r Request, seen *Observation) (Result, error) {
	result, err := g.decider.Decide(ctx, r)
	var e *Error
	if errors.As(err, &e) && e.unsent && ctx.Err() == nil {
		seen.Retried = true
		result, err = g.decider.Decide(ctx, r)
	}
	if err != nil {
		return Result{}, asError(ctx, err)
	}
	if err := questions.CheckAll(r.Questions, result.Answers); err != nil {
		return Result{}, fail(BadReply, "%v", err)
	}
	return result, nil
}

// health is what the breaker learns. A reply, however bad, shows a live server, and bad replies can be provoked by what is
// asked: if they opened the breaker, one tenant could shut out all others.
func (g *Guard) health(err error, took time.Duration) error {
	switch ReasonOf(err) {
	case "", BadReply, CutReply, Refused, LowCoverage, ModelMismatch:
		return nil
	case Unreachable, Overloaded:
		return err
	case Timeout:
		if took >= g.options.MinTimeout {
			return err
		}
		return errNotCounted
	default:
		return errNotCounted
	}
}

func (g *Guard) isOpen(r Request) bool {
	state := g.breaker().State()
	if state == gobreaker.StateHalfOpen {
		g.tryInBackground(r)
	}
	return state != gobreaker.StateClosed
}

// tryInBackground asks with a refused request whether the decider is back. The breaker lets one such attempt through.
func (g *Guard) tryInBackground(r Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stop.Err() != nil {
		return
	}
	done, err := g.breaker().Allow()
	if err != nil {
		return
	}
	g.attempt.Go(func() {
		ctx, cancel := context.WithTimeout(g.stop, g.options.Timeout)
		defer cancel()
		defer func() { // counted has told the breaker; there is no caller to tell
			if recover() != nil {
				g.options.Observe(Observation{Reason: Unreachable, Questions: len(r.Questions)})
			}
		}()
		if g.queue.acquire(ctx, r.Tenant) != nil {
			done(errNotCounted)
			return
		}
		defer g.queue.release()
		_, _ = g.counted(ctx, r, done, &Observation{})
	})
}

// reads looks at what the request states and at what the user's words show. What it states can only tighten: an agent that
// calls everything English would otherwise have its user's words judged by a decider that cannot read them.
func (g *Guard) reads(s *questions.State) bool {
	all := g.options.Languages
	if len(all) == 0 {
		return true
	}
	stated := language.Primary(s.Language)
	if stated != "" && !slices.ContainsFunc(all, func(l string) bool { return language.Primary(l) == stated }) {
		return false
	}
	return language.Detect(s.UserTurns).ReadableBy(all)
}
