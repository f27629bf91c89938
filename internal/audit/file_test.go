package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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

// disk is a sink that fails as told and holds a batch back as told.
type disk struct {
	mu    sync.Mutex
	fault error
	log   []byte
	calls int
	held  chan struct{} // if not nil, a batch waits for it
}

func (d *disk) Append(lines []byte) error {
	if d.held != nil {
		<-d.held
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if d.fault != nil {
		return d.fault
	}
	d.log = append(d.log, lines...)
	return nil
}

func (d *disk) Close() error { return nil }

func (d *disk) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = err
}

func start(d *disk, o Options) *File {
	o.setDefaults()
	f := newFile(o, Head{Digest: noDigest})
	go f.write(d)
	return f
}

func TestAnUnavailableLogSaysSoAndComesBack(t *testing.T) {
	for name, fault := range map[string]error{
		"disk full":   syscall.ENOSPC,
		"read-only":   syscall.EROFS,
		"input error": syscall.EIO,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &disk{}
				f := start(d, Options{})
				mustAppend(t, f, "1")
				d.fail(fault)
				for range 3 {
					err := f.Append(t.Context(), &Record{ID: "lost"})
					if !errors.Is(err, ErrUnavailable) || !errors.Is(err, fault) {
						t.Fatalf("Append: %v, want ErrUnavailable", err)
					}
				}
				if s := f.Stats(); s.Available || s.Failures != 3 || s.Waiting != 0 {
					t.Errorf("stats %+v while it fails", s)
				}
				d.fail(nil)
				mustAppend(t, f, "2")
				if s := f.Stats(); !s.Available || s.Records != 2 {
					t.Errorf("stats %+v after it works again", s)
				}
				closeLog(t, f)
				if diff := cmp.Diff([]string{"1", "2"}, ids(entries(t, d.log))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestEnqueuedRecordsOutliveAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{fault: syscall.ENOSPC}
		f := start(d, Options{Queue: 4, RetryAfter: time.Second})
		if err := f.Append(t.Context(), &Record{ID: "answered"}); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("Append: %v", err)
		}
		time.Sleep(5 * time.Second) // in the bubble's time: the failure is long past
		for i := range 4 {
			if err := f.Enqueue(&Record{ID: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if err := f.Enqueue(&Record{ID: "4"}); !errors.Is(err, ErrQueueFull) {
			t.Errorf("Enqueue into a full queue: %v", err)
		}
		if err := f.Append(t.Context(), &Record{ID: "5"}); !errors.Is(err, ErrQueueFull) {
			t.Errorf("Append into a full queue: %v", err)
		}
		d.fail(nil)
		time.Sleep(2 * time.Second)
		if diff := cmp.Diff([]string{"0", "1", "2", "3"}, ids(entries(t, d.log))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if s := f.Stats(); s.Refused != 2 || s.Waiting != 0 || !s.Available {
			t.Errorf("stats %+v", s)
		}
		closeLog(t, f)
	})
}

func TestAFailingDiskIsNotTriedWithoutPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{fault: syscall.ENOSPC}
		f := start(d, Options{RetryAfter: time.Second})
		for range 100 {
			if err := f.Enqueue(&Record{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if d.calls < 9 || d.calls > 12 {
			t.Errorf("%d tries in 10 s, want one a second", d.calls)
		}
		d.fail(nil)
		closeLog(t, f)
	})
}

func TestTheQueueIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		o    Options
		want int
	}{
		"by records": {Options{Queue: 10}, 10},
		"by bytes":   {Options{QueueBytes: 1000}, 1000 / len(`"kind":"decision","time":"0001-01-01T00:00:00Z","caller":{},"ms":0}`)},
	} {
		t.Run(name, func(t *testing.T) {
			d := &disk{held: make(chan struct{})}
			f := start(d, tc.o)
			taken := 0
			for ; taken < 100; taken++ {
				if err := f.Enqueue(&Record{}); err != nil {
					if !errors.Is(err, ErrQueueFull) || !errors.Is(err, ErrUnavailable) {
						t.Errorf("Enqueue: %v", err)
					}
					break
				}
			}
			if taken != tc.want {
				t.Errorf("%d records taken, want %d", taken, tc.want)
			}
			if s := f.Stats(); s.Refused != 1 || s.Waiting != tc.want {
				t.Errorf("stats %+v", s)
			}
			close(d.held)
			closeLog(t, f)
			if got := len(entries(t, d.log)); got != tc.want {
				t.Errorf("%d records written, want %d", got, tc.want)
			}
		})
	}
}

func TestAppendGivesUpWithItsContext(t *testing.T) {
	d := &disk{held: make(chan struct{})}
	f := start(d, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() { answer <- f.Append(ctx, &Record{ID: "1"}) }()
	for f.Stats().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("Append: %v, want the context's error", err)
	}
	if err := f.Append(ctx, &Record{ID: "2"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Append with an ended context: %v", err)
	}
	close(d.held)
	mustAppend(t, f, "3")
	closeLog(t, f)
	if diff := cmp.Diff([]string{"1", "3"}, ids(entries(t, d.log))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestABatchIsBounded(t *testing.T) {
	d := &disk{held: make(chan struct{})}
	f := start(d, Options{})
	big := &Record{Policies: []string{strings.Repeat("p", 200<<10)}}
	for range 50 { // 10 MB
		if err := f.Enqueue(big); err != nil {
			t.Fatal(err)
		}
	}
	close(d.held)
	closeLog(t, f)
	if got := len(entries(t, d.log)); got != 50 || d.calls < 3 {
		t.Errorf("%d records in %d batches, want 50 in 3 or more", got, d.calls)
	}
}

func TestClose(t *testing.T) {
	t.Run("writes what waits", func(t *testing.T) {
		d := &disk{}
		f := start(d, Options{})
		for range 100 {
			if err := f.Enqueue(&Record{}); err != nil {
				t.Fatal(err)
			}
		}
		closeLog(t, f)
		closeLog(t, f)
		if got := len(entries(t, d.log)); got != 100 {
			t.Errorf("%d records, want 100", got)
		}
		for how, err := range map[string]error{
			"Append":  f.Append(t.Context(), &Record{}),
			"Enqueue": f.Enqueue(&Record{}),
		} {
			if !errors.Is(err, ErrClosed) || !errors.Is(err, ErrUnavailable) {
				t.Errorf("%s after Close: %v", how, err)
			}
		}
	})
	t.Run("says what could not be written", func(t *testing.T) {
		d := &disk{fault: syscall.ENOSPC}
		f := start(d, Options{})
		for range 3 {
			if err := f.Enqueue(&Record{}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := f.Close(); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "3 records") {
				t.Errorf("Close: %v, want 3 records named", err)
			}
		}
	})
}

func TestABadRecordIsRefusedBeforeTheQueue(t *testing.T) {
	d := &disk{}
	f := start(d, Options{})
	bad := &Record{ArgumentsDigest: "all my secrets"}
	if err := f.Append(t.Context(), bad); !errors.Is(err, ErrBadRecord) || strings.Contains(err.Error(), "secrets") {
		t.Errorf("Append: %v", err)
	}
	if err := f.Enqueue(bad); !errors.Is(err, ErrBadRecord) {
		t.Errorf("Enqueue: %v", err)
	}
	mustAppend(t, f, "good")
	closeLog(t, f)
	if diff := cmp.Diff([]string{"good"}, ids(entries(t, d.log))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
