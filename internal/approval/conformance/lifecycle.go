package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/approval"
)

// lifecycle is from raising to the end.
var lifecycle = map[string]func(w *world){
	"a raised call is pending and holds what was shown": func(w *world) {
		a := w.raise(call())
		want := approval.Approval{Name: prefix(call()) + "1", ID: a.ID, Call: call(), Seal: a.Seal, State: approval.Pending}
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
		w.wantErr(w.Consume(w.Context(), a.ID), approval.ErrNotApproved)
		w.pass(time.Minute)
		w.decide(a.Name, approval.Approved)
		w.wantFound(call().Binding, a.Name)
		got, err := w.Get(w.Context(), a.Name)
		a.State, a.Decision = approval.Approved, &approval.Decision{Outcome: approval.Approved, By: w.person("kim"), At: noon.Add(time.Minute)}
		if w.TellsTime && got.Decision != nil && !got.Decision.At.IsZero() {
			a.Decision.At = got.Decision.At
		}
		if diff := cmp.Diff(a, got); err != nil || diff != "" {
			w.Errorf("Get: %v (-want +got):\n%s", err, diff)
		}
		w.consume(a.ID)
		w.wantState(a.Name, approval.Consumed)
		w.wantFound(call().Binding)
		w.wantErr(w.Consume(w.Context(), a.ID), approval.ErrUsed)
	},
	"identical bindings share one while it stands": func(w *world) {
		a := w.raise(call())
		same := call(func(c *approval.Call) { c.Fingerprint, c.Message, c.ExpiresAt = "f:2", "other", noon.Add(time.Hour) })
		if b := w.raise(same); !cmp.Equal(a, b) {
			w.Errorf("a second one was raised: %s", b.Name)
		}
		w.decide(a.Name, approval.Approved)
		if b := w.raise(call()); b.ID != a.ID || b.State != approval.Approved {
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
			if want := fmt.Sprintf("%s%d", prefix(call()), n); a.Name != want {
				w.Fatalf("name %s, want %s", a.Name, want)
			}
			w.decide(a.Name, approval.Approved)
			w.consume(a.ID)
		}
		all, err := w.List(w.Context())
		if err != nil || len(all) != 11 || all[10].Name != prefix(call())+"11" || all[1].Name != prefix(call())+"2" {
			w.Errorf("List = %d, %v; want 11 in the order of their numbers", len(all), err)
		}
	},
	"after expiry the number grows": func(w *world) {
		a := w.raise(call())
		w.pass(ttl)
		b := w.raise(call(later))
		if b.Name != prefix(call())+"2" || b.ID == a.ID {
			w.Errorf("name %s", b.Name)
		}
		w.wantState(a.Name, approval.Expired)
	},
	"a rejection stands until it expires": func(w *world) {
		a := w.raise(call())
		w.decide(a.Name, approval.Rejected)
		w.wantErr(w.Consume(w.Context(), a.ID), approval.ErrNotApproved)
		w.wantErr(w.Decide(w.Context(), a.Name, approval.Decision{Outcome: approval.Approved, By: w.person("kim")}), approval.ErrDecided)
		w.pass(ttl - 1)
		if b := w.raise(call(later)); b.ID != a.ID || b.State != approval.Rejected {
			w.Errorf("raised again: %+v", b)
		}
		w.wantFound(call().Binding, a.Name)
		w.pass(1)
		w.wantFound(call().Binding)
		if b := w.raise(call(later)); b.ID == a.ID || b.State != approval.Pending {
			w.Errorf("not raised anew: %+v", b)
		}
	},
	"a decision is made once": func(w *world) {
		a := w.raise(call())
		w.decide(a.Name, approval.Approved)
		for _, o := range []approval.State{approval.Approved, approval.Rejected} {
			w.wantErr(w.Decide(w.Context(), a.Name, approval.Decision{Outcome: o, By: w.person("lee")}), approval.ErrDecided)
		}
		w.consume(a.ID)
		w.wantErr(w.Decide(w.Context(), a.Name, approval.Decision{Outcome: approval.Approved, By: w.person("lee")}), approval.ErrDecided)
		w.wantState(a.Name, approval.Consumed)
	},
	"a caller does not decide about its own call": func(w *world) {
		a := w.raise(call())
		for _, by := range []string{"shop/agent", "system:serviceaccount:shop:agent"} {
			w.wantErr(w.Decide(w.Context(), a.Name, approval.Decision{Outcome: approval.Approved, By: w.person(by)}), approval.ErrSelfApproval)
		}
		w.wantState(a.Name, approval.Pending)
		w.decide(a.Name, approval.Approved)
	},
	"decisions that are none": func(w *world) {
		a := w.raise(call())
		for _, d := range []approval.Decision{
			{}, {Outcome: approval.Approved}, {By: w.person("kim")}, {Outcome: approval.Pending, By: w.person("kim")}, {Outcome: approval.Consumed, By: w.person("kim")}, {Outcome: "approved", By: w.person("kim")},
			{Outcome: approval.Approved, By: approval.Approver{Name: "kim"}}, {Outcome: approval.Approved, By: approval.Approver{Type: "Friend", Name: "kim"}},
			{Outcome: approval.Approved, By: w.person("kim"), ID: "another"},
		} {
			w.wantErr(w.Decide(w.Context(), a.Name, d), approval.ErrBadDecision)
		}
		long := approval.Decision{Outcome: approval.Approved, By: w.person("kim"), Message: strings.Repeat("m", approval.MaxMessage+1)}
		w.wantErr(w.Decide(w.Context(), a.Name, long), approval.ErrTooLarge)
		w.wantState(a.Name, approval.Pending)
	},
	"what is not there": func(w *world) {
		_, err := w.Get(w.Context(), "ta-0-1")
		w.wantErr(err, approval.ErrNotFound)
		w.wantErr(w.Consume(w.Context(), "0"), approval.ErrNotFound)
		w.wantErr(w.Decide(w.Context(), "ta-0-1", approval.Decision{Outcome: approval.Approved, By: w.person("kim")}), approval.ErrNotFound)
		a := w.raise(call())
		w.wantErr(w.Consume(w.Context(), a.Name), approval.ErrNotFound)
		w.wantErr(w.Decide(w.Context(), a.ID, approval.Decision{Outcome: approval.Approved, By: w.person("kim")}), approval.ErrNotFound)
	},
	"the last moment counts and the next does not": func(w *world) {
		a := w.raise(call())
		b := w.raise(call(withTool("other")))
		w.pass(ttl - 1)
		w.decide(a.Name, approval.Approved)
		w.decide(b.Name, approval.Approved)
		w.consume(a.ID)
		w.pass(1)
		w.wantErr(w.Consume(w.Context(), b.ID), approval.ErrExpired)
		w.wantState(b.Name, approval.Expired)
		w.wantErr(w.Consume(w.Context(), a.ID), approval.ErrUsed)
	},
	"a pending call that expired cannot be decided": func(w *world) {
		a := w.raise(call())
		w.pass(ttl)
		w.wantErr(w.Decide(w.Context(), a.Name, approval.Decision{Outcome: approval.Approved, By: w.person("kim")}), approval.ErrExpired)
		w.wantFound(call().Binding)
		w.wantErr(w.Consume(w.Context(), a.ID), approval.ErrExpired)
	},
	"a clock that is set back revives nothing": func(w *world) {
		a := w.raise(call())
		w.decide(a.Name, approval.Approved)
		w.pass(ttl)
		w.wantFound(call().Binding)
		w.pass(-ttl)
		w.wantFound(call().Binding)
		w.wantErr(w.Consume(w.Context(), a.ID), approval.ErrExpired)
	},
	"a call is not raised after its time": func(w *world) {
		_, err := w.Raise(w.Context(), call(func(c *approval.Call) { c.ExpiresAt = noon }))
		w.wantErr(err, approval.ErrExpired)
		_, err = w.Raise(w.Context(), call(func(c *approval.Call) { c.ExpiresAt = time.Time{} }))
		w.wantErr(err, approval.ErrExpired)
	},
	"calls that are not valid": func(w *world) {
		for _, caller := range []string{"", "agent", "/agent", "shop/", "a/b/c"} {
			_, err := w.Raise(w.Context(), call(func(c *approval.Call) { c.Caller = caller }))
			w.wantErr(err, approval.ErrBadCall)
		}
		for _, change := range []func(c *approval.Call){
			func(c *approval.Call) { c.Arguments = json.RawMessage(`{"a":`) },
			func(c *approval.Call) { c.Tool = "t\xff" },
			func(c *approval.Call) { c.ConfirmReasons = []string{"\xc0"} },
			func(c *approval.Call) { c.ExpiresAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		} {
			_, err := w.Raise(w.Context(), call(change))
			w.wantErr(err, approval.ErrBadCall)
		}
		all, err := w.List(w.Context())
		if err != nil || len(all) != 0 {
			w.Errorf("List = %v, %v", all, err)
		}
	},
	"a call that nobody can read is not raised": func(w *world) {
		base, err := encode(call(func(c *approval.Call) { c.Message = "" }))
		if err != nil {
			w.Fatal(err)
		}
		room := approval.MaxCall - len(base) - len(`"message":"",`)
		w.raise(call(func(c *approval.Call) { c.Message = strings.Repeat("m", room) }))
		_, err = w.Raise(w.Context(), call(withTool("refunD"), func(c *approval.Call) { c.Message = strings.Repeat("m", room+1) }))
		w.wantErr(err, approval.ErrTooLarge)
	},
	"a caller has at most 50 pending": func(w *world) {
		var last approval.Approval
		for i := range approval.MaxPendingPerCaller {
			last = w.raise(call(withTool(fmt.Sprint(i))))
		}
		_, err := w.Raise(w.Context(), call())
		w.wantErr(err, approval.ErrTooManyPending)
		w.raise(call(withTool("0"))) // shares one
		w.raise(call(func(c *approval.Call) { c.Caller = "shop/other" }))
		w.decide(last.Name, approval.Rejected)
		w.raise(call())
		_, err = w.Raise(w.Context(), call(withTool("more")))
		w.wantErr(err, approval.ErrTooManyPending)
		w.pass(ttl)
		w.raise(call(withTool("more"), later))
	},
	"what is given away is a copy": func(w *world) {
		c := call()
		a := w.raise(c)
		c.Arguments[2], c.Sources["/amount"], c.ConfirmReasons[0] = 'X', "Nowhere", "None"
		a.Call.Arguments[2], a.Call.Answers["asked"], a.Call.Policies[0] = 'X', "1", "other"
		w.decide(a.Name, approval.Approved)
		b, err := w.Get(w.Context(), a.Name)
		if diff := cmp.Diff(call(), b.Call); err != nil || diff != "" {
			w.Fatalf("Get: %v (-want +got):\n%s", err, diff)
		}
		b.Decision.Outcome = approval.Rejected
		w.consume(a.ID)
	},
	"an ended context does nothing": func(w *world) {
		a := w.raise(call())
		w.decide(a.Name, approval.Approved)
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		w.wantErr(w.Consume(ctx, a.ID), context.Canceled)
		_, err := w.Raise(ctx, call(withTool("other")))
		w.wantErr(err, context.Canceled)
		w.consume(a.ID)
	},
	"what ended is forgotten after an hour": func(w *world) {
		a := w.raise(call())
		w.decide(a.Name, approval.Approved)
		w.consume(a.ID)
		w.pass(time.Hour - 1)
		w.wantState(a.Name, approval.Consumed)
		w.pass(1)
		_, err := w.Get(w.Context(), a.Name)
		w.wantErr(err, approval.ErrNotFound)
		w.wantErr(w.Consume(w.Context(), a.ID), approval.ErrNotFound)
	},
	"of many that consume at once one succeeds": func(w *world) {
		a := w.raise(call())
		w.decide(a.Name, approval.Approved)
		var wins atomic.Int32
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				switch err := w.Consume(w.Context(), a.ID); {
				case err == nil:
					wins.Add(1)
				case !errors.Is(err, approval.ErrUsed):
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
