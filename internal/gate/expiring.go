package gate

import (
	"cmp"
	"container/heap"
	"container/list"
	"strings"
	"time"
)

// owned is a key that says whose it is, as NAMESPACE/NAME of a caller.
type owned interface {
	comparable
	owner() string
}

// expiring is a map whose entries end, of a bounded size. When it is full, the namespace with the most entries makes room,
// of its callers the one with the most, by its oldest. So whoever fills it pushes out entries of their own, and a caller
// loses none while neither it nor its namespace has more than others. It is not safe for concurrent use.
type expiring[K owned, V any] struct {
	max     int
	ttl     time.Duration
	entries map[K]*expiringEntry[V]
	// byEnd are all keys, those that end first in front.
	byEnd *list.List
	// owners are the namespaces, by how much they have.
	owners owners
}

type expiringEntry[V any] struct {
	value V
	until time.Time
	// inAll and inOwn are its places among all keys and among those of its caller.
	inAll, inOwn *list.Element
}

func newExpiring[K owned, V any](maxEntries int, ttl time.Duration) *expiring[K, V] {
	return &expiring[K, V]{max: maxEntries, ttl: ttl, entries: map[K]*expiringEntry[V]{}, byEnd: list.New()}
}

func (e *expiring[K, V]) size() int { return len(e.entries) }

func (e *expiring[K, V]) get(k K, now time.Time) (V, bool) {
	found, ok := e.entries[k]
	if !ok || !now.Before(found.until) {
		var zero V
		return zero, false
	}
	return found.value, true
}

// has says whether there is an entry, ended or not.
func (e *expiring[K, V]) has(k K) bool {
	_, ok := e.entries[k]
	return ok
}

// put keeps the end of an entry that is there, so that asking again and again does not keep it alive.
func (e *expiring[K, V]) put(k K, v V, now time.Time) {
	if old, ok := e.entries[k]; ok {
		if now.Before(old.until) {
			old.value = v
			return
		}
		e.remove(k)
	}
	for first := e.byEnd.Front(); first != nil; first = e.byEnd.Front() {
		oldest, _ := first.Value.(K)
		if now.Before(e.entries[oldest].until) {
			break
		}
		e.remove(oldest)
	}
	owner := e.owners.of(k.owner())
	e.entries[k] = &expiringEntry[V]{value: v, until: now.Add(e.ttl), inAll: e.byEnd.PushBack(k), inOwn: owner.keys.PushBack(k)}
	e.owners.add(owner, 1)
	if len(e.entries) > e.max {
		oldest, _ := e.owners.most().keys.Front().Value.(K)
		e.remove(oldest)
	}
}

func (e *expiring[K, V]) remove(k K) {
	entry := e.entries[k]
	delete(e.entries, k)
	e.byEnd.Remove(entry.inAll)
	owner := e.owners.of(k.owner())
	owner.keys.Remove(entry.inOwn)
	e.owners.add(owner, -1)
}

// share is what a namespace, or a caller in it, has.
type share struct {
	name  string
	count int
	place int // in the heap it is in
	// callers of a namespace; in is the namespace of a caller, and keys are its own, the oldest in front.
	callers owners
	in      *share
	keys    *list.List
}

// owners finds who has most: a heap by count, and the same by name.
type owners struct {
	byName map[string]*share
	heap   mostFirst
}

// of gives the share of a caller, a new one if it has none. Only add keeps a new one.
func (s *owners) of(caller string) *share {
	namespace, _, _ := strings.Cut(caller, "/")
	in := s.byName[namespace]
	if in == nil {
		in = &share{name: namespace}
	}
	if own := in.callers.byName[caller]; own != nil {
		return own
	}
	return &share{name: caller, in: in, keys: list.New()}
}

// add counts for a caller and for its namespace. Who has nothing is forgotten.
func (s *owners) add(caller *share, n int) {
	caller.in.callers.count(caller, n)
	s.count(caller.in, n)
}

func (s *owners) count(of *share, n int) {
	of.count += n
	switch of.count {
	case n: // it had nothing
		if s.byName == nil {
			s.byName = map[string]*share{}
		}
		s.byName[of.name] = of
		heap.Push(&s.heap, of)
	case 0:
		delete(s.byName, of.name)
		heap.Remove(&s.heap, of.place)
	default:
		heap.Fix(&s.heap, of.place)
	}
}

// most is the caller with the most of the namespace with the most. There has to be one.
func (s *owners) most() *share { return s.heap[0].callers.heap[0] }

// mostFirst is a heap with the largest share at its root; of equal ones that with the first name, so that the same calls in
// the same order leave the same behind.
type mostFirst []*share

func (h mostFirst) Len() int { return len(h) }

func (h mostFirst) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[j].count, h[i].count), cmp.Compare(h[i].name, h[j].name)) < 0
}

func (h mostFirst) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *mostFirst) Push(x any) {
	s, _ := x.(*share)
	s.place = len(*h)
	*h = append(*h, s)
}

// Pop implements heap.Interface.
func (h *mostFirst) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return s
}
