package approval

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// apply makes an event happen. It refuses what no book of ours can have led to,
// so that a journal that was mixed up does not become a state.
func (b *book) apply(e event) error {
	switch e.Op {
	case opRaise:
		return b.applyRaise(e)
	case opCount:
		return b.applyCount(e)
	case opDecide, opConsume, opExpire, opForget:
	}
	k := b.byID[e.ID]
	if k == nil {
		return fmt.Errorf("%s of what was never raised", e.Op)
	}
	switch {
	case e.Op == opDecide && k.State == Pending && e.Decision != nil && mayDecide(k, e):
		b.count(k, -1)
		d := *e.Decision
		k.State, k.Decision = d.Outcome, &d
	case e.Op == opConsume && k.State == Approved && e.At.Before(k.Call.ExpiresAt):
		k.end(Consumed, e.At)
	case e.Op == opExpire && k.live() && !e.At.Before(k.Call.ExpiresAt):
		if k.State == Pending {
			b.count(k, -1)
		}
		k.end(Expired, k.Call.ExpiresAt)
	case e.Op == opForget && !k.live():
		b.forget(k)
		return nil
	default:
		return fmt.Errorf("%s of what is %s", e.Op, k.State)
	}
	b.lookAt(k.deadline())
	return nil
}

func (k *kept) end(s State, at time.Time) { k.State, k.EndedAt = s, &at }

// mayDecide repeats what does not depend on when it is asked. Who may decide was checked when they did, and is checked
// again when the approval is used.
func mayDecide(k *kept, e event) bool {
	d := e.Decision
	return (d.Outcome == Approved || d.Outcome == Rejected) && d.By.Name != "" && !k.Call.isCaller(d.By.Name) && e.At.Before(k.Call.ExpiresAt)
}

func (b *book) applyRaise(e event) error {
	if e.Call == nil || e.ID == "" || b.byID[e.ID] != nil || b.byName[e.Name] != nil {
		return fmt.Errorf("raise without a call, or of what was raised before")
	}
	call := cloneCall(*e.Call)
	prefix := call.prefix()
	n, err := strconv.Atoi(strings.TrimPrefix(e.Name, prefix))
	if err != nil || n < 1 || e.Name != prefix+strconv.Itoa(n) {
		return fmt.Errorf("raise under a name that is not its own")
	}
	k := &kept{
		Approval: Approval{Name: e.Name, ID: e.ID, Call: call, Seal: e.Seal, State: Pending},
		key:      call.Key(), digest: call.Digest(), prefix: prefix,
	}
	s := b.series[prefix]
	if s == nil {
		s = &series{}
		b.series[prefix] = s
	}
	s.last, s.kept = max(s.last, n), s.kept+1
	b.byID[k.ID], b.byName[k.Name] = k, k
	b.byKey[k.key] = append(b.byKey[k.key], k)
	b.byCall[call.CallKey] = append(b.byCall[call.CallKey], k)
	b.count(k, +1)
	b.noteRaise(call.Caller, Raise{k.ID, call.RaisedAt})
	b.lookAt(k.deadline())
	return nil
}

func (b *book) forget(k *kept) {
	delete(b.byID, k.ID)
	delete(b.byName, k.Name)
	remove(b.byKey, k.key, k)
	remove(b.byCall, k.Call.CallKey, k)
	if s := b.series[k.prefix]; s.kept > 1 {
		s.kept--
	} else {
		delete(b.series, k.prefix)
	}
	b.forgotten++
}

func remove(index map[string][]*kept, key string, k *kept) {
	if rest := slices.DeleteFunc(index[key], func(o *kept) bool { return o == k }); len(rest) > 0 {
		index[key] = rest
	} else {
		delete(index, key)
	}
}

// events are the fewest that lead to this book.
func (b *book) events() []event {
	events := b.counts()
	for _, k := range b.all() {
		call := k.Call
		events = append(events, event{Op: opRaise, At: call.RaisedAt, ID: k.ID, Name: k.Name, Call: &call, Seal: k.Seal})
		if k.Decision != nil {
			events = append(events, event{Op: opDecide, At: k.Decision.At, ID: k.ID, Decision: k.Decision})
		}
		switch k.State {
		case Consumed:
			events = append(events, event{Op: opConsume, At: *k.EndedAt, ID: k.ID})
		case Expired:
			events = append(events, event{Op: opExpire, At: *k.EndedAt, ID: k.ID})
		case Pending, Approved, Rejected:
		}
	}
	return events
}

// count keeps the numbers of pending calls.
func (b *book) count(k *kept, by int) {
	namespace, _ := k.Call.Namespace()
	add(b.callers, k.Call.Caller, by)
	add(b.namespaces, namespace, by)
}

func add(counts map[string]int, key string, by int) {
	if counts[key] += by; counts[key] == 0 {
		delete(counts, key)
	}
}
