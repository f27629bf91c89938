package conformance

import (
	"slices"

	"gatewright.dev/gatewright/internal/approval"
)

// rejecting is what a rejection holds back, whatever the policies say by then.
var rejecting = map[string]func(w *world){
	"a rejection holds under another policy": func(w *world) {
		a := w.raise(call())
		w.decide(a.Name, approval.Rejected)
		other := call(underAnotherPolicy, withReasons("Another"))
		w.wantFound(other.Binding, a.Name)
		if b := w.raise(other); b.ID != a.ID || b.State != approval.Rejected {
			w.Errorf("the same call was raised anew: %+v", b)
		}
		w.pass(ttl)
		w.wantFound(other.Binding)
		if b := w.raise(call(underAnotherPolicy, later)); b.ID == a.ID || b.State != approval.Pending {
			w.Errorf("after its time the rejection still holds: %+v", b)
		}
	},
	"a rejection ends when the user has said more": func(w *world) {
		a := w.raise(call())
		w.decide(a.Name, approval.Rejected)
		more := call(func(c *approval.Call) { c.UserTurnsDigest = "sha256:0d" })
		w.wantFound(more.Binding)
		if b := w.raise(more); b.ID == a.ID || b.State != approval.Pending {
			w.Errorf("not raised: %+v", b)
		}
	},
	"what a front door has signed counts as soon as both calls have it": func(w *world) {
		signed := func(digest string) func(*approval.Call) {
			return func(c *approval.Call) { c.AttestedBy = "chat"; c.UserTurnsDigest = digest }
		}
		// All have the same key: the caller says the same each time.
		same := func(c approval.Call) approval.Call {
			c.CallKey = call().CallKey
			return c
		}
		first := same(call(signed("sha256:a1")))
		a := w.raise(first)
		w.decide(a.Name, approval.Rejected)
		w.wantFound(same(call()).Binding, a.Name)
		w.wantFound(same(call(signed("sha256:a1"), underAnotherPolicy)).Binding, a.Name)
		w.wantFound(same(call(signed("sha256:a2"))).Binding)
		w.wantFound(same(call(signed("sha256:a1"), func(c *approval.Call) { c.OnBehalfOf = "ann" })).Binding)
	},
	"an approval is not used while a rejection of the same call stands": func(w *world) {
		one, two := w.raise(call()), w.raise(call(underAnotherPolicy))
		if one.ID == two.ID {
			w.Fatal("two policies share an approval")
		}
		w.decide(one.Name, approval.Approved)
		w.decide(two.Name, approval.Rejected)
		w.wantErr(w.Consume(w.Context(), one.ID), approval.ErrRejected)
		w.wantState(one.Name, approval.Approved)
		want := []string{one.Name, two.Name}
		slices.Sort(want)
		w.wantFound(call().Binding, want...)
	},
	"a rejection of another call holds nothing back": func(w *world) {
		one, two := w.raise(call()), w.raise(call(withTool("other")))
		w.decide(two.Name, approval.Rejected)
		w.decide(one.Name, approval.Approved)
		w.consume(one.ID)
	},
}
