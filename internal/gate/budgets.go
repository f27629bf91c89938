package gate

import (
	"context"
	"slices"
	"sync"
	"time"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/policy"
)

// budgets counts the confirmations that callers cause. An approval that calls share counts once; the next one for the
// same call counts again, because a person is asked again.
//
// What the store of approvals knows is counted too: so a restart gives nobody a new budget, and gates that share a store
// share the budgets. What is only here is what is about to be raised, and what a store has forgotten that is no Ledger.
type budgets struct {
	mu     sync.Mutex
	spent  map[policy.Caller]*spending
	lastGC time.Time
}

// spending holds when approvals of one caller were raised, by their ID.
type spending struct {
	raised map[string]time.Time
	// reserved are those that are about to be raised.
	reserved int
}

// overBudgetError says that a caller may cause no more confirmations for now.
type overBudgetError struct {
	// until is when one leaves the window. Zero: as soon as one comes to nothing that is about to be raised.
	until time.Time
}

func (e *overBudgetError) Error() string { return "no confirmation is left in the budget" }

func newBudgets() *budgets { return &budgets{spent: map[policy.Caller]*spending{}} }

// reserve takes one confirmation from the caller's budget; an overBudgetError: there is none left. Any other error: nobody
// can say. Settle says afterwards which approval was raised; an empty ID gives the confirmation back.
func (b *budgets) reserve(ctx context.Context, d *decision) (settle func(id string), err error) {
	budget := d.terms.Approvals.Budget
	if budget == nil {
		return func(string) {}, nil
	}
	length, now := time.Duration(budget.WindowSeconds)*time.Second, d.in.request.Now
	ledger, _ := d.gate.options.Approvals.(approval.Ledger)
	var known []approval.Raise
	if ledger != nil {
		if known, err = ledger.Raised(ctx, d.in.request.Caller.String(), now.Add(-length)); err != nil {
			return nil, err
		}
	}
	s, err := b.take(d.in.caller, known, now, length, int(budget.Confirmations))
	if err != nil {
		return nil, err
	}
	return func(id string) {
		b.settle(s, id, now)
		if id == "" || ledger == nil || length <= approval.Retention {
			return
		}
		if err := ledger.KeepRaise(ctx, d.in.request.Caller.String(), approval.Raise{ID: id, At: now}, now.Add(length)); err != nil {
			d.gate.options.Log.ErrorContext(ctx, "a confirmation will be missing in its budget after a restart", "decision", d.id, "error", err)
		}
	}, nil
}

// take reserves one confirmation, if fewer than the limit were caused within the length of the window. The window moves
// with the time: at no moment have there been more within it.
func (b *budgets) take(caller policy.Caller, known []approval.Raise, now time.Time, length time.Duration, limit int) (*spending, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.collect(now)
	s := b.spent[caller]
	if s == nil {
		s = &spending{raised: map[string]time.Time{}}
		b.spent[caller] = s
	}
	for _, r := range known {
		if _, isKnown := s.raised[r.ID]; !isKnown {
			s.raised[r.ID] = r.At
		}
	}
	within := s.within(now, length)
	if beyond := len(within) + s.reserved - limit; beyond >= 0 {
		e := &overBudgetError{}
		if beyond < len(within) {
			e.until = within[beyond].Add(length)
		}
		return nil, e
	}
	s.reserved++
	return s, nil
}

// within gives when what counts in a window was raised, the oldest first.
func (s *spending) within(now time.Time, length time.Duration) []time.Time {
	var all []time.Time
	for _, at := range s.raised {
		if now.Sub(at) < length {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

func (b *budgets) settle(s *spending, id string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s.reserved--
	if _, isKnown := s.raised[id]; id != "" && !isKnown {
		s.raised[id] = now
	}
}

// collect forgets what no window holds any more.
func (b *budgets) collect(now time.Time) {
	if now.Sub(b.lastGC) < time.Minute {
		return
	}
	b.lastGC = now
	for caller, s := range b.spent {
		for id, at := range s.raised {
			if now.Sub(at) >= approval.RaisesKept {
				delete(s.raised, id)
			}
		}
		if len(s.raised)+s.reserved == 0 {
			delete(b.spent, caller)
		}
	}
}
