// Package keycache keeps public keys that are fetched from elsewhere and needed at each call. Whoever asks for keys that do
// not exist cannot make it fetch more often, and an outage of where they come from is survived for a time that is known.
package keycache

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Options of New. All are required.
type Options[T any] struct {
	// Fetch gets what is kept. It bounds its own time, and is not ended by the end of the one call that has caused it.
	Fetch func(context.Context) (T, error)
	// Every is the shortest time between the end of a fetch and the next one, whatever is asked for. Who has waited while an
	// origin did not answer takes that for an answer.
	Every time.Duration
	// Fresh is for how long what was fetched is used without asking again, so that what was taken back is noticed.
	Fresh time.Duration
	// Stale is for how long it is used while fetching fails.
	Stale time.Duration
	Clock clock.PassiveClock
}

// Cache keeps one value.
type Cache[T any] struct {
	options Options[T]
	cached  atomic.Pointer[fetched[T]]
	turn    chan struct{} // holds one: whoever has it may fetch
	last    time.Time     // at which the latest fetch ended, for who has the turn
	failed  error         // of the latest fetch, for who has the turn
}

type fetched[T any] struct {
	value T
	at    time.Time
}

var errTooOld = errors.New("what was fetched is too old")

// New fetches nothing yet.
func New[T any](o Options[T]) *Cache[T] {
	c := &Cache[T]{options: o, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c
}

// Find gives the value that has accepts, which says whether it holds what is looked for. It is not found if the origin was
// asked and does not have it. After a failed fetch nobody can say, and that is the error.
func (c *Cache[T]) Find(ctx context.Context, has func(T) bool) (value T, found bool, err error) {
	now := c.options.Clock.Now()
	if value, found = c.look(has, now, c.options.Fresh); found {
		return value, true, nil
	}
	if value, found = c.look(has, now, c.options.Stale); found { // one asks again, and the others need not wait for it
		select {
		case <-c.turn:
			c.refresh(ctx)
			c.turn <- struct{}{}
		default:
			return value, true, nil
		}
		return c.result(has, nil)
	}
	select {
	case <-c.turn:
	case <-ctx.Done():
		return value, false, ctx.Err()
	}
	c.refresh(ctx)
	failed := c.failed
	c.turn <- struct{}{}
	return c.result(has, failed)
}

// Ready says whether the value is there and not too old. It fetches if that is due.
func (c *Cache[T]) Ready(ctx context.Context) error {
	if c.within(c.options.Clock.Now(), c.options.Fresh) != nil {
		return nil
	}
	_, _, err := c.Find(ctx, func(T) bool { return false })
	if c.within(c.options.Clock.Now(), c.options.Stale) != nil {
		return nil
	}
	return err
}

func (c *Cache[T]) result(has func(T) bool, failed error) (value T, found bool, err error) {
	now := c.options.Clock.Now()
	if value, found = c.look(has, now, c.options.Stale); found {
		return value, true, nil
	}
	if failed == nil && c.within(now, c.options.Stale) == nil {
		failed = errTooOld
	}
	return value, false, failed
}

// refresh fetches unless that was done a moment ago. What it fetches is for all, so no single caller's end stops it.
func (c *Cache[T]) refresh(ctx context.Context) {
	now := c.options.Clock.Now()
	if age := now.Sub(c.last); !c.last.IsZero() && age >= 0 && age < c.options.Every {
		return
	}
	value, err := c.options.Fetch(context.WithoutCancel(ctx))
	c.failed, c.last = err, c.options.Clock.Now()
	if err == nil { // it is as old as the question
		c.cached.Store(&fetched[T]{value: value, at: now})
	}
}

// within gives what is kept if it is no older than an age. A clock that was set back makes it too old.
func (c *Cache[T]) within(now time.Time, age time.Duration) *fetched[T] {
	f := c.cached.Load()
	if f == nil {
		return nil
	}
	if since := now.Sub(f.at); since < 0 || since >= age {
		return nil
	}
	return f
}

func (c *Cache[T]) look(has func(T) bool, now time.Time, age time.Duration) (value T, found bool) {
	if f := c.within(now, age); f != nil && has(f.value) {
		return f.value, true
	}
	return value, false
}
