package capture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func digest(n int) string { return fmt.Sprintf("sha256:%064x", n) }

func makeKey(t *testing.T) (private, public string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key.json")
	if _, err := MakeKey(path); err != nil {
		t.Fatal(err)
	}
	return path, path + ".pub"
}

func open(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func put(t *testing.T, s *Store, mode Mode, n int, state string) {
	t.Helper()
	if err := s.Put(mode, digest(n), []byte(state)); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsKeptComesBack(t *testing.T) {
	private, public := makeKey(t)
	otherPrivate, _ := makeKey(t)
	long := `{"text":"` + strings.Repeat("long ", 500_000) + `"}`
	for name, test := range map[string]struct {
		mode     Mode
		identity string
		want     error
	}{
		"plain, without a key":            {Plain, "", nil},
		"encrypted, with the key":         {Encrypted, private, nil},
		"encrypted, without a key":        {Encrypted, "", ErrNoKey},
		"encrypted, with another's key":   {Encrypted, otherPrivate, ErrNoKey},
		"plain, with a key nobody needed": {Plain, otherPrivate, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "kept")
			w := open(t, dir, Options{Write: true, Recipient: public})
			states := []string{`{"a":1}`, long, `{"b":"x"}`}
			for n, state := range states {
				put(t, w, test.mode, n, state)
			}
			if err := w.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			for how, s := range map[string]*Store{"the writer": w, "a reader": open(t, dir, Options{Identity: test.identity})} {
				for n, state := range states {
					got, err := s.Get(digest(n))
					want := test.want
					if how == "the writer" && test.mode == Encrypted {
						want = ErrNoKey // a gate cannot read what it keeps
					}
					if !errors.Is(err, want) || want == nil && string(got) != state {
						t.Errorf("%s: state %d: %d bytes, %v; want %d bytes, %v", how, n, len(got), err, len(state), want)
					}
				}
				if _, err := s.Get(digest(99)); !errors.Is(err, ErrNotFound) {
					t.Errorf("%s: what was never kept: %v", how, err)
				}
			}
		})
	}
}

func TestEncryptedStatesCannotBeReadFromTheFiles(t *testing.T) {
	_, public := makeKey(t)
	dir := t.TempDir()
	s := open(t, dir, Options{Write: true, Recipient: public})
	put(t, s, Encrypted, 1, `{"secret":"iban DE02"}`)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil || bytes.Contains(data, []byte("iban")) || !bytes.Contains(data, []byte(digest(1))) {
		t.Errorf("the file holds %s, %v", data, err)
	}
	info, err := os.Stat(files[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestOneStateCannotStandInForAnother(t *testing.T) {
	private, public := makeKey(t)
	dir := t.TempDir()
	w := open(t, dir, Options{Write: true, Recipient: public})
	put(t, w, Encrypted, 1, `{"a":1}`)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], bytes.ReplaceAll(data, []byte(digest(1)), []byte(digest(2))), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := open(t, dir, Options{Identity: private}).Get(digest(2)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Get = %s, %v; want ErrCorrupt", got, err)
	}
}

func TestPutRefuses(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{Write: true})
	closed := open(t, t.TempDir(), Options{Write: true})
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		store *Store
		mode  Mode
		state string
		want  error
	}{
		"what should be encrypted, without a key": {w, Encrypted, `{}`, ErrNoKey},
		"what is not JSON":                        {w, Plain, `{`, ErrCorrupt},
		"what is too long":                        {w, Plain, `"` + strings.Repeat("x", MaxState) + `"`, ErrTooLarge},
		"a store that is only read":               {open(t, dir, Options{}), Plain, `{}`, ErrClosed},
		"a store that was closed":                 {closed, Plain, `{}`, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.store.Put(test.mode, digest(1), []byte(test.state)); !errors.Is(err, test.want) {
				t.Errorf("Put: %v, want %v", err, test.want)
			}
		})
	}
	if err := w.Put("Digest", digest(1), []byte(`{}`)); err == nil {
		t.Error("a mode that keeps nothing is taken")
	}
}

func TestADigestIsKeptOnce(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // after a restart too
		s := open(t, dir, Options{Write: true})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for n := range 20 {
					if err := s.Put(Plain, digest(n), []byte(`{"n":1}`)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	lines := 0
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(data, []byte("\n"))
	}
	if lines != 20 {
		t.Errorf("%d lines, want 20", lines)
	}
}

func TestATornLineHidesNoOther(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, Options{Write: true})
	put(t, w, Plain, 1, `{"a":1}`)
	put(t, w, Plain, 2, `{"a":2}`)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.SplitAfter(data, []byte("\n"))
	torn := bytes.Join([][]byte{whole[0], whole[1][:30], []byte("\n"), whole[1], whole[0][:20]}, nil)
	if err := os.WriteFile(files[0], torn, 0o600); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir, Options{})
	var got []string
	for n := range 2 {
		state, err := r.Get(digest(n + 1))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(state))
	}
	if diff := cmp.Diff([]string{`{"a":1}`, `{"a":2}`}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRetention(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		age     time.Duration // of the first file
		want    bool          // that its state is kept
	}{
		"what is young stays":                 {Options{MaxAge: time.Hour}, 0, true},
		"what is old goes":                    {Options{MaxAge: time.Hour}, 2 * time.Hour, false},
		"the oldest goes when it is too much": {Options{MaxBytes: 1}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			clock := clocktesting.NewFakeClock(noon)
			test.options.Write, test.options.Clock = true, clock
			first := open(t, dir, test.options)
			put(t, first, Plain, 1, `{"a":1}`)
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			files, _ := filepath.Glob(filepath.Join(dir, "*"))
			if err := os.Chtimes(files[0], noon.Add(-test.age), noon.Add(-test.age)); err != nil {
				t.Fatal(err)
			}
			clock.Step(time.Second)
			second := open(t, dir, test.options)
			put(t, second, Plain, 2, `{"a":2}`)
			if err := second.Close(); err != nil {
				t.Fatal(err)
			}
			third := open(t, dir, test.options)
			_, err := third.Get(digest(1))
			if (err == nil) != test.want || err != nil && !errors.Is(err, ErrNotFound) {
				t.Errorf("the first state: %v; want kept: %v", err, test.want)
			}
			if _, err := third.Get(digest(2)); err != nil {
				t.Errorf("the newest state: %v", err)
			}
		})
	}
}

func TestAStateThatCouldNotBeWrittenIsTriedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	failures := make(chan error, 4)
	s := open(t, dir, Options{Write: true, Failed: func(err error) { failures <- err }})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	put(t, s, Plain, 1, `{"a":1}`)
	if err := <-failures; err == nil {
		t.Fatal("nobody was told")
	}
	for range cap(failures) - 1 {
		select {
		case <-failures:
		default:
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	put(t, s, Plain, 1, `{"a":1}`)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(digest(1)); err != nil || !json.Valid(got) {
		t.Errorf("Get = %s, %v", got, err)
	}
}

func TestKeys(t *testing.T) {
	private, public := makeKey(t)
	if _, err := MakeKey(private); err == nil {
		t.Error("a key is written over another")
	}
	readable := filepath.Join(t.TempDir(), "readable.json")
	data, err := os.ReadFile(private)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(readable, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(readable, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"a public key as the private one":     {Options{Identity: public}, "has no private key"},
		"a private key that others can read":  {Options{Identity: readable}, "chmod 600"},
		"a key that is not there":             {Options{Identity: "none.json"}, "no such file"},
		"a recipient that is not there":       {Options{Recipient: "none.json"}, "no such file"},
		"a recipient that is something else":  {Options{Recipient: os.Args[0]}, "no key of this kind"},
		"a folder that is not there, to read": {Options{}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Open(filepath.Join(t.TempDir(), "none"), test.options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open: %v, want %q", err, test.want)
			}
		})
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	s := &Store{options: Options{Write: true, Queue: 1, QueueBytes: 20}, index: map[string]place{}, work: make(chan kept, 1)}
	s.options.setDefaults()
	if err := s.Put(Plain, digest(1), []byte(`{"too":"many bytes here"}`)); !errors.Is(err, ErrFull) {
		t.Errorf("by bytes: %v", err)
	}
	put(t, s, Plain, 2, `{}`)
	if err := s.Put(Plain, digest(3), []byte(`{}`)); !errors.Is(err, ErrFull) {
		t.Errorf("by number: %v", err)
	}
	if s.Len() != 1 {
		t.Errorf("%d states are said to be kept, want 1", s.Len())
	}
}
