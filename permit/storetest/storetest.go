// Package storetest holds the suite that every store of used permits has to pass.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/permit"
)

// Backing makes what stores keep permits in, empty, for one test. The function that it gives opens a store on it: again
// for what comes after a restart, and beside the others, which are still open, if the store is a permit.SharedStore.
// A store that is not shared is opened again only after the one before was let go, so open may close that one.
type Backing func(t *testing.T, c clock.PassiveClock) (open func() permit.Store)

// Noon is when the clock of the suite stands at first.
var Noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const first, second = "0123456789abcdef-first", "0123456789abcdef-second"

// Run runs the suite. A store that forgets with its process passes with forgets set to true.
func Run(t *testing.T, backing Backing, forgets bool) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Backing){
		"a permit is used once":                        usedOnce,
		"what cannot be remembered is refused":         refused,
		"one of many uses at once wins":                oneWins,
		"time makes nothing good again while it lasts": lasts,
	} {
		t.Run(name, func(t *testing.T) { test(t, backing) })
	}
	if !forgets {
		t.Run("a restart makes nothing good again", func(t *testing.T) { survives(t, backing) })
	}
	t.Run("replicas share one use", func(t *testing.T) { shared(t, backing) })
}

func world(t *testing.T, backing Backing) (*clocktesting.FakePassiveClock, func() permit.Store) {
	t.Helper()
	c := clocktesting.NewFakePassiveClock(Noon)
	return c, backing(t, c)
}

func want(t *testing.T, what string, err, wanted error) {
	t.Helper()
	if (err == nil) != (wanted == nil) || !errors.Is(err, wanted) {
		t.Errorf("%s: %v, want %v", what, err, wanted)
	}
}

func usedOnce(t *testing.T, backing Backing) {
	_, open := world(t, backing)
	s, until := open(), Noon.Add(5*time.Minute)
	want(t, "a first use", s.Use(t.Context(), first, until), nil)
	want(t, "a second use", s.Use(t.Context(), first, until), permit.ErrUsed)
	want(t, "a use that would be kept for longer", s.Use(t.Context(), first, until.Add(time.Minute)), permit.ErrUsed)
	want(t, "a use that would be kept for less long", s.Use(t.Context(), first, Noon.Add(time.Second)), permit.ErrUsed)
	want(t, "another permit", s.Use(t.Context(), second, until), nil)
	want(t, "the second use of that", s.Use(t.Context(), second, until), permit.ErrUsed)
}

func refused(t *testing.T, backing Backing) {
	_, open := world(t, backing)
	s, until := open(), Noon.Add(5*time.Minute)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"no id":                        s.Use(t.Context(), "", until),
		"an id that is too short":      s.Use(t.Context(), "short", until),
		"an id with a line break":      s.Use(t.Context(), "0123456789abcdef\nused", until),
		"an id with a wildcard":        s.Use(t.Context(), "0123456789abcdef.*", until),
		"an id that is a path":         s.Use(t.Context(), "../0123456789abcdef", until),
		"a time that is over":          s.Use(t.Context(), first, Noon),
		"a time that was over already": s.Use(t.Context(), first, Noon.Add(-time.Minute)),
		"a caller that is gone":        s.Use(ended, first, until),
	} {
		if err == nil || errors.Is(err, permit.ErrUsed) {
			t.Errorf("%s: %v, want an error that is not ErrUsed", name, err)
		}
	}
	want(t, "a use after those", s.Use(t.Context(), first, until), nil)
}

func oneWins(t *testing.T, backing Backing) {
	_, open := world(t, backing)
	s := open()
	const rounds, callers = 4, 16
	for round := range rounds {
		race(t, fmt.Sprintf("%s-%d", first, round), callers, func(int) permit.Store { return s })
	}
}

// race has callers use one id at once.
func race(t *testing.T, id string, callers int, store func(i int) permit.Store) {
	t.Helper()
	errs := make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() { errs[i] = store(i).Use(t.Context(), id, Noon.Add(5*time.Minute)) })
	}
	all.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, permit.ErrUsed) {
			t.Errorf("who lost: %v, want ErrUsed", err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d callers used %s, want 1", won, callers, id)
	}
}

func lasts(t *testing.T, backing Backing) {
	c, open := world(t, backing)
	s, until := open(), Noon.Add(5*time.Minute)
	want(t, "a first use", s.Use(t.Context(), first, until), nil)
	for _, at := range []time.Duration{time.Second, time.Minute, 5*time.Minute - 1} {
		c.SetTime(Noon.Add(at))
		want(t, fmt.Sprintf("a use after %s", at), s.Use(t.Context(), first, until.Add(time.Minute)), permit.ErrUsed)
	}
	c.SetTime(Noon.Add(-time.Minute))
	if err := s.Use(t.Context(), first, until); err == nil {
		t.Error("a use after the clock was set back: no error")
	}
}

func survives(t *testing.T, backing Backing) {
	_, open := world(t, backing)
	until := Noon.Add(5 * time.Minute)
	want(t, "a first use", open().Use(t.Context(), first, until), nil)
	want(t, "a use after a restart", open().Use(t.Context(), first, until), permit.ErrUsed)
	want(t, "another permit after a restart", open().Use(t.Context(), second, until), nil)
	want(t, "that permit after another restart", open().Use(t.Context(), second, until), permit.ErrUsed)
}

func shared(t *testing.T, backing Backing) {
	_, open := world(t, backing)
	one := open()
	if _, is := one.(permit.SharedStore); !is {
		t.Skip("the store is for one replica: a verifier of several refuses it")
	}
	replicas := []permit.Store{one, open(), open()}
	for round := range 4 {
		race(t, fmt.Sprintf("%s-%d", second, round), 12, func(i int) permit.Store { return replicas[i%len(replicas)] })
	}
}
