// Package server lets callers ask one loaded model over the wire of typed questions. In front of the engine, which
// answers one request at a time, stands a bounded queue that is fair by caller; what cannot be answered whole and in time
// is refused with a reason, and never answered in part.
package server

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/shares"
)

// Defaults of Options, for fields that are zero.
const (
	DefaultMaxBody        = 256 << 10
	DefaultQueue          = 64
	DefaultRequestTimeout = 10 * time.Second
	DefaultVerifyInterval = time.Hour
	DefaultDrainTimeout   = 20 * time.Second
	// DefaultStuckAfter is how long an engine may go on after its request ended before it counts as stuck.
	DefaultStuckAfter = 30 * time.Second
)

// Engine is a loaded model that has a golden question: a fixed one, whose answer shows whether it computes as it did when
// its thresholds were fitted.
type Engine interface {
	engine.Engine
	Golden() (state []byte, q questions.Question)
}

// Options configures a Server. Engine, Registry and Logger are required.
type Options struct {
	Engine Engine
	// Aliases are further names, besides the model's own, that a request may ask for.
	Aliases []string
	// Golden is what the golden question must be answered with before the server is ready.
	Golden Golden
	// Callers says who may ask; nil lets everybody who can connect.
	Callers *Tokens
	// RequireCertificate admits only callers with a verified client certificate to /v1.
	RequireCertificate bool
	// MaxBody bounds the body of a request in bytes.
	MaxBody int
	// Queue bounds how many requests wait, besides the one that is being answered.
	Queue int
	// RequestTimeout is the longest that a request may take, queue included. Request-Timeout in a request may only shorten it.
	RequestTimeout time.Duration
	// VerifyInterval is how often the loaded bytes are hashed anew.
	VerifyInterval time.Duration
	// DrainDelay is how long requests are still taken after readiness has failed; DrainTimeout bounds what follows.
	DrainDelay, DrainTimeout time.Duration
	StuckAfter               time.Duration
	Registry                 prometheus.Registerer
	Logger                   *slog.Logger
	Tracer                   trace.TracerProvider
	Clock                    clock.WithTicker
}

// phase is where in its life a server stands. Only ready passes the readiness probe.
type phase int32

const (
	starting phase = iota
	ready
	leaving  // not ready any more, requests are still taken
	draining // only requests that were taken before are answered
	lost     // the engine or its bytes cannot be trusted
)

// Server answers typed questions over HTTP.
type Server struct {
	options Options
	info    engine.Info
	names   map[string]bool
	queue   *queue
	worker  *worker
	metrics *metrics
	tracer  trace.Tracer

	phase    atomic.Int32
	open     *shares.Shares // of requests between authentication and answer
	verified atomic.Int64   // Unix nanoseconds of the last successful look at the bytes

	// ended is closed when nothing may be answered any more; endCause says why, and is set before.
	ended    chan struct{}
	endOnce  sync.Once
	endCause error
	using    sync.WaitGroup // of what may call the engine
	// broken gets the error that ends the server, at most one.
	broken chan error
}

// Reasons for which requests end that no caller gave up.
var (
	errDeadline  = errors.New("the deadline of the request passed")
	errDraining  = errors.New("the server is going away")
	errPushedOut = errors.New("made room for a caller with fewer waiting requests")
)

// New returns a server that is not ready; Serve makes it so.
func New(o Options) (*Server, error) {
	switch {
	case o.Engine == nil || o.Registry == nil || o.Logger == nil:
		return nil, errors.New("engine, registry and logger are required")
	case o.MaxBody < 0 || o.Queue < 0 || o.RequestTimeout < 0 || o.VerifyInterval < 0 || o.DrainDelay < 0 || o.DrainTimeout < 0 || o.StuckAfter < 0:
		return nil, errors.New("limits must not be negative")
	}
	if err := o.Golden.validate(); err != nil {
		return nil, err
	}
	o.fill()
	s := &Server{options: o, info: o.Engine.Info(), names: map[string]bool{"": true}, ended: make(chan struct{}), broken: make(chan error, 1)}
	if s.info.Model == "" || s.info.Fingerprint == "" {
		return nil, errors.New("the engine names no model or no fingerprint, and a number belongs to its model")
	}
	for _, name := range append([]string{s.info.Model}, o.Aliases...) {
		s.names[name] = true
	}
	s.queue = newQueue(o.Queue)
	s.open = shares.New(2*o.Queue + 16)
	s.worker = newWorker(o.Engine, s.queue, o.Clock)
	s.tracer = o.Tracer.Tracer("gatewright.dev/gatewright/internal/inference/server")
	s.verified.Store(o.Clock.Now().UnixNano())
	var err error
	s.metrics, err = newMetrics(o.Registry, s)
	return s, err
}

func (o *Options) fill() {
	o.MaxBody = orDefault(o.MaxBody, DefaultMaxBody)
	o.Queue = orDefault(o.Queue, DefaultQueue)
	o.RequestTimeout = orDefault(o.RequestTimeout, DefaultRequestTimeout)
	o.VerifyInterval = orDefault(o.VerifyInterval, DefaultVerifyInterval)
	o.DrainTimeout = orDefault(o.DrainTimeout, DefaultDrainTimeout)
	o.StuckAfter = orDefault(o.StuckAfter, DefaultStuckAfter)
	if o.Tracer == nil {
		o.Tracer = noop.NewTracerProvider()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

func (s *Server) is() phase { return phase(s.phase.Load()) }

// enter goes on to a later phase; a server never goes back to an earlier one.
func (s *Server) enter(p phase) bool {
	for {
		now := s.phase.Load()
		if now >= int32(p) {
			return false
		}
		if s.phase.CompareAndSwap(now, int32(p)) {
			return true
		}
	}
}

// lose ends everything: what is being answered, what waits, and the server.
func (s *Server) lose(err error) {
	s.end(err)
	s.enter(lost)
	select {
	case s.broken <- err:
	default: // the first cause is the one to report
	}
}

// end refuses what is being answered and what waits, for the first cause given.
func (s *Server) end(cause error) {
	s.endOnce.Do(func() {
		s.endCause = cause
		close(s.ended)
	})
}

// Ready says whether requests should be sent here.
func (s *Server) Ready() bool { return s.is() == ready }

// healthy says whether it makes sense to go on with this process.
func (s *Server) healthy() bool {
	return s.is() != lost && s.worker.overdue() < s.options.StuckAfter
}
