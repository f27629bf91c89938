package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

// suite is what every store has to do.
var suite = map[string]func(w *world){
	"a raised call is pending and holds what was shown": func(w *world) {
		a := w.raise(call())
		want := Approval{Name: call().prefix() + "1", ID: a.ID, Call: call(), State: Pending}
		if diff := cmp.Diff(want, a); diff != "" {
			w.Errorf("(-want +got):\n%s", diff)
		}
		if len(a.ID) != 32 {
			w.Errorf("ID %q, want 128 bits", a.ID)
		}
		got, err := w.Get(w.Context(), a.Name)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			w.Errorf("Get: %v (-want +got):\n%s", err, diff)
		}
	},
	"the way of an approved call": func(w *world) {
		a := w.raise(call())
		w.wantErr(w.Consume(w.Context(), a.ID), ErrNotApproved)
		w.pass(time.Minute)
		w.decide(a.Name, Approved)
		w.wantFound(call().Binding, a.Name)
		got, err := w.Get(w.Context(), a.Name)
		a.State, a.Decision = Approved, &Decision{Outcome: Approved, By: "kim", At: noon.Add(time.Minute)}
		if diff := cmp.Diff(a, got); err != nil || diff != "" {
			w.Errorf("Get: %v (-want +got):\n%s", err, diff)
		}
		w.consume(a.ID)
		w.wantState(a.Name, Consumed)
		w.wantFound(call().Binding)
		w.wantErr(w.Consume(w.Context(), a.ID), ErrUsed)
	},
	"identical bindings share one while it stands": func(w *world) {
		a := w.raise(call())
		same := call(func(c *Call) { c.Fingerprint, c.Message, c.ExpiresAt = "f:2", "other", noon.Add(time.Hour) })
		if b := w.raise(same); !cmp.Equal(a, b) {
			w.Errorf("a second one was raised: %s", b.Name)
		}
		w.decide(a.Name, Approved)
		if b := w.raise(call()); b.ID != a.ID || b.State != Approved {
			w.Errorf("beside an approved one another was raised: %+v", b)
		}
	},
	"reasons count as a set": func(w *world) {
		a := w.raise(call(withReasons("B", "A", "B")))
		if b := w.raise(call(withReasons("A", "B"))); b.ID != a.ID {
			w.Error("the same reasons in another order raised another approval")
		}
		if diff := cmp.Diff([]string{"A", "B"}, a.Call.ConfirmReasons); diff != "" {
			w.Errorf("(-want +got):\n%s", diff)
		}
	},
	"another reason is another approval, and both are found": func(w *world) {
		a := w.raise(call())
		b := w.raise(call(withReasons("Irreversible", "Unsure")))
		if a.ID == b.ID || a.Name == b.Name {
			w.Fatal("they share an approval")
		}
		want := []string{a.Name, b.Name}
		slices.Sort(want)
		w.wantFound(call(withReasons("Another")).Binding, want...)
		w.wantFound(call(withTool("other")).Binding)
	},
	"after use the number grows": func(w *world) {
		for n := 1; n <= 11; n++ {
			a := w.raise(call())
			if want := fmt.Sprintf("%s%d", call().prefix(), n); a.Name != want {
				w.Fatalf("name %s, want %s", a.Name, want)
			}
			w.decide(a.Name, Approved)
			w.consume(a.ID)
		}
		all, err := w.List(w.Context())
		if err != nil || len(all) != 11 || all[10].Name != call().prefix()+"11" || all[1].Name != call().prefix()+"2" {
			w.Errorf("List = %d, %v; want 11 in the order of their numbers", len(all), err)
		}
	},
	"after expiry the number grows": func(w *world) {
		a := w.raise(call())
		w.pass(ttl)
		b := w.raise(call(func(c *Call) { c.ExpiresAt = noon.Add(2 * ttl) }))
		if b.Name != call().prefix()+"2" || b.ID == a.ID {
			w.Errorf("name %s", b.Name)
		}
		w.wantState(a.Name, Expired)
	},
	"a rejection stands until it expires": func(w *world) {
		a := w.raise(call())
		w.decide(a.Name, Rejected)
		w.wantErr(w.Consume(w.Context(), a.ID), ErrNotApproved)
		w.wantErr(w.Decide(w.Context(), a.Name, Decision{Outcome: Approved, By: "kim"}), ErrDecided)
		w.pass(ttl - 1)
		if b := w.raise(call(func(c *Call) { c.ExpiresAt = noon.Add(2 * ttl) })); b.ID != a.ID || b.State != Rejected {
			w.Errorf("raised again: %+v", b)
		}
		w.wantFound(call().Binding, a.Name)
		w.pass(1)
		w.wantFound(call().Binding)
		if b := w.raise(call(func(c *Call) { c.ExpiresAt = noon.Add(2 * ttl) })); b.ID == a.ID || b.State != Pending {
			w.Errorf("not raised anew: %+v", b)
		}
	},
	"a decision is made once": func(w *world) {
		a := w.raise(call())
		w.decide(a.Name, Approved)
		for _, o := range []State{Approved, Rejected} {
			w.wantErr(w.Decide(w.Context(), a.Name, Decision{Outcome: o, By: "lee"}), ErrDecided)
		}
		w.consume(a.ID)
		w.wantErr(w.Decide(w.Context(), a.Name, Decision{Outcome: Approved, By: "lee"}), ErrDecided)
		w.wantState(a.Name, Consumed)
	},
	"a caller does not decide about its own call": func(w *world) {
		a := w.raise(call())
		for _, by := range []string{"shop/agent", "system:serviceaccount:shop:agent"} {
			w.wantErr(w.Decide(w.Context(), a.Name, Decision{Outcome: Approved, By: by}), ErrSelfApproval)
		}
		w.wantState(a.Name, Pending)
		w.decide(a.Name, Approved)
	},
	"decisions that are none": func(w *world) {
		a := w.raise(call())
		for _, d := range []Decision{
			{}, {Outcome: Approved}, {By: "kim"}, {Outcome: Pending, By: "kim"}, {Outcome: Consumed, By: "kim"}, {Outcome: "approved", By: "kim"},
		} {
			w.wantErr(w.Decide(w.Context(), a.Name, d), ErrBadDecision)
		}
		long := Decision{Outcome: Approved, By: "kim", Message: strings.Repeat("m", MaxMessage+1)}
		w.wantErr(w.Decide(w.Context(), a.Name, long), ErrTooLarge)
		w.wantState(a.Name, Pending)
	},
	"what is not there": func(w *world) {
		_, err := w.Get(w.Context(), "ta-0-1")
		w.wantErr(err, ErrNotFound)
		w.wantErr(w.Consume(w.Context(), "0"), ErrNotFound)
		w.wantErr(w.Decide(w.Context(), "ta-0-1", Decision{Outcome: Approved, By: "kim"}), ErrNotFound)
		a := w.raise(call())
		w.wantErr(w.Consume(w.Context(), a.Name), ErrNotFound)
		w.wantErr(w.Decide(w.Context(), a.ID, Decision{Outcome: Approved, By: "kim"}), ErrNotFound)
	},
	"the last moment counts and the next does not": func(w *world) {
		a := w.raise(call())
		b := w.raise(call(withTool("other")))
		w.pass(ttl - 1)
		w.decide(a.Name, Approved)
		w.decide(b.Name, Approved)
		w.consume(a.ID)
		w.pass(1)
		w.wantErr(w.Consume(w.Context(), b.ID), ErrExpired)
		w.wantState(b.Name, Expired)
		w.wantErr(w.Consume(w.Context(), a.ID), ErrUsed)
	},
	"a pending call that expired cannot be decided": func(w *world) {
		a := w.raise(call())
		w.pass(ttl)
		w.wantErr(w.Decide(w.Context(), a.Name, Decision{Outcome: Approved, By: "kim"}), ErrExpired)
		w.wantFound(call().Binding)
		w.wantErr(w.Consume(w.Context(), a.ID), ErrExpired)
	},
	"a clock that is set back revives nothing": func(w *world) {
		a := w.raise(call())
		w.decide(a.Name, Approved)
		w.pass(ttl)
		w.wantFound(call().Binding)
		w.pass(-ttl)
		w.wantFound(call().Binding)
		w.wantErr(w.Consume(w.Context(), a.ID), ErrExpired)
	},
	"a call is not raised after its time": func(w *world) {
		_, err := w.Raise(w.Context(), call(func(c *Call) { c.ExpiresAt = noon }))
		w.wantErr(err, ErrExpired)
		_, err = w.Raise(w.Context(), call(func(c *Call) { c.ExpiresAt = time.Time{} }))
		w.wantErr(err, ErrExpired)
	},
	"calls that are not valid": func(w *world) {
		for _, caller := range []string{"", "agent", "/agent", "shop/", "a/b/c"} {
			_, err := w.Raise(w.Context(), call(func(c *Call) { c.Caller = caller }))
			w.wantErr(err, ErrBadCall)
		}
		for _, change := range []func(c *Call){
			func(c *Call) { c.Arguments = json.RawMessage(`{"a":`) },
			func(c *Call) { c.Tool = "t\xff" },
			func(c *Call) { c.ConfirmReasons = []string{"\xc0"} },
			func(c *Call) { c.ExpiresAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		} {
			_, err := w.Raise(w.Context(), call(change))
			w.wantErr(err, ErrBadCall)
		}
		all, err := w.List(w.Context())
		if err != nil || len(all) != 0 {
			w.Errorf("List = %v, %v", all, err)
		}
	},
	"a call that nobody can read is not raised": func(w *world) {
		base, err := encode(call(func(c *Call) { c.Message = "" }))
		if err != nil {
			w.Fatal(err)
		}
		room := MaxCall - len(base) - len(`"message":"",`)
		w.raise(call(func(c *Call) { c.Message = strings.Repeat("m", room) }))
		_, err = w.Raise(w.Context(), call(withTool("refunD"), func(c *Call) { c.Message = strings.Repeat("m", room+1) }))
		w.wantErr(err, ErrTooLarge)
	},
	"a caller has at most 50 pending": func(w *world) {
		var last Approval
		for i := range MaxPendingPerCaller {
			last = w.raise(call(withTool(fmt.Sprint(i))))
		}
		_, err := w.Raise(w.Context(), call())
		w.wantErr(err, ErrTooManyPending)
		w.raise(call(withTool("0"))) // shares one
		w.raise(call(func(c *Call) { c.Caller = "shop/other" }))
		w.decide(last.Name, Rejected)
		w.raise(call())
		_, err = w.Raise(w.Context(), call(withTool("more")))
		w.wantErr(err, ErrTooManyPending)
		w.pass(ttl)
		w.raise(call(withTool("more"), func(c *Call) { c.ExpiresAt = noon.Add(2 * ttl) }))
	},
	"what is given away is a copy": func(w *world) {
		c := call()
		a := w.raise(c)
		c.Arguments[2], c.Sources["/amount"], c.ConfirmReasons[0] = 'X', "Nowhere", "None"
		a.Call.Arguments[2], a.Call.Answers["asked"], a.Call.Policies[0] = 'X', "1", "other"
		w.decide(a.Name, Approved)
		b, err := w.Get(w.Context(), a.Name)
		if diff := cmp.Diff(call(), b.Call); err != nil || diff != "" {
			w.Fatalf("Get: %v (-want +got):\n%s", err, diff)
		}
		b.Decision.Outcome = Rejected
		w.consume(a.ID)
	},
	"an ended context does nothing": func(w *world) {
		a := w.raise(call())
		w.decide(a.Name, Approved)
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		w.wantErr(w.Consume(ctx, a.ID), context.Canceled)
		_, err := w.Raise(ctx, call(withTool("other")))
		w.wantErr(err, context.Canceled)
		w.consume(a.ID)
	},
	"what ended is forgotten after an hour": func(w *world) {
		a := w.raise(call())
		w.decide(a.Name, Approved)
		w.consume(a.ID)
		w.pass(ttl + time.Hour - 1)
		w.wantState(a.Name, Consumed)
		w.pass(1)
		_, err := w.Get(w.Context(), a.Name)
		w.wantErr(err, ErrNotFound)
		w.wantErr(w.Consume(w.Context(), a.ID), ErrNotFound)
	},
	"of many that consume at once one succeeds": func(w *world) {
		a := w.raise(call())
		w.decide(a.Name, Approved)
		var wins atomic.Int32
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				switch err := w.Consume(w.Context(), a.ID); {
				case err == nil:
					wins.Add(1)
				case !errors.Is(err, ErrUsed):
					w.Errorf("Consume: %v", err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 {
			w.Errorf("%d consumed it", wins.Load())
		}
	},
}

func TestConformance(t *testing.T) {
	for store, open := range stores {
		for name, run := range suite {
			t.Run(store+"/"+name, func(t *testing.T) {
				c := clocktesting.NewFakePassiveClock(noon)
				run(&world{T: t, Store: open(t, c), clock: c})
			})
		}
	}
}

func TestANamespaceHasAtMost1000Pending(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	w := &world{T: t, Store: NewMemory(c), clock: c}
	of := func(i int) func(c *Call) {
		return func(c *Call) { c.Caller, c.Tool = fmt.Sprintf("shop/agent%d", i/MaxPendingPerCaller), fmt.Sprint(i) }
	}
	for i := range MaxPendingPerNamespace {
		w.raise(call(of(i)))
	}
	_, err := w.Raise(t.Context(), call(of(MaxPendingPerNamespace)))
	w.wantErr(err, ErrTooManyPending)
	w.raise(call(func(c *Call) { c.Caller = "bank/agent" }))
	w.pass(ttl)
	w.raise(call(of(0), func(c *Call) { c.ExpiresAt = noon.Add(2 * ttl) }))
}
