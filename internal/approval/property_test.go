package approval

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// seen is what callers of a store were told, and what follows from it.
type seen struct {
	mu       sync.Mutex
	names    map[string]Approval // as raised
	order    []string            // the names, as they came: a map's own order would make each run another one
	approved map[string]int      // by name: decisions that were accepted
	rejected map[string]int
	uses     map[string]int  // by id
	dead     map[string]bool // expired at some time while the store was looked at
}

func newSeen() *seen {
	return &seen{names: map[string]Approval{}, approved: map[string]int{}, rejected: map[string]int{}, uses: map[string]int{}, dead: map[string]bool{}}
}

// check holds an approval to "covers one call, decided once, used once".
func (s *seen) check(t *testing.T) {
	t.Helper()
	ids := map[string]string{}
	for name, a := range s.names {
		if other, ok := ids[a.ID]; ok {
			t.Errorf("%s and %s have the same ID", name, other)
		}
		ids[a.ID] = name
		if s.approved[name]+s.rejected[name] > 1 {
			t.Errorf("%s was decided %d times", name, s.approved[name]+s.rejected[name])
		}
		if s.uses[a.ID] > 1 {
			t.Errorf("%s was used %d times", name, s.uses[a.ID])
		}
		if s.uses[a.ID] > 0 && s.approved[name] == 0 {
			t.Errorf("%s was used and never approved", name)
		}
	}
}

func (s *seen) pick(r *rand.Rand) (Approval, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.order) == 0 {
		return Approval{}, false
	}
	return s.names[s.order[r.IntN(len(s.order))]], true
}

// act does one random thing and notes what was answered.
func (s *seen) act(t *testing.T, store Store, c clock.PassiveClock, r *rand.Rand) {
	ctx := t.Context()
	a, ok := s.pick(r)
	what := r.IntN(8)
	if !ok {
		what = 0
	}
	before := c.Now()
	expired := ok && !before.Before(a.Call.ExpiresAt)
	var err error
	switch what {
	case 0, 1:
		tool := fmt.Sprint(r.IntN(12))
		var got Approval
		got, err = store.Raise(ctx, call(withTool(tool), until(before)))
		if err == nil {
			s.note(func() {
				if _, ok := s.names[got.Name]; !ok {
					s.order = append(s.order, got.Name)
				}
				s.names[got.Name] = got
			})
		}
	case 2, 3, 4:
		outcome := []State{Approved, Approved, Rejected}[r.IntN(3)]
		if err = store.Decide(ctx, a.Name, Decision{Outcome: outcome, By: kim}); err == nil {
			s.note(func() { map[State]map[string]int{Approved: s.approved, Rejected: s.rejected}[outcome][a.Name]++ })
		}
	default:
		if err = store.Consume(ctx, a.ID); err == nil {
			s.note(func() { s.uses[a.ID]++ })
		}
	}
	if what > 1 && err == nil && (expired || s.isDead(a.ID)) {
		t.Errorf("%s was decided or used after it had expired", a.Name)
	}
	for _, known := range []error{nil, ErrUsed, ErrExpired, ErrNotApproved, ErrDecided, ErrNotFound} {
		if errors.Is(err, known) || err == known {
			return
		}
	}
	t.Errorf("unexpected: %v", err)
}

func (s *seen) note(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *seen) isDead(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead[id]
}

// bury looks at the store, and notes all whose time is over at that moment.
func (s *seen) bury(t *testing.T, store Store, now time.Time) {
	if _, err := store.List(t.Context()); err != nil {
		t.Errorf("List: %v", err)
	}
	s.note(func() {
		for _, a := range s.names {
			s.dead[a.ID] = s.dead[a.ID] || !now.Before(a.Call.ExpiresAt)
		}
	})
}

// An approval covers one call: whatever the order of calls, restarts and jumps
// of the clock, it is used at most once, and only between approval and expiry.
func TestPropertyAnApprovalCoversOneCall(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			uses, seeds, steps := 0, uint64(12), 150
			switch open(t, clocktesting.NewFakePassiveClock(noon)).(type) {
			case *restarting:
				seeds, steps = 1, 100
			case *File:
				seeds = 3
			}
			for seed := range seeds {
				r := rand.New(rand.NewPCG(seed, 1))
				c := clocktesting.NewFakePassiveClock(noon)
				store, s := open(t, c), newSeen()
				for range steps {
					s.act(t, store, c, r)
					if r.IntN(12) == 0 { // forward, and now and then back
						c.SetTime(c.Now().Add(time.Duration(r.IntN(12)-4) * time.Minute))
						s.bury(t, store, c.Now())
					}
				}
				s.check(t)
				uses += len(s.uses)
			}
			if uses < 2*int(seeds) {
				t.Errorf("only %d uses: the test tests little", uses)
			}
		})
	}
}

func TestPropertyAnApprovalCoversOneCallConcurrently(t *testing.T) {
	for name, open := range map[string]func(t *testing.T, c clock.PassiveClock) Store{"Memory": stores["Memory"], "File": stores["File"]} {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakePassiveClock(noon)
			store, s := open(t, c), newSeen()
			var wg sync.WaitGroup
			for w := range uint64(8) {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(w, 2))
					for range 150 {
						s.act(t, store, c, r)
					}
				})
			}
			for range 20 {
				c.SetTime(c.Now().Add(time.Minute))
				if _, err := store.List(t.Context()); err != nil {
					t.Error(err)
				}
			}
			wg.Wait()
			s.check(t)
			if len(s.uses) < 3 { // some 25; how many is the scheduler's choice
				t.Errorf("only %d uses: the test tests little", len(s.uses))
			}
		})
	}
}

// A restart revives nothing: what was used, rejected or expired stays so.
func TestPropertyRestartsNeverRevive(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	path := filepath.Join(t.TempDir(), "approvals")
	r := rand.New(rand.NewPCG(3, 3))
	s := newSeen()
	ended := map[string]State{}
	for range 60 {
		w := openFile(t, path, c)
		all, err := w.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			if was, ok := ended[a.ID]; ok && was != a.State && !(was == Rejected && a.State == Expired) {
				t.Fatalf("%s was %s and is %s after a restart", a.Name, was, a.State)
			}
		}
		for range 20 {
			s.act(t, w, c, r)
		}
		all, err = w.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			if a.State != Pending && a.State != Approved {
				ended[a.ID] = a.State
			}
		}
		w.close()
		c.SetTime(c.Now().Add(time.Duration(r.IntN(6)-2) * time.Minute))
	}
	s.check(t)
	if len(ended) < 20 {
		t.Errorf("only %d ended: the test tests little", len(ended))
	}
}
