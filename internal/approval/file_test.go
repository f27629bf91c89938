package approval

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/audit/linefile"
)

func openFile(t *testing.T, path string, c *clocktesting.FakePassiveClock) *world {
	t.Helper()
	f, err := OpenFile(path, c, testSeals)
	if err != nil {
		t.Fatal(err)
	}
	return &world{T: t, Store: f, clock: c}
}

func (w *world) file() *File { return w.Store.(*File) }

func (w *world) close() {
	w.Helper()
	if err := w.file().Close(); err != nil {
		w.Fatal(err)
	}
}

func TestFileKeepsAnotherProcessOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "approvals")
	c := clocktesting.NewFakePassiveClock(noon)
	w := openFile(t, path, c)
	if _, err := OpenFile(path, c, testSeals); !errors.Is(err, linefile.ErrLocked) {
		t.Errorf("second OpenFile: %v, want ErrLocked", err)
	}
	w.close()
	openFile(t, path, c).close()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

// Whatever part of the last event a crash leaves, the journal opens, and says
// what it said before that event or after it.
func TestFileOpensWithATornEvent(t *testing.T) {
	dir := t.TempDir()
	c := clocktesting.NewFakePassiveClock(noon)
	w := openFile(t, filepath.Join(dir, "whole"), c)
	a := w.raise(call())
	w.decide(a.Name, Approved)
	before := w.file().size()
	w.consume(a.ID)
	w.close()
	whole, err := os.ReadFile(filepath.Join(dir, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	for n := before; n <= len(whole); n = min(n+9, len(whole)) {
		path := filepath.Join(dir, fmt.Sprint(n))
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		w := openFile(t, path, c)
		want := Approved
		if n == len(whole) {
			want = Consumed
		}
		w.wantState(a.Name, want)
		if want == Approved {
			w.consume(a.ID) // the journal goes on behind what was cut off
		}
		w.wantErr(w.Consume(t.Context(), a.ID), ErrUsed)
		w.close()
		w = openFile(t, path, c)
		w.wantState(a.Name, Consumed)
		w.close()
		if n == len(whole) {
			break
		}
	}
}

func (f *File) size() int {
	n := 0
	if err := f.lines.Lines(func(line []byte) error { n += len(line) + 1; return nil }); err != nil {
		panic(err)
	}
	return n
}

func TestNothingHappensThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "approvals")
	c := clocktesting.NewFakePassiveClock(noon)
	w := openFile(t, path, c)
	pending, approved := w.raise(call()), w.raise(call(withTool("other")))
	w.decide(approved.Name, Approved)
	sound := w.file().journal
	w.file().journal = func(...event) error { return fmt.Errorf("%w: %w", ErrUnavailable, syscall.ENOSPC) }

	_, err := w.Raise(t.Context(), call(withTool("third")))
	w.wantErr(err, ErrUnavailable)
	w.wantErr(w.Decide(t.Context(), pending.Name, Decision{Outcome: Approved, By: kim}), ErrUnavailable)
	w.wantErr(w.Consume(t.Context(), approved.ID), ErrUnavailable)
	w.wantState(pending.Name, Pending)
	w.wantState(approved.Name, Approved)
	w.wantFound(call(withTool("third")).Binding)

	w.file().journal = sound
	w.consume(approved.ID)
	w.decide(pending.Name, Approved)
	w.close()
	w = openFile(t, path, c)
	w.wantState(pending.Name, Approved)
	w.wantState(approved.Name, Consumed)
	w.close()
}

func TestExpiryHoldsWhileTheJournalFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "approvals")
	c := clocktesting.NewFakePassiveClock(noon)
	w := openFile(t, path, c)
	a := w.raise(call())
	w.decide(a.Name, Approved)
	sound := w.file().journal
	w.file().journal = func(...event) error { return ErrUnavailable }
	w.pass(ttl)
	w.wantErr(w.Consume(t.Context(), a.ID), ErrExpired)
	w.file().journal = sound
	w.pass(-ttl)
	w.wantState(a.Name, Expired)
	w.close() // writes what could not be written
	w = openFile(t, path, c)
	w.wantState(a.Name, Expired)
	w.wantErr(w.Consume(t.Context(), a.ID), ErrExpired)
	w.close()
}

func TestAClosedFile(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	w := openFile(t, filepath.Join(t.TempDir(), "approvals"), c)
	a := w.raise(call())
	w.decide(a.Name, Approved)
	w.close()
	w.wantErr(w.Consume(t.Context(), a.ID), ErrUnavailable)
	_, err := w.Raise(t.Context(), call(withTool("other")))
	w.wantErr(err, ErrUnavailable)
}

// The disk takes so long that the approval expires while its use is written.
func TestAUseThatTookTooLongIsNone(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	w := openFile(t, filepath.Join(t.TempDir(), "approvals"), c)
	defer w.close()
	a := w.raise(call())
	w.decide(a.Name, Approved)
	sound := w.file().journal
	w.file().journal = func(e ...event) error { w.pass(ttl); return sound(e...) }
	w.wantErr(w.Consume(t.Context(), a.ID), ErrExpired)
	w.file().journal = sound
	w.wantErr(w.Consume(t.Context(), a.ID), ErrUsed)
}

func TestReplayGivesTheSameBook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "approvals")
	c := clocktesting.NewFakePassiveClock(noon)
	w := openFile(t, path, c)
	for i := range 30 {
		a := w.raise(call(withTool(fmt.Sprint(i%7)), until(w.clock.Now())))
		if a.State == Pending && i%2 == 0 {
			w.decide(a.Name, map[bool]State{true: Approved, false: Rejected}[i%3 == 0])
		}
		w.pass(ttl / 5)
	}
	if _, err := w.List(t.Context()); err != nil { // lets time do its work
		t.Fatal(err)
	}
	want := w.file().book
	w.close()
	w = openFile(t, path, c)
	defer w.close()
	// next is only a bound: it may be early, and then the next look sets it. What was forgotten has left the journal too.
	opts := cmp.Options{cmp.AllowUnexported(book{}, kept{}, series{}), cmpopts.IgnoreFields(book{}, "next", "forgotten")}
	if diff := cmp.Diff(want, w.file().book, opts); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}
