package keycache

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

var noon = time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC)

var errAway = errors.New("nobody answers")

// origin is where values come from: it has what it is told, or is away.
type origin struct {
	mu      sync.Mutex
	has     map[string]bool
	isAway  bool
	fetches int
}

func (o *origin) fetch(context.Context) (map[string]bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fetches++
	if o.isAway {
		return nil, errAway
	}
	return o.has, nil
}

func (o *origin) set(isAway bool, keys ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.isAway, o.has = isAway, map[string]bool{}
	for _, k := range keys {
		o.has[k] = true
	}
}

func newTest() (*Cache[map[string]bool], *origin, *clocktesting.FakePassiveClock) {
	o, c := &origin{}, clocktesting.NewFakePassiveClock(noon)
	o.set(false, "a")
	return New(Options[map[string]bool]{Fetch: o.fetch, Every: 10 * time.Second, Fresh: time.Minute, Stale: time.Hour, Clock: c}), o, c
}

func TestWhatIsKept(t *testing.T) {
	cache, from, c := newTest()
	type answer struct {
		Found   bool
		Err     error
		Fetches int
	}
	for _, step := range []struct {
		name   string
		at     time.Duration
		change func()
		key    string
		want   answer
	}{
		{"the first asks", 0, nil, "a", answer{true, nil, 1}},
		{"the second does not", time.Second, nil, "a", answer{true, nil, 1}},
		{"one that is not there, a moment after the others came", time.Second, nil, "x", answer{false, nil, 1}},
		{"a key that is new, and not yet asked for again", 2 * time.Second, func() { from.set(false, "a", "b") }, "b", answer{false, nil, 1}},
		{"the new key, when it may ask", 10 * time.Second, nil, "b", answer{true, nil, 2}},
		{"one that is not there fetches", 20 * time.Second, nil, "x", answer{false, nil, 3}},
		{"and only once in that time", 29 * time.Second, nil, "y", answer{false, nil, 3}},
		{"a key that was taken back, while it counts as fresh", 30 * time.Second, func() { from.set(false, "b") }, "a", answer{true, nil, 3}},
		{"a key that was taken back", 80 * time.Second, nil, "a", answer{false, nil, 4}},
		{"a known one while the origin is away", 200 * time.Second, func() { from.set(true) }, "b", answer{true, nil, 5}},
		{"an unknown one while it is away", 201 * time.Second, nil, "x", answer{false, errAway, 5}},
		{"a known one just before it is too old", 80*time.Second + time.Hour - 1, nil, "b", answer{true, nil, 6}},
		{"a known one that is too old", 80*time.Second + time.Hour, nil, "b", answer{false, errAway, 6}},
		{"when the origin is back, and may be asked", 100*time.Second + time.Hour, func() { from.set(false, "b") }, "b", answer{true, nil, 7}},
		{"on a clock that was set back", 0, nil, "b", answer{true, nil, 8}},
	} {
		c.SetTime(noon.Add(step.at))
		if step.change != nil {
			step.change()
		}
		_, found, err := cache.Find(t.Context(), func(v map[string]bool) bool { return v[step.key] })
		if diff := cmp.Diff(step.want, answer{found, err, from.fetches}, cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestReady(t *testing.T) {
	cache, from, c := newTest()
	from.set(true)
	if err := cache.Ready(t.Context()); !errors.Is(err, errAway) {
		t.Errorf("without an origin: %v", err)
	}
	from.set(false, "a")
	c.SetTime(noon.Add(10 * time.Second))
	if err := cache.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	from.set(true)
	c.SetTime(noon.Add(time.Hour))
	if err := cache.Ready(t.Context()); err != nil {
		t.Errorf("with what is not too old: %v", err)
	}
	c.SetTime(noon.Add(10*time.Second + time.Hour))
	if err := cache.Ready(t.Context()); !errors.Is(err, errAway) {
		t.Errorf("with what is too old: %v", err)
	}
}

func TestMany(t *testing.T) {
	cache, from, _ := newTest()
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			key := []string{"a", "x"}[i%2]
			_, found, err := cache.Find(t.Context(), func(v map[string]bool) bool { return v[key] })
			if found != (key == "a") || err != nil {
				t.Errorf("%s: %t %v", key, found, err)
			}
		})
	}
	all.Wait()
	if from.fetches != 1 {
		t.Errorf("%d fetches, want 1", from.fetches)
	}
}

func TestAnOriginThatHangsIsAskedOnceForAllThatWait(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	fetches := 0 // by whoever has the turn
	cache := New(Options[map[string]bool]{Every: 10 * time.Second, Fresh: time.Minute, Stale: time.Hour, Clock: c, Fetch: func(context.Context) (map[string]bool, error) {
		fetches++
		c.SetTime(c.Now().Add(20 * time.Second)) // longer than Every
		return nil, errAway
	}})
	for range 3 {
		if _, _, err := cache.Find(t.Context(), func(map[string]bool) bool { return true }); !errors.Is(err, errAway) {
			t.Errorf("%v", err)
		}
	}
	if fetches != 1 {
		t.Errorf("%d fetches, want 1", fetches)
	}
}

func TestWhoHasNoTimeLeftDoesNotWait(t *testing.T) {
	cache, _, _ := newTest()
	<-cache.turn // as if another fetched
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := cache.Find(ctx, func(map[string]bool) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
