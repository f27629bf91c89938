package gate

import (
	"sync"
	"time"

	"gatewright.dev/gatewright/internal/policy"
)

// budgets counts the confirmations that callers cause.
type budgets struct {
	mu     sync.Mutex
	spent  map[budgetKey]*window
	lastGC time.Time
}

// budgetKey keeps budgets of different windows apart, so that a short one does not start a long one anew.
type budgetKey struct {
	caller policy.Caller
	length time.Duration
}

type window struct {
	began time.Time
	keys  map[string]bool
}

func newBudgets() *budgets { return &budgets{spent: map[budgetKey]*window{}} }

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
	w := b.spent[budgetKey{d.in.caller, length}]
	if w == nil || now.Sub(w.began) >= length {
		w = &window{began: now, keys: map[string]bool{}}
		b.spent[budgetKey{d.in.caller, length}] = w
	}
	if !w.keys[key] && len(w.keys) >= int(budget.Confirmations) {
		return false
	}
	w.keys[key] = true
	return true
}

// collect forgets windows that are over.
func (b *budgets) collect(now time.Time) {
	if now.Sub(b.lastGC) < time.Minute {
		return
	}
	b.lastGC = now
	for key, w := range b.spent {
		if now.Sub(w.began) > key.length {
			delete(b.spent, key)
		}
	}
}
