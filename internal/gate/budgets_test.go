package gate

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/policy"
)

// budgetOfTests is how many confirmations a caller may cause by the policy of the tests, in a minute.
const budgetOfTests = 3

// deletes is a call that needs a person, one like no other.
func (f *fixture) deletes(i int) *review.Request {
	return f.call("item.delete", func(r *review.Request) { r.Arguments["id"] = strconv.Itoa(i) })
}

// withWindow gives the budget another length.
func (f *fixture) withWindow(t *testing.T, seconds int) {
	t.Helper()
	f.load(t, strings.Replace(testPolicy, "windowSeconds: 60", "windowSeconds: "+strconv.Itoa(seconds), 1))
}

func TestARestartGivesNobodyANewBudget(t *testing.T) {
	for name, tc := range map[string]struct {
		window int // in seconds
		every  time.Duration
	}{
		"a short window":                        {60, 10 * time.Second},
		"a window as long as windows can be":    {86400, 7 * time.Hour},
		"one that holds what is long forgotten": {86400, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			path := filepath.Join(t.TempDir(), "approvals")
			seals, err := approval.OpenSeals("", f.clock)
			if err != nil {
				t.Fatal(err)
			}
			f.gate.options.Seals = seals
			f.withWindow(t, tc.window)
			// run starts the gate, lets it answer one call, and ends it.
			run := func(i int, outcome review.Outcome, reason policy.Reason) {
				t.Helper()
				store, err := approval.OpenFile(path, f.clock, seals)
				if err != nil {
					t.Fatal(err)
				}
				f.gate.options.Approvals, f.gate.budgets = store, newBudgets()
				f.want(t, f.deletes(i), outcome, reason)
				if err := errors.Join(store.Tidy(t.Context()), store.Close()); err != nil {
					t.Fatal(err)
				}
			}
			begin := f.clock.Now()
			for i := range budgetOfTests {
				run(i, review.Confirm, policy.ReasonIrreversible)
				f.clock.SetTime(f.clock.Now().Add(tc.every))
			}
			run(8, review.Block, ReasonConfirmationBudget)
			end := begin.Add(time.Duration(tc.window) * time.Second)
			f.clock.SetTime(end.Add(-1))
			run(8, review.Block, ReasonConfirmationBudget)
			f.clock.SetTime(end)
			run(8, review.Confirm, policy.ReasonIrreversible)
			run(9, review.Block, ReasonConfirmationBudget)
		})
	}
}

func TestGatesThatShareAStoreShareABudget(t *testing.T) {
	one, two := newFixture(t), newFixture(t)
	two.gate.options.Approvals, two.gate.options.Seals = one.approvals, one.gate.options.Seals
	gates := []*fixture{one, two}
	for i := range budgetOfTests {
		gates[i%2].want(t, gates[i%2].deletes(i), review.Confirm, policy.ReasonIrreversible)
	}
	for _, f := range gates {
		f.want(t, f.deletes(8), review.Block, ReasonConfirmationBudget)
		f.want(t, f.deletes(0), review.Confirm, ReasonApprovalPending) // what waits costs nothing
	}
}

func TestWindowsOfOtherLengthsCountTheSame(t *testing.T) {
	f := newFixture(t)
	f.withWindow(t, 86400)
	for i := range budgetOfTests {
		f.want(t, f.deletes(i), review.Confirm, policy.ReasonIrreversible)
	}
	f.clock.SetTime(f.clock.Now().Add(2 * time.Minute))
	f.withWindow(t, 60)
	f.want(t, f.deletes(5), review.Confirm, policy.ReasonIrreversible)
	f.withWindow(t, 86400)
	f.want(t, f.deletes(6), review.Block, ReasonConfirmationBudget)
}

// ledger is a store whose memory of raises fails as scripted.
type ledger struct {
	*approval.Memory
	raised, keep error
	kept         []approval.Raise
}

func (l *ledger) Raised(ctx context.Context, caller string, since time.Time) ([]approval.Raise, error) {
	if l.raised != nil {
		return nil, l.raised
	}
	return l.Memory.Raised(ctx, caller, since)
}

func (l *ledger) KeepRaise(_ context.Context, _ string, r approval.Raise, _ time.Time) error {
	l.kept = append(l.kept, r)
	return l.keep
}

func TestABudgetThatCannotBeCountedBlocks(t *testing.T) {
	f := newFixture(t)
	store := &ledger{Memory: f.approvals, raised: errors.New("away")}
	f.gate.options.Approvals = store
	f.want(t, f.deletes(1), review.Block, ReasonApprovalUnavailable)
	store.raised = nil
	f.want(t, f.deletes(1), review.Confirm, policy.ReasonIrreversible)
}

func TestOnlyLongWindowsAreKeptApartFromTheirApprovals(t *testing.T) {
	f := newFixture(t)
	store := &ledger{Memory: f.approvals, keep: errors.New("away")}
	f.gate.options.Approvals = store
	f.want(t, f.deletes(1), review.Confirm, policy.ReasonIrreversible)
	f.withWindow(t, 3600)
	f.want(t, f.deletes(2), review.Confirm, policy.ReasonIrreversible)
	if len(store.kept) != 0 {
		t.Errorf("kept %v, and the approvals themselves last as long", store.kept)
	}
	f.withWindow(t, 3601)
	f.want(t, f.deletes(3), review.Confirm, policy.ReasonIrreversible) // although it cannot be kept
	if len(store.kept) != 1 {
		t.Errorf("kept %v, want one", store.kept)
	}
}
