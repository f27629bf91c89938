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
	// series counts the names of each prefix as long as any of them is kept.
	series map[string]*series
	// pending calls by caller and by namespace.
	callers, namespaces map[string]int
	// next moment at which something expires or can be forgotten.
	next time.Time
}

type kept struct {
	Approval
	key, digest, prefix string
}

type series struct{ last, kept int }

func newBook() *book {
	return &book{
		byID: map[string]*kept{}, byName: map[string]*kept{}, byKey: map[string][]*kept{},
		series: map[string]*series{}, callers: map[string]int{}, namespaces: map[string]int{},
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
)

// event is one change. The events of a book, applied in order, give the book.
type event struct {
	V        int       `json:"v"`
	Op       op        `json:"op"`
	At       time.Time `json:"at"`
	ID       string    `json:"id"`
	Name     string    `json:"name,omitempty"`
	Call     *Call     `json:"call,omitempty"`
	Decision *Decision `json:"decision,omitempty"`
}

// live says whether an approval still stands for its binding.
func (k *kept) live() bool { return k.State == Pending || k.State == Approved || k.State == Rejected }

// due gives what time has done since the last event.
func (b *book) due(now time.Time) []event {
	if b.next.IsZero() || now.Before(b.next) {
		return nil
	}
	var events []event
	b.next = time.Time{}
	for _, id := range slices.Sorted(maps.Keys(b.byID)) {
		k := b.byID[id]
		switch {
		case k.live() && !now.Before(k.Call.ExpiresAt):
			events = append(events, event{V: 1, Op: opExpire, At: now, ID: id})
			b.lookAt(k.Call.ExpiresAt.Add(retention))
		case !k.live() && !now.Before(k.Call.ExpiresAt.Add(retention)):
			events = append(events, event{V: 1, Op: opForget, At: now, ID: id})
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
	return k.Call.ExpiresAt.Add(retention)
}

func (b *book) lookAt(t time.Time) {
	if b.next.IsZero() || t.Before(b.next) {
		b.next = t
	}
}

// find gives what stands for a key, sorted by name.
func (b *book) find(key string) []*kept {
	var found []*kept
	for _, k := range b.byKey[key] {
		if k.live() {
			found = append(found, k)
		}
	}
	slices.SortFunc(found, func(x, y *kept) int { return compareNames(x.Name, y.Name) })
	return found
}

// raise gives what stands for this very binding, or the event that makes it.
func (b *book) raise(c *Call, id string, now time.Time) (*kept, event, error) {
	digest := c.Digest()
	for _, k := range b.byKey[c.Key()] {
		if k.live() && k.digest == digest {
			return k, event{}, nil
		}
	}
	if !now.Before(c.ExpiresAt) {
		return nil, event{}, fmt.Errorf("%w: before it was raised", ErrExpired)
	}
	namespace, _ := c.namespace()
	if b.callers[c.Caller] >= MaxPendingPerCaller || b.namespaces[namespace] >= MaxPendingPerNamespace {
		return nil, event{}, ErrTooManyPending
	}
	n := 1
	if s := b.series[c.prefix()]; s != nil {
		n = s.last + 1
	}
	name := c.prefix() + strconv.Itoa(n)
	return nil, event{V: 1, Op: opRaise, At: now, ID: id, Name: name, Call: c}, nil
}

func (b *book) decide(name string, d Decision, now time.Time) (event, error) {
	k := b.byName[name]
	switch {
	case k == nil:
		return event{}, ErrNotFound
	case d.By == "" || (d.Outcome != Approved && d.Outcome != Rejected):
		return event{}, ErrBadDecision
	case len(d.Message) > MaxMessage || len(d.By) > MaxMessage:
		return event{}, ErrTooLarge
	case k.Call.isCaller(d.By):
		return event{}, ErrSelfApproval
	case k.State == Expired, k.State == Pending && !now.Before(k.Call.ExpiresAt):
		return event{}, ErrExpired
	case k.State != Pending:
		return event{}, ErrDecided
	}
	d.At = now
	return event{V: 1, Op: opDecide, At: now, ID: k.ID, Decision: &d}, nil
}

func (b *book) consume(id string, now time.Time) (event, error) {
	k := b.byID[id]
	switch {
	case k == nil:
		return event{}, ErrNotFound
	case k.State == Consumed:
		return event{}, ErrUsed
	case k.State == Expired, k.State == Approved && !now.Before(k.Call.ExpiresAt):
		return event{}, ErrExpired
	case k.State != Approved:
		return event{}, ErrNotApproved
	}
	return event{V: 1, Op: opConsume, At: now, ID: id}, nil
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
