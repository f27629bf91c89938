package server

import "sync"

// places bound how many requests are open at once, those whose bodies are still coming included. One caller gets at most
// half of them, so that slow bodies of one keep nobody else out. Without certificates and tokens an address is a caller.
type places struct {
	mu    sync.Mutex
	max   int
	used  int
	share map[string]int // by caller; only those with open requests
}

func newPlaces(n int) *places { return &places{max: n, share: map[string]int{}} }

// take takes a place at once, or says that there is none.
func (p *places) take(caller string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used >= p.max || p.share[caller] >= (p.max+1)/2 {
		return false
	}
	p.used++
	p.share[caller]++
	return true
}

func (p *places) give(caller string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used--
	if p.share[caller]--; p.share[caller] == 0 {
		delete(p.share, caller)
	}
}

// inUse is how many requests are open.
func (p *places) inUse() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}
