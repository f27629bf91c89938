package permit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/audit/linefile"
)

const one, two = "0123456789abcdef-one", "0123456789abcdef-two"

// stores are what the suites run against.
var stores = map[string]func(t *testing.T, c clock.PassiveClock) Store{
	"Memory": func(_ *testing.T, c clock.PassiveClock) Store { return NewMemory(c) },
	"File": func(t *testing.T, c clock.PassiveClock) Store {
		return openJournal(t, filepath.Join(t.TempDir(), "permits"), c)
	},
}

func openJournal(t *testing.T, path string, c clock.PassiveClock) *File {
	t.Helper()
	f := must(OpenFile(path, c))(t)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// restarting opens the journal for one use at a time, which shows that a restart between any two changes nothing.
type restarting struct {
	path  string
	clock clock.PassiveClock
}

func (r restarting) Use(ctx context.Context, jti string, until time.Time) error {
	f, err := OpenFile(r.path, r.clock)
	if err != nil {
		return fmt.Errorf("restarting: %w", err)
	}
	return errors.Join(f.Use(ctx, jti, until), f.Close())
}

func TestStore(t *testing.T) {
	all := map[string]func(t *testing.T, c clock.PassiveClock) Store{
		"File opened anew for every use": func(t *testing.T, c clock.PassiveClock) Store {
			return restarting{filepath.Join(t.TempDir(), "permits"), c}
		},
	}
	maps.Copy(all, stores)
	for name, open := range all {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakePassiveClock(noon)
			s := open(t, c)
			until := noon.Add(time.Minute)
			for _, step := range []struct {
				name  string
				at    time.Duration
				id    string
				until time.Time
				want  error
			}{
				{"a first use", 0, one, until, nil},
				{"a second use", 0, one, until, ErrUsed},
				{"a second use that would be kept for longer", 0, one, until.Add(time.Hour), ErrUsed},
				{"another permit", 0, two, until, nil},
				{"the last moment", time.Minute - 1, one, until.Add(time.Hour), ErrUsed},
				{"a use to be kept until now", time.Minute, one, until, errForgotten},
				{"a use to be kept until before now", time.Minute, one, noon, errForgotten},
				{"the id again after its time", time.Minute, one, until.Add(time.Minute), nil},
				{"and once more", time.Minute, one, until.Add(time.Minute), ErrUsed},
			} {
				c.SetTime(noon.Add(step.at))
				if err := s.Use(t.Context(), step.id, step.until); !errors.Is(err, step.want) || (err == nil) != (step.want == nil) {
					t.Errorf("%s: %v, want %v", step.name, err, step.want)
				}
			}
			if err := s.Use(t.Context(), "bad id\nused", until); err == nil || errors.Is(err, ErrUsed) {
				t.Errorf("an id with a line break: %v", err)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := s.Use(ended, "0123456789abcdef-x", until.Add(time.Hour)); !errors.Is(err, context.Canceled) {
				t.Errorf("after the caller is gone: %v", err)
			}
		})
	}
}

func TestAClockThatIsSetBackMakesNothingGoodAgain(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakePassiveClock(noon)
			s := open(t, c)
			until := noon.Add(time.Minute)
			if err := s.Use(t.Context(), one, until); err != nil {
				t.Fatal(err)
			}
			c.SetTime(noon.Add(time.Hour))
			if err := s.Use(t.Context(), two, noon.Add(2*time.Hour)); err != nil { // forgets the first
				t.Fatal(err)
			}
			c.SetTime(noon)
			if err := s.Use(t.Context(), one, until); !errors.Is(err, errForgotten) {
				t.Errorf("Use: %v, want a refusal", err)
			}
		})
	}
}

func TestStoreRefusesWhenItIsFull(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(noon)
	m := NewMemory(c)
	m.ledger.limit = 1
	until := noon.Add(time.Minute)
	if err := m.Use(t.Context(), one, until); err != nil {
		t.Fatal(err)
	}
	if err := m.Use(t.Context(), two, until); !errors.Is(err, ErrStoreFull) {
		t.Errorf("Use: %v, want ErrStoreFull", err)
	}
	if err := m.Use(t.Context(), one, until); !errors.Is(err, ErrUsed) {
		t.Errorf("Use: %v, want ErrUsed", err)
	}
	c.SetTime(until)
	if err := m.Use(t.Context(), two, until.Add(time.Minute)); err != nil {
		t.Errorf("Use after the first is over: %v", err)
	}
}

func TestPermitIsGoodOnceAcrossARestart(t *testing.T) {
	w := newWorld(t)
	store := restarting{filepath.Join(t.TempDir(), "permits"), w.clock}
	v := w.verify(t, w.keys, store)
	token := w.sign(t, claims(t))
	if _, err := v.Verify(t.Context(), token, call()); err != nil {
		t.Fatal(err)
	}
	_, err := v.Verify(t.Context(), token, call())
	wantReason(t, err, ReasonUsed)
	w.pass(6 * time.Minute)
	_, err = v.Verify(t.Context(), w.sign(t, claims(t)), call())
	wantReason(t, err, ReasonUsed)
}

func TestOpenFile(t *testing.T) {
	line := "used " + one + " until " + fmt.Sprint(noon.Add(time.Minute).Unix()) + "\n"
	for name, tc := range map[string]struct {
		content string
		wantErr error
		wantUse error
	}{
		"an empty journal":                {"", nil, nil},
		"a use":                           {line, nil, ErrUsed},
		"a use that a crash has torn off": {line[:30], nil, nil},
		"a use and a torn one":            {line + line[:9], nil, ErrUsed},
		"a line of something else":        {"hello\n" + line, ErrCorrupt, nil},
		"a use without time":              {"used " + one + " until \n", ErrCorrupt, nil},
		"a use with one word more":        {strings.TrimSpace(line) + " x\n", ErrCorrupt, nil},
		"more than one append can leave":  {line + strings.Repeat("x", 257), linefile.ErrCorrupt, nil},
	} {
		for _, segment := range []string{".a", ".b"} {
			t.Run(name+" in "+segment, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "permits")
				if err := os.WriteFile(path+segment, []byte(tc.content), 0o600); err != nil {
					t.Fatal(err)
				}
				f, err := OpenFile(path, clocktesting.NewFakePassiveClock(noon))
				if !errors.Is(err, tc.wantErr) {
					t.Fatalf("OpenFile: %v, want %v", err, tc.wantErr)
				}
				if err != nil {
					again, err := OpenFile(path, clocktesting.NewFakePassiveClock(noon))
					if again != nil || !errors.Is(err, tc.wantErr) {
						t.Errorf("OpenFile again: %v, want %v: a lock may be left", err, tc.wantErr)
					}
					return
				}
				if err := f.Use(t.Context(), one, noon.Add(time.Hour)); !errors.Is(err, tc.wantUse) {
					t.Errorf("Use: %v, want %v", err, tc.wantUse)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestOpenFileKeepsOthersOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "permits")
	c := clocktesting.NewFakePassiveClock(noon)
	openJournal(t, path, c)
	if _, err := OpenFile(path, c); !errors.Is(err, ErrLocked) {
		t.Errorf("OpenFile: %v, want ErrLocked", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(path, c); !errors.Is(err, ErrLocked) {
		t.Errorf("OpenFile after its lock was removed: %v, want ErrLocked", err)
	}
}

func TestFileCannotBeUsedWhen(t *testing.T) {
	for name, spoil := range map[string]func(f *File) error{
		"it is closed":                func(f *File) error { return f.Close() },
		"its segment was deleted":     func(f *File) error { return os.Remove(f.segments[0].path) },
		"somebody wrote into it":      func(f *File) error { return os.WriteFile(f.segments[0].path, []byte("x\n"), 0o600) },
		"the next cannot be begun":    func(f *File) error { f.limit = 0; f.segments[1].path = "/dev/null/x"; return nil },
		"closed when long in between": func(f *File) error { f.limit = 0; return f.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			f := openJournal(t, filepath.Join(t.TempDir(), "permits"), w.clock)
			if err := spoil(f); err != nil {
				t.Fatal(err)
			}
			_, err := w.verify(t, w.keys, f).Verify(t.Context(), w.sign(t, claims(t)), call())
			wantReason(t, err, ReasonStoreUnavailable)
		})
	}
}

func TestFileStaysSmallAndForgetsNothingInForce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "permits")
	c := clocktesting.NewFakePassiveClock(noon)
	f := must(OpenFile(path, c))(t)
	f.limit = 10
	const kept = 5 * time.Second
	uses := map[string]time.Time{}
	for i := range 300 {
		c.SetTime(noon.Add(time.Duration(i) * 500 * time.Millisecond))
		if i%37 == 36 {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			f = must(OpenFile(path, c))(t)
			f.limit = 10
		}
		id := fmt.Sprintf("0123456789abcdef-%d", i)
		uses[id] = c.Now().Add(kept)
		if err := f.Use(t.Context(), id, uses[id]); err != nil {
			t.Fatalf("use %d: %v", i, err)
		}
		for id, until := range uses {
			if until.After(c.Now()) {
				if err := f.Use(t.Context(), id, until.Add(time.Hour)); !errors.Is(err, ErrUsed) {
					t.Fatalf("after use %d %s: %v, want ErrUsed", i, id, err)
				}
			}
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	lines := 0
	for _, suffix := range []string{".a", ".b"} {
		lines += strings.Count(string(must(os.ReadFile(path+suffix))(t)), "\n")
	}
	if lines > 50 {
		t.Errorf("the journal has %d lines for 10 uses in force", lines)
	}
	names := []string{}
	for _, e := range must(os.ReadDir(filepath.Dir(path)))(t) {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"permits", "permits.a", "permits.b"}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
