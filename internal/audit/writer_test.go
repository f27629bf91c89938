package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

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

func (d *disk) written() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return bytes.Clone(d.log)
}

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
		time.Sleep(500 * time.Millisecond) // the writer tries again each second: not now
		if err := f.Enqueue(&Record{ID: "4", Outcome: review.Block}); !errors.Is(err, ErrQueueFull) {
			t.Errorf("Enqueue into a full queue: %v", err)
		}
		if err := f.Append(t.Context(), &Record{ID: "5"}); !errors.Is(err, ErrQueueFull) {
			t.Errorf("Append into a full queue: %v", err)
		}
		d.fail(nil)
		time.Sleep(2 * time.Second)
		all := entries(t, d.written())
		if diff := cmp.Diff([]string{"", "0", "1", "2", "3"}, ids(all)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if all[0].Kind != KindUnrecorded || all[0].Unrecorded != 1 {
			t.Errorf("the log says %+v of the record that had no place, want that there was one", all[0].Record)
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
		d.fail(nil)
		closeLog(t, f)
		if d.calls < 9 || d.calls > 13 {
			t.Errorf("%d tries in 10 s, want one a second", d.calls)
		}
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
