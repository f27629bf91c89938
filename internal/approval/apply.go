package approval

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// apply makes an event happen. It refuses what no book of ours can have led to,
// so that a journal that was tampered with or mixed up does not become a state.
func (b *book) apply(e event) error {
	if e.V != 1 {
		return fmt.Errorf("event of version %d", e.V)
	}
	if e.Op == opRaise {
		return b.applyRaise(e)
	}
	k := b.byID[e.ID]
	if k == nil {
		return fmt.Errorf("%s of what was never raised", e.Op)
	}
	switch {
	case e.Op == opDecide && k.State == Pending && e.Decision != nil && b.mayDecide(k, e):
		b.count(k, -1)
		d := *e.Decision
		k.State, k.Decision = d.Outcome, &d
	case e.Op == opConsume && k.State == Approved && e.At.Before(k.Call.ExpiresAt):
		k.State = Consumed
	case e.Op == opExpire && k.live():
		if k.State == Pending {
			b.count(k, -1)
		}
		k.State = Expired
	case e.Op == opForget && !k.live():
		b.forget(k)
		return nil
	default:
		return fmt.Errorf("%s of what is %s", e.Op, k.State)
	}
	b.lookAt(k.deadline())
	return nil
}

func (b *book) mayDecide(k *kept, e event) bool {
	d := e.Decision
	return (d.Outcome == Approved || d.Outcome == Rejected) && d.By != "" && !k.Call.isCaller(d.By) && e.At.Before(k.Call.ExpiresAt)
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
		Approval: Approval{Name: e.Name, ID: e.ID, Call: call, State: Pending},
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
	b.count(k, +1)
	b.lookAt(k.deadline())
	return nil
}

func (b *book) forget(k *kept) {
	delete(b.byID, k.ID)
	delete(b.byName, k.Name)
	if rest := slices.DeleteFunc(b.byKey[k.key], func(o *kept) bool { return o == k }); len(rest) > 0 {
		b.byKey[k.key] = rest
	} else {
		delete(b.byKey, k.key)
	}
	if s := b.series[k.prefix]; s.kept > 1 {
		s.kept--
	} else {
		delete(b.series, k.prefix)
	}
}

// count keeps the numbers of pending calls.
func (b *book) count(k *kept, by int) {
	namespace, _ := k.Call.namespace()
	add(b.callers, k.Call.Caller, by)
	add(b.namespaces, namespace, by)
}

func add(counts map[string]int, key string, by int) {
	if counts[key] += by; counts[key] == 0 {
		delete(counts, key)
	}
}
