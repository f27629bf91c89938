package approval

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clocktesting "k8s.io/utils/clock/testing"
)

func (w *world) raised(since time.Time) []Raise {
	w.Helper()
	all, err := w.file().Raised(w.Context(), call().Caller, since)
	if err != nil {
		w.Fatal(err)
	}
	return all
}

var anyOrder = cmpopts.SortSlices(func(a, b Raise) bool { return a.ID < b.ID })

func TestWhatACallerHasCausedOutlastsItsApprovals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "approvals")
	c := clocktesting.NewFakePassiveClock(noon)
	w := openFile(t, path, c)
	var want []Raise
	for i := range 4 {
		a := w.raise(call(withTool(fmt.Sprint(i)), until(c.Now()), func(c *Call) { c.RaisedAt = w.clock.Now() }))
		want = append(want, Raise{a.ID, c.Now()})
		if i == 0 {
			w.decide(a.Name, Approved)
			w.consume(a.ID)
		}
		c.SetTime(c.Now().Add(3 * time.Hour))
	}
	for range 2 { // the second time from a journal that was compacted
		if err := w.file().Tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(w.all()); n != 0 {
			t.Fatalf("%d approvals are still there", n)
		}
		if diff := cmp.Diff(want, w.raised(noon.Add(-1)), anyOrder); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want[1:], w.raised(noon), anyOrder); diff != "" {
			t.Errorf("since the first (-want +got):\n%s", diff)
		}
		if other, err := w.file().Raised(t.Context(), "default/another", time.Time{}); err != nil || len(other) != 0 {
			t.Errorf("of another caller: %v %v", other, err)
		}
		w.close()
		w = openFile(t, path, c)
	}
	c.SetTime(noon.Add(RaisesKept + 3*time.Hour))
	w.raise(call(withTool("last"), until(c.Now()), func(c *Call) { c.RaisedAt = w.clock.Now() }))
	c.SetTime(c.Now().Add(ttl + retention))
	if err := w.file().Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.raised(time.Time{})); n != 3 {
		t.Errorf("%d are remembered, want 3: the first two are older than any window", n)
	}
	w.close()
}

// A journal holds the raises of a day: what each of them takes must not grow with how many there are.
func TestManyRaisesOfOneCallerAreNotedInNoTime(t *testing.T) {
	b := newBook()
	const many = 200_000 // looked through for each, they would take minutes
	began := time.Now()
	for i := range many {
		for range 2 {
			b.noteRaise("shop/agent", Raise{fmt.Sprint(i), noon})
		}
	}
	if n := len(b.raises["shop/agent"]); n != many {
		t.Errorf("%d are noted, want %d", n, many)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestCountsThatNoBookLeadsToAreRefused(t *testing.T) {
	raised := event{Op: opRaise, At: noon, ID: "a", Call: new(call())}
	raised.Name = raised.Call.prefix() + "1"
	for name, e := range map[string]event{
		"of nobody":           {Op: opCount, At: noon, ID: "b"},
		"without an id":       {Op: opCount, At: noon, Caller: "default/agent"},
		"of what is there":    {Op: opCount, At: noon, ID: "a", Caller: "default/agent"},
		"of no caller's name": {Op: opCount, At: noon, ID: "b", Caller: "a/b/c"},
	} {
		b := newBook()
		if err := b.apply(raised); err != nil {
			t.Fatal(err)
		}
		if err := b.apply(e); err == nil {
			t.Errorf("a count %s is taken", name)
		}
	}
}
