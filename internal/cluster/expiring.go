package cluster

import (
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// expiring remembers a bounded number of things for a time; the ones that were not asked for the longest make room. It is
// safe for concurrent use.
type expiring[V any] struct {
	cache *lru.Cache
	clock clock.PassiveClock
}

type expiringEntry[V any] struct {
	value V
	until time.Time
}

func newExpiring[V any](size int, c clock.PassiveClock) *expiring[V] {
	return &expiring[V]{lru.New(size), c}
}

// get returns what is remembered under a key and has not ended.
func (e *expiring[V]) get(key any) (V, bool) {
	found, ok := e.cache.Get(key)
	if entry, isEntry := found.(expiringEntry[V]); ok && isEntry && e.clock.Now().Before(entry.until) {
		return entry.value, true
	}
	var zero V
	return zero, false
}

func (e *expiring[V]) put(key any, value V, until time.Time) {
	e.cache.Add(key, expiringEntry[V]{value, until})
}

func (e *expiring[V]) remove(key any) { e.cache.Remove(key) }
