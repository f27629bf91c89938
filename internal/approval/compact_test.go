package approval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/audit/linefile"
)

func openLines(path string, c *clocktesting.FakePassiveClock) (*linefile.File, error) {
	lines, _, err := linefile.Open(path, linefile.Options{MaxTorn: linefile.MaxLine, Now: c.Now})
	return lines, err
}

// mixed is a journal with approvals in every state, and some that have ended long ago.
func mixed(t *testing.T, path string, c *clocktesting.FakePassiveClock) *world {
	t.Helper()
	w := openFile(t, path, c)
	for i := range 6 {
		a := w.raise(call(withTool(fmt.Sprint("old", i))))
		if i%2 == 0 {
			w.decide(a.Name, Approved)
			w.consume(a.ID)
		}
	}
	w.pass(retention + ttl)
	for i := range 8 {
		a := w.raise(call(withTool(fmt.Sprint(i)), until(w.clock.Now())))
		if i%4 != 0 {
			w.decide(a.Name, map[bool]State{true: Approved, false: Rejected}[i%4 != 3])
		}
		if i%4 == 2 {
			w.consume(a.ID)
		}
	}
	w.raise(call(withTool("short"), until(w.clock.Now()), func(c *Call) { c.ExpiresAt = w.clock.Now().Add(time.Second) }))
	w.pass(time.Second)
	return w
}

var sameBook = cmp.Options{
	cmp.AllowUnexported(book{}, kept{}, series{}), cmpopts.IgnoreFields(book{}, "next", "forgotten"), cmpopts.EquateEmpty(),
	cmpopts.SortSlices(func(a, b *kept) bool { return a.ID < b.ID }), cmpopts.SortSlices(func(a, b Raise) bool { return a.ID < b.ID }),
}

func TestCompactionKeepsWhatCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "approvals")
	c := clocktesting.NewFakePassiveClock(noon)
	w := mixed(t, path, c)
	before, want := w.file().lines.Size(), w.all()
	if err := w.file().Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := w.file().lines.Size()
	if after >= before*3/4 {
		t.Errorf("%d bytes of %d are left", after, before)
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), "old") {
		t.Errorf("the arguments of calls that ended long ago are still there: %v", err)
	}
	if diff := cmp.Diff(want, w.all()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	book := w.file().book
	w.raise(call(withTool("more"), until(w.clock.Now()))) // the journal goes on
	w.close()
	w = openFile(t, path, c)
	if diff := cmp.Diff(book, w.file().book, sameBook); diff != "" {
		t.Errorf("(-before +after a restart):\n%s", diff)
	}
	if got := w.file().Ignored(); len(got) != 0 {
		t.Errorf("ignored %+v", got)
	}
	w.close()
}

func (w *world) all() []Approval {
	w.Helper()
	all, err := w.List(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return all
}

// Whatever moment of a compaction a crash picks, the journal opens and says the same.
func TestCompactionSurvivesACrashAtEachStep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "approvals")
	c := clocktesting.NewFakePassiveClock(noon)
	w := mixed(t, path, c)
	w.file().hasForeign = true // so that the old journal is kept, too
	want := w.all()
	crashes := map[string]string{}
	w.file().step = func(step string) {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(filepath.Dir(path))); err != nil {
			t.Error(err)
		}
		crashes[step] = filepath.Join(dir, "approvals")
	}
	if err := w.file().Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.close()
	for _, step := range []string{"opened", "filled", "written", "kept", "renamed", "durable"} {
		if crashes[step] == "" {
			t.Fatalf("a compaction has no step %q", step)
		}
	}
	for step, path := range crashes {
		t.Run(step, func(t *testing.T) {
			w := openFile(t, path, c)
			if diff := cmp.Diff(want, w.all()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			w.raise(call(withTool("more"), until(w.clock.Now())))
			w.close()
			if _, err := os.Stat(leftover(path)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("what the compaction had begun is still there: %v", err)
			}
		})
	}
}

// A compaction that was torn anywhere in its file leaves the old journal.
func TestATornCompactionIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "approvals")
	c := clocktesting.NewFakePassiveClock(noon)
	w := mixed(t, path, c)
	want := w.all()
	w.close()
	for _, torn := range []string{"", "{", `{"v":2,"seal":"x","event":{}}` + "\n", "x\ny\n"} {
		if err := os.WriteFile(leftover(path), []byte(torn), 0o600); err != nil {
			t.Fatal(err)
		}
		w := openFile(t, path, c)
		if diff := cmp.Diff(want, w.all()); diff != "" {
			t.Errorf("%q: (-want +got):\n%s", torn, diff)
		}
		w.close()
	}
}

func TestACompactionThatCannotBeWrittenChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "approvals")
	c := clocktesting.NewFakePassiveClock(noon)
	w := mixed(t, path, c)
	want := w.all()
	blocked := filepath.Join(leftover(path), "x")
	if err := os.MkdirAll(blocked, 0o700); err != nil { // in the way
		t.Fatal(err)
	}
	if err := w.file().Tidy(t.Context()); err == nil {
		t.Fatal("compacted")
	}
	if diff := cmp.Diff(want, w.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	a := w.raise(call(withTool("more"), until(w.clock.Now())))
	if err := os.RemoveAll(leftover(path)); err != nil {
		t.Fatal(err)
	}
	if err := w.file().Tidy(t.Context()); err != nil {
		t.Errorf("later: %v", err)
	}
	w.wantState(a.Name, Pending)
	w.close()
}

// Changes tidy up behind themselves, so that a journal does not grow with what has passed through it.
func TestAJournalDoesNotGrowForever(t *testing.T) {
	path := filepath.Join(t.TempDir(), "approvals")
	c := clocktesting.NewFakePassiveClock(noon)
	w := openFile(t, path, c)
	most := 0
	for i := range 260 {
		a := w.raise(call(withTool(fmt.Sprint(i%5)), until(w.clock.Now())))
		w.decide(a.Name, Rejected)
		w.pass(ttl)
		most = max(most, w.file().count)
	}
	if most > 2*minWaste {
		t.Errorf("the journal had %d lines at most", most)
	}
	w.close()
	w = openFile(t, path, c)
	if n, raised := w.file().count, int(RaisesKept/ttl); n > raised+40 { // one short line for each of a day
		t.Errorf("%d lines after a restart, want at most %d", n, raised+40)
	}
	w.close()
}

// Who only looks does not wait for another's disk.
func TestFindDoesNotWaitForTheDisk(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	w := openFile(t, filepath.Join(t.TempDir(), "approvals"), c)
	a, b := w.raise(call()), w.raise(call(withTool("other")))
	w.decide(a.Name, Approved)
	sound := w.file().journal
	writing, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error)
	w.file().journal = func(e ...event) error {
		close(writing)
		<-goOn
		return sound(e...)
	}
	go func() { done <- w.Consume(context.WithoutCancel(t.Context()), a.ID) }()
	<-writing
	w.wantFound(call().Binding, a.Name)
	w.pass(ttl) // while the disk takes its time, so does the clock
	w.wantFound(call().Binding)
	w.wantFound(call(withTool("other")).Binding)
	w.wantState(b.Name, Expired)
	w.pass(-ttl)
	w.wantState(b.Name, Expired)
	close(goOn)
	if err := <-done; err != nil {
		t.Errorf("Consume: %v", err)
	}
	w.file().journal = sound
	w.wantState(a.Name, Consumed)
	book := w.file().book
	path := w.file().path
	w.close()
	w = openFile(t, path, c)
	if diff := cmp.Diff(book, w.file().book, sameBook); diff != "" {
		t.Errorf("what happened meanwhile is written in another order (-before +after):\n%s", diff)
	}
	w.close()
}
