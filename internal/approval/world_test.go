package approval

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const ttl = 10 * time.Minute

// stores are what the suite runs against. Each must behave the same to the last
// error; the third shows that a restart between any two calls changes nothing.
var stores = map[string]func(t *testing.T, c clock.PassiveClock) Store{
	"Memory": func(_ *testing.T, c clock.PassiveClock) Store { return NewMemory(c) },
	"File": func(t *testing.T, c clock.PassiveClock) Store {
		f, err := OpenFile(filepath.Join(t.TempDir(), "approvals"), c, testSeals)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
		return f
	},
	"File opened anew for every call": func(t *testing.T, c clock.PassiveClock) Store {
		return &restarting{t: t, path: filepath.Join(t.TempDir(), "approvals"), clock: c, seals: testSeals}
	},
}

// testSeals are the keys of all journals here, so that one test can open another's.
var testSeals = func() *Seals {
	s, err := OpenSeals("", clock.RealClock{})
	if err != nil {
		panic(err)
	}
	return s
}()

var kim = Approver{Type: LocalSecret, Name: "kim"}

// restarting opens the journal for one call at a time.
type restarting struct {
	t     *testing.T
	mu    sync.Mutex
	path  string
	clock clock.PassiveClock
	seals *Seals
}

func during[T any](r *restarting, call func(s Store) (T, error)) (T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := OpenFile(r.path, r.clock, r.seals)
	if err != nil {
		r.t.Errorf("OpenFile: %v", err)
		var none T
		return none, err
	}
	got, err := call(f)
	if err := f.Close(); err != nil {
		r.t.Errorf("Close: %v", err)
	}
	return got, err
}

func (r *restarting) Find(ctx context.Context, b Binding) ([]Approval, error) {
	return during(r, func(s Store) ([]Approval, error) { return s.Find(ctx, b) })
}

func (r *restarting) Raise(ctx context.Context, c Call) (Approval, error) {
	return during(r, func(s Store) (Approval, error) { return s.Raise(ctx, c) })
}

func (r *restarting) Consume(ctx context.Context, id string) error {
	_, err := during(r, func(s Store) (any, error) { return nil, s.Consume(ctx, id) })
	return err
}

func (r *restarting) Decide(ctx context.Context, name string, d Decision) error {
	_, err := during(r, func(s Store) (any, error) { return nil, s.Decide(ctx, name, d) })
	return err
}

func (r *restarting) Get(ctx context.Context, name string) (Approval, error) {
	return during(r, func(s Store) (Approval, error) { return s.Get(ctx, name) })
}

func (r *restarting) List(ctx context.Context) ([]Approval, error) {
	return during(r, func(s Store) ([]Approval, error) { return s.List(ctx) })
}

// world is a store with its clock, and calls that must work.
type world struct {
	*testing.T
	Store
	clock *clocktesting.FakePassiveClock
}

func (w *world) pass(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

func (w *world) raise(c Call) Approval {
	w.Helper()
	a, err := w.Raise(w.Context(), c)
	if err != nil {
		w.Fatalf("Raise: %v", err)
	}
	return a
}

func (w *world) decide(name string, outcome State) {
	w.Helper()
	if err := w.Decide(w.Context(), name, Decision{Outcome: outcome, By: kim}); err != nil {
		w.Fatalf("Decide: %v", err)
	}
}

func (w *world) consume(id string) {
	w.Helper()
	if err := w.Consume(w.Context(), id); err != nil {
		w.Fatalf("Consume: %v", err)
	}
}

func (w *world) wantState(name string, want State) {
	w.Helper()
	a, err := w.Get(w.Context(), name)
	if err != nil || a.State != want {
		w.Fatalf("%s is %q (%v), want %s", name, a.State, err, want)
	}
}

func (w *world) wantErr(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("error %v, want %v", err, want)
	}
}

func (w *world) wantFound(b Binding, want ...string) {
	w.Helper()
	found, err := w.Find(w.Context(), b)
	var names []string
	for _, a := range found {
		names = append(names, a.Name)
	}
	if err != nil || !cmp.Equal(want, names) {
		w.Fatalf("Find = %v, %v; want %v", names, err, want)
	}
}

func call(change ...func(c *Call)) Call {
	c := Call{
		Binding: Binding{
			PolicyDigest: "sha256:01", Caller: "shop/agent", Server: "payments", Tool: "refund", ArgumentsDigest: "sha256:02",
			OnBehalfOf: "jo", Session: "sha256:03", UserTurnsDigest: "sha256:04", AttestedBy: "chat", ConfirmReasons: []string{"Irreversible"},
		},
		Class: "Payments", Base: "Destructive", Message: "a person has to approve", UserRequest: "refund <the> order & \u2028",
		Arguments: json.RawMessage(`{"amount":5,"note":"<b>&"}`), Sources: map[string]string{"/amount": "User"},
		Answers: map[string]string{"asked": "0.2"}, Fingerprint: "f:1", Policies: []string{"shop/p@3"},
		Approvers: Approvers{Channels: []Channel{ChannelKubernetes}}, RaisedAt: noon, ExpiresAt: noon.Add(ttl),
	}
	for _, f := range change {
		f(&c)
	}
	c.CallKey = CallKey(c.Caller, c.Server, c.Tool, c.ArgumentsDigest, c.Session, c.OnBehalfOf, c.UserTurnsDigest)
	return c
}

func withTool(tool string) func(*Call) { return func(c *Call) { c.Tool = tool } }

// until is a call that is raised now.
func until(now time.Time) func(*Call) {
	return func(c *Call) { c.RaisedAt, c.ExpiresAt = now, now.Add(ttl) }
}
