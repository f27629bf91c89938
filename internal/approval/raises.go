package approval

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// RaisesKept is for how long a Ledger knows what a caller has caused: the longest window that a budget has.
const RaisesKept = 24 * time.Hour

// Raise is when a caller has caused that a person is asked, and by which approval.
type Raise struct {
	ID string
	At time.Time
}

// Ledger is a Store by which budgets of confirmations outlast a gate, and are shared by those that share the store.
type Ledger interface {
	// Raised gives the approvals that a caller has caused since a time, in any order. It knows all of the last Retention,
	// whatever has become of them, and for up to RaisesKept those that it was told to keep.
	Raised(ctx context.Context, caller string, since time.Time) ([]Raise, error)
	// KeepRaise makes that Raised gives one until a time, though its approval is forgotten before.
	KeepRaise(ctx context.Context, caller string, r Raise, until time.Time) error
}

var (
	_ Ledger = (*Memory)(nil)
	_ Ledger = (*File)(nil)
)

// Raised implements Ledger. It knows all of RaisesKept.
func (s *store) Raised(ctx context.Context, caller string, since time.Time) (out []Raise, err error) {
	err = s.look(ctx, func(b *book, _ time.Time) {
		for id, at := range b.raises[caller] {
			if at.After(since) {
				out = append(out, Raise{id, at})
			}
		}
	})
	return out, err
}

// KeepRaise implements Ledger. There is nothing to do: all are kept.
func (s *store) KeepRaise(ctx context.Context, _ string, _ Raise, _ time.Time) error {
	return ctx.Err()
}

// noteRaise remembers for RaisesKept what a caller has caused.
func (b *book) noteRaise(caller string, r Raise) {
	all := b.raises[caller]
	if all == nil {
		all = map[string]time.Time{}
		b.raises[caller] = all
	}
	if _, isNoted := all[r.ID]; !isNoted {
		all[r.ID] = r.At
	}
}

// applyCount remembers an approval that counts and of which nothing else is known any more.
func (b *book) applyCount(e event) error {
	_, isNamed := Binding{Caller: e.Caller}.Namespace()
	if e.ID == "" || !isNamed || b.byID[e.ID] != nil {
		return fmt.Errorf("count of what is there, or of nobody")
	}
	b.noteRaise(e.Caller, Raise{e.ID, e.At})
	return nil
}

// forgetRaises drops what no budget counts any more.
func (b *book) forgetRaises(now time.Time) {
	for caller, all := range b.raises {
		maps.DeleteFunc(all, func(_ string, at time.Time) bool { return now.Sub(at) >= RaisesKept })
		if len(all) == 0 {
			delete(b.raises, caller)
		}
	}
}

// counts are the events that lead to raises whose approvals are forgotten, the oldest first.
func (b *book) counts() []event {
	var events []event
	for caller, all := range b.raises {
		for id, at := range all {
			if b.byID[id] == nil {
				events = append(events, event{Op: opCount, At: at, ID: id, Caller: caller})
			}
		}
	}
	slices.SortFunc(events, func(x, y event) int { return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.ID, y.ID)) })
	return events
}
