package cluster

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

const (
	// beatEvery is how often a gate makes sure that it hears from the API server, and beatsPerLimit how often at least in
	// the time after which it counts as out of contact.
	beatEvery, beatsPerLimit = 5 * time.Second, 6
	// beatTimeout bounds one attempt.
	beatTimeout = 3 * time.Second
)

// Contact knows when the gate last was up to date. Two things have to hold at one moment: the API server answers a read of
// its store, and the watch on every kind is open, so that a change before that moment has come or is on its way. Either
// alone is not enough: a server that answers says nothing of a watch that has broken, and a watch on a connection that is
// dead looks open for minutes.
type Contact struct {
	ping    func(ctx context.Context) error
	every   time.Duration
	clock   clock.WithTicker
	log     *slog.Logger
	started time.Time
	last    atomic.Pointer[time.Time] // when it last was in contact; nil: never
	away    atomic.Bool

	mu      sync.Mutex
	watches map[string]int // open ones by path; those of interest have an entry from the start
}

// ContactOptions configure a Contact. All are required.
type ContactOptions struct {
	// Ping reads something of the API server's store.
	Ping func(ctx context.Context) error
	// Paths are those that have to be watched.
	Paths []string
	// Limit is the age from which something depends on it.
	Limit time.Duration
	Clock clock.WithTicker
	Log   *slog.Logger
}

// NewContact returns a Contact that has never been.
func NewContact(o ContactOptions) *Contact {
	out := &Contact{
		ping: o.Ping, every: min(beatEvery, o.Limit/beatsPerLimit), clock: o.Clock, log: o.Log, started: o.Clock.Now(), watches: map[string]int{},
	}
	for _, p := range o.Paths {
		out.watches[p] = 0
	}
	out.away.Store(true)
	return out
}

// Age is the time since the gate last was up to date; since it started, if it never was.
func (c *Contact) Age() time.Duration {
	if last := c.last.Load(); last != nil {
		return c.clock.Since(*last)
	}
	return c.clock.Since(c.started)
}

// Last is when the gate last was up to date, the zero time if it never was.
func (c *Contact) Last() time.Time {
	if last := c.last.Load(); last != nil {
		return *last
	}
	return time.Time{}
}

// IsAway says whether the API server was not reached when it last was tried.
func (c *Contact) IsAway() bool { return c.away.Load() }

// Run beats until the context ends.
func (c *Contact) Run(ctx context.Context) {
	ticker := c.clock.NewTicker(c.every)
	defer ticker.Stop()
	for {
		c.beat(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

func (c *Contact) beat(ctx context.Context) {
	now := c.clock.Now() // before asking: what changes from here on may be missing
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	err := c.ping(ctx)
	if wasAway := c.away.Swap(err != nil); wasAway != (err != nil) {
		if err != nil {
			c.log.WarnContext(ctx, "the API server is away: tokens are proven by their signatures, and policies grow old", "error", err)
		} else {
			c.log.InfoContext(ctx, "the API server answers")
		}
	}
	if err == nil && c.isWatching() {
		c.last.Store(&now)
	}
}

func (c *Contact) isWatching() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, open := range c.watches {
		if open == 0 {
			return false
		}
	}
	return true
}

// Wrap sees which watches are open. It is for rest.Config.Wrap of the client that watches.
func (c *Contact) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		query := r.URL.Query().Get("watch")
		if err != nil || response.StatusCode != http.StatusOK || query != "1" && query != "true" {
			return response, err
		}
		path := strings.TrimSuffix(r.URL.Path, "/")
		c.count(path, 1)
		response.Body = &watchBody{ReadCloser: response.Body, ended: sync.OnceFunc(func() { c.count(path, -1) })}
		return response, nil
	})
}

func (c *Contact) count(path string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, isOfInterest := c.watches[path]; isOfInterest {
		c.watches[path] += n
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// watchBody is the stream of a watch. It has ended when reading fails or it is closed.
type watchBody struct {
	io.ReadCloser
	ended func()
}

func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended()
	}
	return n, err
}

func (b *watchBody) Close() error {
	b.ended()
	return b.ReadCloser.Close()
}
