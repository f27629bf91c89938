package gate

import (
	"sync"
	"time"

	"gatewright.dev/gatewright/internal/policy"
)

// budgets counts the confirmations that callers cause.
type budgets struct {
	mu     sync.Mutex
	spent  map[policy.Caller]*window
	lastGC time.Time
}

type window struct {
	began time.Time
	keys  map[string]bool
}

func newBudgets() *budgets { return &budgets{spent: map[policy.Caller]*window{}} }

// spend takes one confirmation from the caller's budget. The same call asked again is the same confirmation.
func (b *budgets) spend(d *decision) bool {
	budget := d.terms.Approvals.Budget
	if budget == nil {
		return true
	}
	length, now := time.Duration(budget.WindowSeconds)*time.Second, d.in.request.Now
	key := d.binding().Digest()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.collect(now)
	w := b.spent[d.in.caller]
	if w == nil || now.Sub(w.began) >= length {
		w = &window{began: now, keys: map[string]bool{}}
		b.spent[d.in.caller] = w
	}
	if !w.keys[key] && len(w.keys) >= int(budget.Confirmations) {
		return false
	}
	w.keys[key] = true
	return true
}

// collect forgets windows that no policy can still look at: none is longer than a day.
func (b *budgets) collect(now time.Time) {
	if now.Sub(b.lastGC) < time.Minute {
		return
	}
	b.lastGC = now
	for caller, w := range b.spent {
		if now.Sub(w.began) > 24*time.Hour {
			delete(b.spent, caller)
		}
	}
}
