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

// A policy with a budget that does not know the tool still says how often its callers may ask people: and so what every tool
// has caused is kept for as long as its window is.
func TestABudgetCountsCallsOfToolsThatItsPolicyDoesNotKnow(t *testing.T) {
	const floor = `
metadata: {name: floor, namespace: shop}
spec:
  unknownTools: Defer
  approvals: {budget: {confirmations: 2, windowSeconds: 86400}}
  tools:
  - {name: mail.send, class: External}
`
	f := newFixture(t)
	store := &ledger{Memory: f.approvals}
	f.gate.options.Approvals = store
	f.load(t, strings.Replace(testPolicy, ", budget: {confirmations: 3, windowSeconds: 60}", "", 1), floor)
	for i := range 2 {
		f.want(t, f.deletes(i), review.Confirm, policy.ReasonIrreversible)
	}
	if len(store.kept) != 2 {
		t.Errorf("%d are kept beyond their approvals, want 2", len(store.kept))
	}
	f.clock.SetTime(f.clock.Now().Add(12 * time.Hour))
	f.want(t, f.deletes(3), review.Block, ReasonConfirmationBudget)
}

func TestOverTheBudgetTheCallerIsToldUntilWhen(t *testing.T) {
	for name, tc := range map[string]struct {
		confirmations int
		// raise are the seconds at which confirmations are caused by a budget that is wider, or 0
		raise []int
		at    int
		want  string
	}{
		"the oldest leaves first":             {3, []int{0, 10, 20}, 30, "12:01:01Z"},
		"of more than fit, as many must go":   {1, []int{0, 10, 20}, 30, "12:01:21Z"},
		"what has left the window is no more": {2, []int{0, 50, 55}, 65, "12:01:51Z"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			begin := f.clock.Now()
			for i, s := range tc.raise {
				f.clock.SetTime(begin.Add(time.Duration(s) * time.Second))
				f.want(t, f.deletes(i), review.Confirm, policy.ReasonIrreversible)
			}
			f.load(t, strings.Replace(testPolicy, "confirmations: 3", "confirmations: "+strconv.Itoa(tc.confirmations), 1))
			f.clock.SetTime(begin.Add(time.Duration(tc.at) * time.Second))
			got := f.want(t, f.deletes(9), review.Block, ReasonConfirmationBudget)
			if want := "allow until 2026-10-01T" + tc.want + ": do not ask for more before"; !strings.HasSuffix(got.Message, want) {
				t.Errorf("%q, want it to end in %q", got.Message, want)
			}
			until, _ := time.Parse(time.RFC3339, "2026-10-01T"+tc.want)
			f.clock.SetTime(until)
			f.want(t, f.deletes(9), review.Confirm, policy.ReasonIrreversible)
		})
	}
}

func TestWhatIsAboutToBeRaisedNamesNoTime(t *testing.T) {
	b := newBudgets()
	caller := policy.Caller{Namespace: "shop", ServiceAccount: "agent"}
	settle := func(id string) {
		t.Helper()
		s, err := b.take(caller, nil, noon, time.Minute, 1)
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.take(caller, nil, noon, time.Minute, 1)
		over, ok := errors.AsType[*overBudgetError](err)
		if !ok || !over.until.IsZero() {
			t.Errorf("beside one that is being raised: %v, %+v", err, over)
		}
		b.settle(s, id, noon)
	}
	settle("")
	settle("a")
	_, err := b.take(caller, nil, noon.Add(time.Second), time.Minute, 1)
	if over, ok := errors.AsType[*overBudgetError](err); !ok || !over.until.Equal(noon.Add(time.Minute)) {
		t.Errorf("after it was raised: %v", err)
	}
}

// While others of the caller's calls are being put before a person, nobody knows a time: the message names none.
func TestAMessageWithoutATimeIsASentence(t *testing.T) {
	f := newFixture(t)
	caller := policy.Caller{Namespace: "shop", ServiceAccount: "agent"}
	for range budgetOfTests {
		if _, err := f.gate.budgets.take(caller, nil, f.clock.Now(), time.Minute, budgetOfTests); err != nil {
			t.Fatal(err)
		}
	}
	got := f.want(t, f.deletes(1), review.Block, ReasonConfirmationBudget)
	if want := "as its policies allow for now: do not ask for more"; !strings.HasSuffix(got.Message, want) {
		t.Errorf("%q, want it to end in %q", got.Message, want)
	}
}
