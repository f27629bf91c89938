// Package shares bounds what is in progress at once, and gives nobody more than half of it.
package shares

import "sync"

// Shares are places that are taken and given back. One holder gets at most half of them, so that a single one that is slow
// or in a loop keeps nobody else out. Its methods may be called concurrently.
type Shares struct {
	mu    sync.Mutex
	max   int
	used  int
	share map[string]int // by holder; only those with places
}

// New makes n places. Of a single one the first holder gets it.
func New(n int) *Shares { return &Shares{max: n, share: map[string]int{}} }

// Take takes a place at once, or says that there is none for this holder.
func (s *Shares) Take(holder string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used >= s.max || s.share[holder] >= (s.max+1)/2 {
		return false
	}
	s.used++
	s.share[holder]++
	return true
}

// Give gives a place back that the holder has taken.
func (s *Shares) Give(holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	if s.share[holder]--; s.share[holder] == 0 {
		delete(s.share, holder)
	}
}

// InUse is how many places are taken.
func (s *Shares) InUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}
