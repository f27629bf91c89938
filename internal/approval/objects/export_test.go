package objects

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// GuardLag is how much older than an approval the admission policy has to be.
const GuardLag = guardLag

// WithGuardLag lets a test wait for less than GuardLag.
func (s *Store) WithGuardLag(lag time.Duration) *Store {
	s.guard.lag = lag
	return s
}

// Normal is a call as an object holds it.
var Normal = normal

// HasSeenRejection says whether the cache has the Lease of a rejection.
func (s *Store) HasSeenRejection(callKey string) bool {
	return len(s.seen.rejections(callKey, s.now())) > 0
}

// Guard is a guard with a clock of its own.
type Guard struct {
	Clock *clocktesting.FakePassiveClock
	*guard
}

// NewGuard makes one that looks at an API server.
func NewGuard(config *rest.Config, namespace string) (*Guard, error) {
	c := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
	s := &Store{options: Options{Clock: c}}
	g, err := newGuard(config, namespace, s.now)
	return &Guard{c, g}, err
}

// InForce looks.
func (g *Guard) InForce(ctx context.Context) (time.Time, error) { return g.inForce(ctx) }
