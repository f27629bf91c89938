package permit

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

var (
	// ErrUsed says that a permit was used before.
	ErrUsed = errors.New("permit was used before")
	// ErrStoreFull says that a store remembers as many permits as it may.
	ErrStoreFull = errors.New("store of used permits is full")
	// errForgotten says that a store cannot tell any more.
	errForgotten = errors.New("time until which to remember the permit is over")
)

// Store remembers which permits were used. Use gives nil once for an id, ErrUsed until the time is over, and any other
// error if it cannot tell: then the permit is refused.
type Store interface {
	Use(ctx context.Context, jti string, until time.Time) error
}

// SharedStore is a Store that all replicas of a tool server share. Memory and File are not. Whoever writes one runs
// storetest.Run on it.
type SharedStore interface {
	Store
	// SharedByReplicas does nothing. It says that a use by one replica is one for all.
	SharedByReplicas()
}

// CheckUse says what every Store has to refuse before it looks anything up: a caller that is gone, and an id that no
// permit has, so that an id can stand as a word in a line, a key or a name.
func CheckUse(ctx context.Context, jti string) error { return checkUse(ctx, jti) }

// maxUsed bounds what a store remembers: about 300 bytes each, and 2,000 permits a second for as long as one is kept.
const maxUsed = 1 << 20

// ledger remembers ids until their times. It has no lock.
type ledger struct {
	used   map[string]struct{}
	expiry expiries
	limit  int
	// horizon is the latest time for which ids were forgotten. It keeps a clock that is set back from making a
	// permit good again.
	horizon time.Time
}

type expiry struct {
	until time.Time
	id    string
}

func newLedger(limit int) *ledger { return &ledger{used: map[string]struct{}{}, limit: limit} }

// check says whether an id may be used now.
func (l *ledger) check(id string, until, now time.Time) error {
	l.forget(now)
	if _, ok := l.used[id]; ok {
		return ErrUsed
	}
	if !until.After(l.horizon) {
		return errForgotten
	}
	if len(l.used) >= l.limit {
		return ErrStoreFull
	}
	return nil
}

func (l *ledger) add(id string, until time.Time) {
	l.used[id] = struct{}{}
	heap.Push(&l.expiry, expiry{until: until, id: id})
}

func (l *ledger) forget(now time.Time) {
	if now.After(l.horizon) {
		l.horizon = now
	}
	for len(l.expiry) > 0 && !l.expiry[0].until.After(l.horizon) {
		gone, ok := heap.Pop(&l.expiry).(expiry)
		if ok {
			delete(l.used, gone.id)
		}
	}
}

// expiries is a heap, the earliest on top.
type expiries []expiry

func (e expiries) Len() int           { return len(e) }
func (e expiries) Less(i, j int) bool { return e[i].until.Before(e[j].until) }
func (e expiries) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *expiries) Push(x any) {
	if one, ok := x.(expiry); ok {
		*e = append(*e, one)
	}
}

// Pop implements heap.Interface.
func (e *expiries) Pop() any {
	last := len(*e) - 1
	one := (*e)[last]
	(*e)[last] = expiry{}
	*e = (*e)[:last]
	return one
}

// Memory is a Store that forgets everything with its process: after a restart a permit can be used again while it is
// good. It is for tests, and for tools where that does no harm.
type Memory struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	ledger *ledger
}

var _ Store = (*Memory)(nil)

// NewMemory makes an empty one. A nil clock is the system's.
func NewMemory(c clock.PassiveClock) *Memory {
	return &Memory{clock: orSystem(c), ledger: newLedger(maxUsed)}
}

// Use implements Store.
func (m *Memory) Use(ctx context.Context, jti string, until time.Time) error {
	if err := checkUse(ctx, jti); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ledger.check(jti, until, m.clock.Now()); err != nil {
		return err
	}
	m.ledger.add(jti, until)
	return nil
}

func checkUse(ctx context.Context, jti string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !isID(jti) {
		return fmt.Errorf("id of a permit has %d bytes or signs of another alphabet", len(jti))
	}
	return nil
}
