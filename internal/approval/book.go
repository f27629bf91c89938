package approval

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// book is the state of a store: what the events so far have led to. It does no
// I/O, reads no clock and takes no lock.
type book struct {
	byID   map[string]*kept
	byName map[string]*kept
	byKey  map[string][]*kept
	// byCall finds rejections, which hold whatever the policies say.
	byCall map[string][]*kept
	// series counts the names of each prefix as long as any of them is kept.
	series map[string]*series
	// raises are when callers have caused what, for RaisesKept, by caller and id.
	raises map[string]map[string]time.Time
	// pending calls by caller and by namespace.
	callers, namespaces map[string]int
	// next moment at which something expires or can be forgotten.
	next time.Time
	// forgotten counts the approvals that have left the book.
	forgotten int
}

type kept struct {
	Approval
	key, digest, prefix string
	// isBusy holds time back while a change of this approval is being written.
	isBusy bool
}

type series struct{ last, kept int }

func newBook() *book {
	return &book{
		byID: map[string]*kept{}, byName: map[string]*kept{}, byKey: map[string][]*kept{}, byCall: map[string][]*kept{},
		series: map[string]*series{}, raises: map[string]map[string]time.Time{}, callers: map[string]int{}, namespaces: map[string]int{},
	}
}

// op is a kind of event.
type op string

const (
	opRaise   op = "raise"
	opDecide  op = "decide"
	opConsume op = "consume"
	opExpire  op = "expire"
	opForget  op = "forget"
	// opCount is what is left of an approval that was forgotten: that its caller has caused it.
	opCount op = "count"
)

// event is one change. The events of a book, applied in order, give the book.
type event struct {
	// Prev is the digest of the seal of the line before, so that no line can be taken out of a journal.
	Prev     string    `json:"prev,omitempty"`
	Op       op        `json:"op"`
	At       time.Time `json:"at"`
	ID       string    `json:"id"`
	Name     string    `json:"name,omitempty"`
	Call     *Call     `json:"call,omitempty"`
	Seal     string    `json:"seal,omitempty"`
	Decision *Decision `json:"decision,omitempty"`
	// Caller of a count.
	Caller string `json:"caller,omitempty"`
}

// live says whether an approval still stands for its binding.
func (k *kept) live() bool { return k.State == Pending || k.State == Approved || k.State == Rejected }

// stands says whether it is live and its time is not over.
func (k *kept) stands(now time.Time) bool { return k.live() && now.Before(k.Call.ExpiresAt) }

func (b *book) isDue(now time.Time) bool { return !b.next.IsZero() && !now.Before(b.next) }

// due gives what time has done since the last event.
func (b *book) due(now time.Time) []event {
	if !b.isDue(now) {
		return nil
	}
	var events []event
	b.next = time.Time{}
	for _, id := range slices.Sorted(maps.Keys(b.byID)) {
		k := b.byID[id]
		switch {
		case k.isBusy:
		case k.live() && !now.Before(k.Call.ExpiresAt):
			events = append(events, event{Op: opExpire, At: now, ID: id})
			b.lookAt(k.Call.ExpiresAt.Add(retention))
		case !k.live() && !now.Before(k.EndedAt.Add(retention)):
			events = append(events, event{Op: opForget, At: now, ID: id})
		default:
			b.lookAt(k.deadline())
		}
	}
	return events
}

// deadline is when time changes this approval next.
func (k *kept) deadline() time.Time {
	if k.live() {
		return k.Call.ExpiresAt
	}
	return k.EndedAt.Add(retention)
}

func (b *book) lookAt(t time.Time) {
	if b.next.IsZero() || t.Before(b.next) {
		b.next = t
	}
}

func (b *book) all() []*kept {
	all := slices.Collect(maps.Values(b.byName))
	slices.SortFunc(all, byName)
	return all
}

func byName(x, y *kept) int { return compareNames(x.Name, y.Name) }

// find gives what stands for a binding, sorted by name.
func (b *book) find(binding Binding, now time.Time) []*kept {
	var found []*kept
	key := binding.Key()
	for _, k := range b.byKey[key] {
		if k.stands(now) {
			found = append(found, k)
		}
	}
	for _, k := range b.byCall[binding.CallKey] {
		if k.key != key && b.rejects(k, binding, now) {
			found = append(found, k)
		}
	}
	slices.SortFunc(found, byName)
	return found
}

func (b *book) rejects(k *kept, binding Binding, now time.Time) bool {
	return k.State == Rejected && k.stands(now) && k.Call.IsSameCall(binding)
}

// rejection gives the rejection that stands for a call, nil if there is none.
func (b *book) rejection(binding Binding, now time.Time) *kept {
	for _, k := range b.byCall[binding.CallKey] {
		if b.rejects(k, binding, now) {
			return k
		}
	}
	return nil
}

// raise gives what stands for this very binding or rejects the call, or the event that makes it.
func (b *book) raise(c *Call, id string, now time.Time) (*kept, event, error) {
	if k := b.rejection(c.Binding, now); k != nil {
		return k, event{}, nil
	}
	digest := c.Digest()
	for _, k := range b.byKey[c.Key()] {
		if k.stands(now) && k.digest == digest {
			return k, event{}, nil
		}
	}
	if !now.Before(c.ExpiresAt) {
		return nil, event{}, fmt.Errorf("%w: before it was raised", ErrExpired)
	}
	namespace, _ := c.Namespace()
	if b.callers[c.Caller] >= MaxPendingPerCaller || b.namespaces[namespace] >= MaxPendingPerNamespace {
		return nil, event{}, ErrTooManyPending
	}
	n := 1
	if s := b.series[c.prefix()]; s != nil {
		n = s.last + 1
	}
	name := c.prefix() + strconv.Itoa(n)
	return nil, event{Op: opRaise, At: now, ID: id, Name: name, Call: c}, nil
}

func (b *book) decide(name string, d Decision, now time.Time) (event, error) {
	k := b.byName[name]
	if k == nil {
		return event{}, ErrNotFound
	}
	if err := k.Call.Approvers.Check(k.ID, &k.Call, &d, now); err != nil {
		return event{}, err
	}
	switch {
	case k.State == Expired, k.State == Pending && !k.stands(now):
		return event{}, ErrExpired
	case k.State != Pending:
		return event{}, ErrDecided
	}
	d.At = now
	return event{Op: opDecide, At: now, ID: k.ID, Decision: &d}, nil
}

func (b *book) consume(id string, now time.Time) (event, error) {
	k := b.byID[id]
	switch {
	case k == nil:
		return event{}, ErrNotFound
	case k.State == Consumed:
		return event{}, ErrUsed
	case k.State == Expired, k.State == Approved && !k.stands(now):
		return event{}, ErrExpired
	case k.State != Approved:
		return event{}, ErrNotApproved
	case b.rejection(k.Call.Binding, now) != nil:
		return event{}, ErrRejected
	}
	return event{Op: opConsume, At: now, ID: id}, nil
}

func compareNames(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b) // names differ in length by N alone
	}
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}
