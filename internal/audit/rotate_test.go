package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

func testKeys(t *testing.T) *Keys {
	t.Helper()
	k, err := LoadOrCreateKeys(filepath.Join(t.TempDir(), "key.json"), clocktesting.NewFakePassiveClock(noon))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// small makes files of a few records.
func small(o Options) Options {
	if o.Clock == nil {
		o.Clock = clocktesting.NewFakePassiveClock(noon)
	}
	o.Rotation.MaxBytes = 1000
	return o
}

func mustOpen(t *testing.T, path string, o Options) *File {
	t.Helper()
	f, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// fill writes n records and closes the log.
func fill(t *testing.T, path string, o Options, from, n int) {
	t.Helper()
	f := mustOpen(t, path, o)
	for i := range n {
		mustAppend(t, f, fmt.Sprint(from+i))
	}
	closeLog(t, f)
}

// verifyParts checks a log by its files.
func verifyParts(t *testing.T, path string, e Evidence) (Summary, error) {
	t.Helper()
	parts, err := Parts(path)
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewVerifier(e)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		in, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		_, err = v.Part(in)
		in.Close()
		if err != nil {
			return v.Total(), fmt.Errorf("%s: %w", filepath.Base(p), err)
		}
	}
	return v.End()
}

// decisions are the ids of decisions in all files.
func decisions(t *testing.T, path string) []string {
	t.Helper()
	parts, err := Parts(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := QueryParts(t.Context(), parts, Filter{Kind: KindDecision}, func(e Entry) error { got = append(got, e.ID); return nil }); err != nil {
		t.Fatal(err)
	}
	return got
}

func numbers(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(i)
	}
	return out
}

func TestRotationContinuesTheChain(t *testing.T) {
	for name, o := range map[string]Options{
		"by bytes":            small(Options{}),
		"by bytes and signed": small(Options{Signer: testKeys(t), SignEvery: time.Hour}),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			fill(t, path, o, 0, 20)
			fill(t, path, o, 20, 20)
			full, err := fullFiles(path)
			if err != nil || len(full) < 5 {
				t.Fatalf("%d full files, %v", len(full), err)
			}
			if diff := cmp.Diff(numbers(40), decisions(t, path)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for i, p := range full[1:] {
				line, _, _ := strings.Cut(string(read(t, p)), "\n")
				e, err := Decode([]byte(line))
				if err != nil {
					t.Fatal(err)
				}
				last, err := lastEntry(full[i])
				if err != nil {
					t.Fatal(err)
				}
				want := &Rotated{File: filepath.Base(full[i]), Through: last.head}
				if diff := cmp.Diff(want, e.Rotated); diff != "" || e.Kind != KindRotated || e.Prev != last.head.Digest {
					t.Errorf("%s begins with %+v (-want +got):\n%s", p, e, diff)
				}
				if o.Signer != nil && last.Kind != KindCheckpoint {
					t.Errorf("%s ends with a record of kind %s, and nothing signs it", full[i], last.Kind)
				}
			}
			if _, err := verifyParts(t, path, Evidence{}); err != nil {
				t.Error(err)
			}
			if _, err := verifyParts(t, filepath.Dir(path), Evidence{}); err != nil {
				t.Errorf("by the folder: %v", err)
			}
		})
	}
}

func TestRotationByAge(t *testing.T) {
	clock := clocktesting.NewFakeClock(noon)
	path := filepath.Join(t.TempDir(), "audit.log")
	f := mustOpen(t, path, Options{Clock: clock, Rotation: Rotation{MaxAge: time.Hour}})
	for i := range 6 {
		mustAppend(t, f, fmt.Sprint(i))
		clock.Step(20 * time.Minute)
	}
	closeLog(t, f)
	full, err := fullFiles(path)
	if err != nil || len(full) != 1 {
		t.Errorf("%d full files after two hours, %v; want 1", len(full), err)
	}
	if diff := cmp.Diff(numbers(6), decisions(t, path)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A process can be killed between any two steps of a rotation. What it leaves is made here by hand.
func TestKilledWhileRotating(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, path string){
		"after the old file got its new name": func(t *testing.T, path string) {
			rename(t, path, fullName(path, firstIn(t, path)))
		},
		"after the new file was made": func(t *testing.T, path string) {
			rename(t, path, fullName(path, firstIn(t, path)))
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"in the first line of the new file": func(t *testing.T, path string) {
			rename(t, path, fullName(path, firstIn(t, path)))
			if err := os.WriteFile(path, []byte(`{"v":1,"seq":`), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			o := small(Options{})
			fill(t, path, o, 0, 10)
			leave(t, path)
			fill(t, path, o, 10, 10)
			if diff := cmp.Diff(numbers(20), decisions(t, path)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, err := verifyParts(t, path, Evidence{}); err != nil {
				t.Error(err)
			}
			parts, err := Parts(path)
			if err != nil {
				t.Fatal(err)
			}
			rotated := 0
			if err := QueryParts(t.Context(), parts, Filter{Kind: KindRotated}, func(Entry) error { rotated++; return nil }); err != nil {
				t.Fatal(err)
			}
			if rotated != len(parts)-1 {
				t.Errorf("%d of %d files begin with a record of kind rotated", rotated, len(parts)-1)
			}
		})
	}
}

func firstIn(t *testing.T, path string) uint64 {
	t.Helper()
	head, ok, err := firstHead(path)
	if err != nil || !ok {
		t.Fatalf("%s: %v, %v", path, ok, err)
	}
	return head.seq
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func TestALogThatCannotBeRotatedGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	var warned []error
	o := small(Options{Warn: func(err error) { warned = append(warned, err) }})
	f := mustOpen(t, path, o)
	if err := os.WriteFile(fullName(path, 1), []byte("in the way"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		mustAppend(t, f, fmt.Sprint(i))
	}
	closeLog(t, f)
	if got := len(entries(t, read(t, path))); got != 20 {
		t.Errorf("%d records in the file, want 20", got)
	}
	if len(warned) == 0 || !errors.Is(warned[0], os.ErrExist) {
		t.Errorf("warned %v", warned)
	}
}

func TestRetention(t *testing.T) {
	for name, test := range map[string]struct {
		retention Retention
		why       string
		check     func(full []string) bool
	}{
		"by number": {Retention{MaxFiles: 2}, "files", func(full []string) bool { return len(full) <= 3 }},
		"by bytes":  {Retention{MaxBytes: 3000}, "bytes", func(full []string) bool { return len(full) <= 3 }},
		"by age":    {Retention{MaxAge: time.Hour}, "age", func(full []string) bool { return len(full) <= 3 }},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(noon)
			keys := testKeys(t)
			path := filepath.Join(t.TempDir(), "audit.log")
			var outside []Checkpoint
			o := small(Options{Clock: clock, Signer: keys, SignEvery: time.Hour, Retention: test.retention, Signed: func(c Checkpoint) { outside = append(outside, c) }})
			f := mustOpen(t, path, o)
			for i := range 40 {
				if err := f.Append(t.Context(), &Record{Time: clock.Now(), ID: fmt.Sprint(i)}); err != nil {
					t.Fatal(err)
				}
				clock.Step(10 * time.Minute)
			}
			closeLog(t, f)
			full, err := fullFiles(path)
			if err != nil || !test.check(full) {
				t.Errorf("%d full files are left, %v", len(full), err)
			}
			got := decisions(t, path)
			if want := numbers(40)[40-len(got):]; len(got) == 40 || !slices.Equal(want, got) {
				t.Errorf("%d decisions are left: %v", len(got), got)
			}
			s, err := verifyParts(t, path, Evidence{Keys: keys.Public(), Checkpoints: outside})
			if err != nil || s.Dropped == 0 || s.Signed != s.Head.Seq {
				t.Errorf("what is left: %+v, %v", s, err)
			}
			whys := map[string]bool{}
			parts, _ := Parts(path)
			if err := QueryParts(t.Context(), parts, Filter{Kind: KindDropped}, func(e Entry) error { whys[e.Dropped.Why] = true; return nil }); err != nil || !whys[test.why] {
				t.Errorf("dropped for %v, %v; want %s", whys, err, test.why)
			}
			if err := os.Remove(parts[0]); err != nil {
				t.Fatal(err)
			}
			var b *Break
			if _, err := verifyParts(t, path, Evidence{Keys: keys.Public()}); len(parts) > 1 && (!errors.As(err, &b) || b.What != BreakSequence) {
				t.Errorf("a file that was removed by hand: %v", err)
			}
		})
	}
}

// A process that was killed after it said that files go, and before they went, removes them at the next occasion.
func TestFilesThatWereSaidToBeDroppedMayStillBeThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	keep := t.TempDir()
	fill(t, path, small(Options{}), 0, 20)
	full, err := fullFiles(path)
	if err != nil {
		t.Fatal(err)
	}
	saved := make([]string, len(full))
	for i, name := range full {
		saved[i] = filepath.Join(keep, filepath.Base(name))
		if err := os.WriteFile(saved[i], read(t, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, path, small(Options{Retention: Retention{MaxFiles: len(full) - 1}}), 20, 1)
	if _, err := os.Stat(full[0]); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the oldest file: %v", err)
	}
	for i, name := range full { // one or two of them, as the record and what the log says itself come in one batch or in two
		if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
			rename(t, saved[i], name)
		}
	}
	if _, err := verifyParts(t, path, Evidence{}); err != nil {
		t.Errorf("with the files back: %v", err)
	}
	fill(t, path, small(Options{Retention: Retention{MaxFiles: len(full) - 1}}), 21, 1)
	if _, err := os.Stat(full[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the oldest file is not dropped again: %v", err)
	}
	if _, err := verifyParts(t, path, Evidence{}); err != nil {
		t.Error(err)
	}
}

func TestFollowAcrossFiles(t *testing.T) {
	const lines = 400
	path := filepath.Join(t.TempDir(), "audit.log")
	f := mustOpen(t, path, small(Options{}))
	mustAppend(t, f, "0")
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := make(chan string, lines)
	done := make(chan error, 1)
	go func() {
		done <- Query(ctx, Follow(ctx, in, time.Microsecond), Filter{Kind: KindDecision}, func(e Entry) error {
			got <- e.ID
			return nil
		})
	}()
	var ids []string
	for i := 1; i < lines; i++ { // some files come and go between two looks
		mustAppend(t, f, fmt.Sprint(i))
	}
	for range lines {
		select {
		case id := <-got:
			ids = append(ids, id)
		case err := <-done:
			t.Fatalf("the reader ended after %d lines: %v", len(ids), err)
		case <-time.After(20 * time.Second):
			t.Fatalf("the reader waits after %d lines, the last is %s", len(ids), ids[len(ids)-1])
		}
	}
	if diff := cmp.Diff(numbers(lines), ids); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the reader ended with %v", err)
	}
	closeLog(t, f)
}

func TestParts(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	fill(t, path, small(Options{}), 0, 12)
	full, err := fullFiles(path)
	if err != nil {
		t.Fatal(err)
	}
	all := append(slices.Clone(full), path)
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	for i, name := range []string{"a", "b"} {
		fill(t, filepath.Join(other, name), Options{}, i, 1)
	}
	for name, test := range map[string]struct {
		paths []string
		want  []string
		fails string
	}{
		"a file stands for those before it":  {[]string{path}, all, ""},
		"a folder stands for the log in it":  {[]string{dir}, all, ""},
		"several files stand for themselves": {[]string{path, full[0]}, []string{path, full[0]}, ""},
		"a full file stands for itself":      {full[:1], full[:1], ""},
		"a folder without a log":             {[]string{t.TempDir()}, nil, "holds no file of an audit log"},
		"a folder with two logs":             {[]string{other}, nil, "of two logs"},
		"a file that is not there":           {[]string{filepath.Join(dir, "none")}, nil, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parts(test.paths...)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("error %v, want %q", err, test.fails)
				}
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestFindDecision(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	fill(t, path, small(Options{}), 0, 20)
	for id, want := range map[string]bool{"0": true, "19": true, "20": false, "": false} {
		e, ok, err := FindDecision(t.Context(), path, id)
		if err != nil || ok != (want && id != "") || ok && e.ID != id {
			t.Errorf("FindDecision(%q) = %q, %v, %v", id, e.ID, ok, err)
		}
	}
}

func TestLabelsComeWithTheirDecision(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	f := mustOpen(t, path, small(Options{}))
	defer closeLog(t, f)
	label := func(decision string, n int) Record {
		return Record{Kind: KindLabel, Time: noon, Label: &Label{Decision: decision, Outcome: "Block", By: strconv.Itoa(n)}}
	}
	all := []Record{label("a", -1), {Kind: KindDecision, ID: "a", Time: noon}, {Kind: KindDecision, ID: "b", UID: "a", Time: noon}, label("b", 0)}
	for n := range MaxLabels + 7 { // more than one file has
		all = append(all, label("a", n))
	}
	for i := range all {
		if err := f.Append(t.Context(), &all[i]); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string][2]int{"a": {7, MaxLabels + 7}, "b": {0, 1}} {
		got, ok, err := FindMarked(t.Context(), path, id)
		if err != nil || !ok || got.ID != id || len(got.Labels) != want[1]-want[0] {
			t.Fatalf("FindMarked(%q) = %q with %d labels, %v, %v", id, got.ID, len(got.Labels), ok, err)
		}
		for i, l := range got.Labels {
			if l.Label.Decision != id || l.Label.By != strconv.Itoa(want[0]+i) {
				t.Errorf("label %d of %s: %+v", i, id, l.Label)
			}
		}
	}
}
