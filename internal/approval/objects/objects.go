// Package objects keeps approvals as ToolApproval objects of an API server, so that all replicas of a gate share them and
// people decide about them with kubectl. What must happen once is the creation of a Lease in the gate's namespace: the API
// server lets one of several win.
//
// Reading is in two steps. A cache, kept by watching, tells at once that nothing stands for a call, which is so for most.
// Whatever may let a call through, or keep it back, is then read from the API server itself.
package objects

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/names"
)

// DefaultTimeout bounds each call of a Store but the reading of all approvals.
const DefaultTimeout = 3 * time.Second

// Options of New.
type Options struct {
	// Config of the gate's service account. It has to be able to: get, list, watch, create and update toolapprovals
	// everywhere, update their status, get the admission policy names.ApprovalPolicy and its binding, and get, list, watch,
	// create and delete leases in Namespace.
	Config *rest.Config
	// Namespace of the installation, names.Namespace if empty.
	Namespace string
	// Identity is who has used an approval, in records: the name of the gate's pod.
	Identity string
	// Seals of the gate.
	Seals *approval.Seals
	// Clock, the system's if nil.
	Clock clock.PassiveClock
	// Timeout of one call, DefaultTimeout if zero.
	Timeout time.Duration
	// Log gets what cannot be returned. Nil: nothing is logged.
	Log *slog.Logger
}

// Store is an approval.Store in an API server. It is safe for concurrent use.
type Store struct {
	options Options
	client  *Client
	leases  leases
	guard   *guard
	seen    *seen
	latest  atomic.Int64  // the latest time that was seen, in nanoseconds: a clock that is set back revives nothing
	genuine *lru.Cache    // of sealedAs: objects that are known to be sealed
	recount chan struct{} // tokens for counting what waits from the API server itself

	work    chan func(context.Context)
	stop    context.CancelFunc
	stopped sync.WaitGroup
}

var _ approval.Store = (*Store)(nil)

// New makes a store and begins to watch. WaitForSync says when its cache is filled; until then it asks the API server.
func New(o Options) (*Store, error) {
	if o.Namespace == "" {
		o.Namespace = names.Namespace
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	client, err := NewClient(o.Config)
	if err != nil {
		return nil, fmt.Errorf("making client of approvals: %w", err)
	}
	leases, err := newLeases(o.Config, o.Namespace)
	if err != nil {
		return nil, fmt.Errorf("making client of leases: %w", err)
	}
	s := &Store{
		options: o, client: client, leases: leases, genuine: lru.New(maxGenuine), recount: make(chan struct{}, recounts),
		work: make(chan func(context.Context), maxWork),
	}
	if s.guard, err = newGuard(o.Config, o.Namespace, s.now); err != nil {
		return nil, fmt.Errorf("making client of admission policies: %w", err)
	}
	if s.seen, err = newSeen(client, leases, s.noticed); err != nil {
		return nil, fmt.Errorf("making cache of approvals: %w", err)
	}
	for range recounts {
		s.recount <- struct{}{}
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.seen.run(ctx, &s.stopped)
	s.stopped.Go(func() { s.doWork(ctx) })
	return s, nil
}

// WaitForSync waits until the cache holds what the API server does.
func (s *Store) WaitForSync(ctx context.Context) error { return s.seen.wait(ctx) }

// IsSynced says whether the cache is filled.
func (s *Store) IsSynced() bool { return s.seen.isSynced() }

// Close stops watching. What is left to be mirrored is left to the manager.
func (s *Store) Close() {
	s.stop()
	s.stopped.Wait()
}

// IsEmpty says that there is nothing to find, whatever is looked for.
func (s *Store) IsEmpty() bool { return s.seen.isSynced() && s.seen.isEmpty() }

// now is the clock's time, and never earlier than it was.
func (s *Store) now() time.Time {
	now := s.options.Clock.Now()
	for {
		latest := s.latest.Load()
		if n := now.UnixNano(); n <= latest {
			return time.Unix(0, latest).UTC()
		} else if s.latest.CompareAndSwap(latest, n) {
			return now
		}
	}
}

func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.options.Timeout)
}

// maxWork bounds what waits to be mirrored.
const maxWork = 1024

// later has something done that nothing waits for. It is dropped where too much waits: nothing goes by it.
func (s *Store) later(do func(context.Context)) {
	select {
	case s.work <- do:
	default:
	}
}

// doWork does one thing after another, and gives counting anew its tokens.
func (s *Store) doWork(ctx context.Context) {
	token := time.NewTicker(time.Second)
	defer token.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case do := <-s.work:
			bounded, cancel := s.bounded(ctx)
			do(bounded)
			cancel()
		case <-token.C:
			select {
			case s.recount <- struct{}{}:
			default:
			}
		}
	}
}

// unavailable says that the API server could not be asked, or did not do what it should: approval.ErrUnavailable. A caller
// that is gone is told so.
func unavailable(step string, err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", step, err)
	}
	return &unavailableError{fmt.Errorf("%s: %w", step, err)}
}

// unavailableError is approval.ErrUnavailable in other words: nothing was to be written into a file.
type unavailableError struct{ err error }

func (e *unavailableError) Error() string        { return e.err.Error() }
func (e *unavailableError) Unwrap() error        { return e.err }
func (e *unavailableError) Is(target error) bool { return target == approval.ErrUnavailable }
