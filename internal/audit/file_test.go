package audit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

func openLog(t *testing.T, path string) *File {
	t.Helper()
	f, err := Open(path, Options{Clock: clocktesting.NewFakePassiveClock(noon)})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func closeLog(t *testing.T, f *File) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

func mustAppend(t *testing.T, f *File, id string) {
	t.Helper()
	if err := f.Append(t.Context(), &Record{Time: noon, ID: id}); err != nil {
		t.Fatalf("Append %s: %v", id, err)
	}
}

// entries reads a log whose chain holds.
func entries(t *testing.T, log []byte) []Entry {
	t.Helper()
	if _, err := Verify(bytes.NewReader(log)); err != nil {
		t.Fatalf("Verify: %v", err)
	}
	var all []Entry
	for l := range bytes.Lines(log) {
		e, err := Decode(bytes.TrimSuffix(l, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func ids(all []Entry) []string {
	var got []string
	for _, e := range all {
		got = append(got, e.ID)
	}
	return got
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAppendIsInTheFileWhenItReturns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	f := openLog(t, path)
	defer closeLog(t, f)
	var want []string
	for i := range 5 {
		id := fmt.Sprint(i)
		mustAppend(t, f, id)
		want = append(want, id)
		if diff := cmp.Diff(want, ids(entries(t, read(t, path)))); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	got, err := Verify(bytes.NewReader(read(t, path)))
	if err != nil || got.Head != f.Head() {
		t.Errorf("head %+v, %v; the file says %+v", f.Head(), err, got.Head)
	}
}

func TestManyWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	f := openLog(t, path)
	const writers, each = 16, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				r := &Record{Time: noon, ID: fmt.Sprintf("%d/%d", w, i)}
				var err error
				if i%2 == 0 {
					err = f.Append(t.Context(), r)
				} else {
					err = f.Enqueue(r)
				}
				if err != nil {
					t.Errorf("%s: %v", r.ID, err)
				}
			}
		})
	}
	wg.Wait()
	closeLog(t, f)
	next := map[string]int{} // each writer's records stand in its order
	all := entries(t, read(t, path))
	for _, e := range all {
		w, i, _ := strings.Cut(e.ID, "/")
		if want := fmt.Sprint(next[w]); i != want {
			t.Fatalf("writer %s: record %s comes where %s belongs", w, i, want)
		}
		next[w]++
	}
	if len(all) != writers*each {
		t.Errorf("%d records, want %d", len(all), writers*each)
	}
	if s := f.Stats(); s.Records != writers*each || s.Batches >= s.Records || s.Waiting != 0 {
		t.Errorf("stats %+v: want all records in fewer batches", s)
	}
}

func TestReopenContinuesTheChain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	for i := range 4 {
		f := openLog(t, path)
		mustAppend(t, f, fmt.Sprint(i))
		closeLog(t, f)
	}
	if diff := cmp.Diff([]string{"0", "1", "2", "3"}, ids(entries(t, read(t, path)))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestOpenNotesATornEnd(t *testing.T) {
	for name, torn := range map[string]string{
		"half a line":                `{"v":1,"se`,
		"a line that was not synced": "\x00\x00\x00\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			f := openLog(t, path)
			mustAppend(t, f, "before")
			closeLog(t, f)
			if err := os.WriteFile(path, append(read(t, path), torn...), 0o600); err != nil {
				t.Fatal(err)
			}
			f = openLog(t, path)
			mustAppend(t, f, "after")
			closeLog(t, f)
			all := entries(t, read(t, path))
			if diff := cmp.Diff([]string{"before", "", "after"}, ids(all)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			want := Record{Kind: KindRecovered, Time: noon, Torn: &Torn{File: "audit.log.torn-20260102T120000.123456789Z", Bytes: int64(len(torn))}}
			if diff := cmp.Diff(want, all[1].Record); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := string(read(t, filepath.Join(filepath.Dir(path), want.Torn.File))); got != torn {
				t.Errorf("set aside %q, want %q", got, torn)
			}
		})
	}
}

func TestOpenRefusesAFileOfSomethingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	want := bytes.Repeat([]byte("2026-01-02 hello\n"), maxBatch/10)
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := Open(path, Options{}); err == nil {
		closeLog(t, f)
		t.Fatal("Open takes it")
	}
	if !bytes.Equal(read(t, path), want) {
		t.Error("Open changed it")
	}
}
