package gate

import (
	"sync"
	"time"

	"gatewright.dev/gatewright/internal/policy"
)

// budgets counts the confirmations that callers cause. An approval that calls share counts once; the next one for the
// same call counts again, because a person is asked again.
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

// window holds when approvals were raised, by their ID. It moves with the time: at no moment have there been more within
// its length than the budget allows.
type window struct {
	raised map[string]time.Time
	// reserved are those that are about to be raised.
	reserved int
}

func newBudgets() *budgets { return &budgets{spent: map[budgetKey]*window{}} }

// reserve takes one confirmation from the caller's budget. Not ok: there is none left. Settle says afterwards which
// approval was raised; an empty ID gives the confirmation back.
func (b *budgets) reserve(d *decision) (settle func(id string), ok bool) {
	budget := d.terms.Approvals.Budget
	if budget == nil {
		return func(string) {}, true
	}
	key, now := budgetKey{d.in.caller, time.Duration(budget.WindowSeconds) * time.Second}, d.in.request.Now
	b.mu.Lock()
	defer b.mu.Unlock()
	b.collect(now)
	w := b.spent[key]
	if w == nil {
		w = &window{raised: map[string]time.Time{}}
		b.spent[key] = w
	}
	w.move(now, key.length)
	if len(w.raised)+w.reserved >= int(budget.Confirmations) {
		return nil, false
	}
	w.reserved++
	return func(id string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		w.reserved--
		if _, isKnown := w.raised[id]; id != "" && !isKnown {
			w.raised[id] = now
		}
	}, true
}

// move drops what has left the window.
func (w *window) move(now time.Time, length time.Duration) {
	for id, at := range w.raised {
		if now.Sub(at) >= length {
			delete(w.raised, id)
		}
	}
}

// collect forgets windows that are empty.
func (b *budgets) collect(now time.Time) {
	if now.Sub(b.lastGC) < time.Minute {
		return
	}
	b.lastGC = now
	for key, w := range b.spent {
		if w.move(now, key.length); len(w.raised)+w.reserved == 0 {
			delete(b.spent, key)
		}
	}
}
