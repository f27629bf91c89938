package gate

import "sync"

// slots bound how many calls are judged at once. One namespace gets at most half of them, so that a runaway agent cannot
// keep everybody else from the gate.
type slots struct {
	mu    sync.Mutex
	max   int
	used  int
	share map[string]int // by namespace; only those with calls in flight
}

func newSlots(n int) *slots { return &slots{max: n, share: map[string]int{}} }

// take takes a slot at once, or says that there is none.
func (s *slots) take(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used >= s.max || s.share[namespace] >= (s.max+1)/2 {
		return false
	}
	s.used++
	s.share[namespace]++
	return true
}

func (s *slots) give(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	if s.share[namespace]--; s.share[namespace] == 0 {
		delete(s.share, namespace)
	}
}

// inUse is how many calls are being judged.
func (s *slots) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}
