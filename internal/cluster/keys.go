package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// keysEvery is how often the API server's keys are fetched. They change rarely, and a new one signs nothing for a while.
	keysEvery = 5 * time.Minute
	// keysRetry is how long after a failure, or after a token with a key that is not known, they are fetched again.
	keysRetry = 10 * time.Second
	// fetchTimeout bounds one fetch.
	fetchTimeout = 5 * time.Second
)

// Where an API server publishes the keys of its tokens.
const (
	discoveryPath = "/.well-known/openid-configuration"
	keysPath      = "/openid/v1/jwks"
)

// Keys are the keys by which the API server signs tokens of service accounts. What was last fetched stays in force while it
// cannot be fetched again.
type Keys struct {
	fetch func(ctx context.Context) (*keySet, error)
	clock clock.WithTicker
	log   *slog.Logger
	held  atomic.Pointer[keySet]
	want  chan struct{}
}

// NewKeys fetches nothing yet.
func NewKeys(server rest.Interface, c clock.WithTicker, log *slog.Logger) *Keys {
	k := &Keys{clock: c, log: log, want: make(chan struct{}, 1)}
	k.fetch = func(ctx context.Context) (*keySet, error) {
		now := c.Now()
		discovery, err := server.Get().AbsPath(discoveryPath).DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", discoveryPath, err)
		}
		keys, err := server.Get().AbsPath(keysPath).DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", keysPath, err)
		}
		return parseKeySet(discovery, keys, now)
	}
	return k
}

// Run keeps the keys fresh until the context ends.
func (k *Keys) Run(ctx context.Context) {
	for ctx.Err() == nil {
		wait := keysEvery
		if err := k.refresh(ctx); err != nil && ctx.Err() == nil {
			k.log.WarnContext(ctx, "keys of the API server could not be fetched, those known stay", "error", err)
			wait = keysRetry
		}
		k.pause(ctx, wait)
	}
}

// pause waits, at least for keysRetry, and no longer than that if somebody misses a key.
func (k *Keys) pause(ctx context.Context, wait time.Duration) {
	least, most := k.clock.NewTimer(keysRetry), k.clock.NewTimer(wait)
	defer least.Stop()
	defer most.Stop()
	select {
	case <-ctx.Done():
		return
	case <-least.C():
	}
	select {
	case <-ctx.Done():
	case <-most.C():
	case <-k.want:
	}
}

func (k *Keys) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	set, err := k.fetch(ctx)
	if err != nil {
		return err
	}
	k.held.Store(set)
	return nil
}

// current is the key set in force, nil before the first.
func (k *Keys) current() *keySet { return k.held.Load() }

// miss says that a token names a key that is not known.
func (k *Keys) miss() {
	select {
	case k.want <- struct{}{}:
	default:
	}
}
