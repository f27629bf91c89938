package audit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/audit/linefile"
)

var (
	// ErrUnavailable says that records cannot be made durable now. Later it may work again.
	ErrUnavailable = errors.New("audit log is unavailable")
	// ErrQueueFull says that records come faster than the disk takes them.
	ErrQueueFull = fmt.Errorf("%w: queue is full", ErrUnavailable)
	// ErrClosed says that the log was closed.
	ErrClosed = fmt.Errorf("%w: closed", ErrUnavailable)
)

// Options of Open.
type Options struct {
	// Queue is how many records may wait, 8192 by default.
	Queue int
	// QueueBytes is how many bytes they may have, 64 MiB by default.
	QueueBytes int
	// RetryAfter is how long waiting records wait after a failed write, 250 ms
	// by default. An Append tries at once.
	RetryAfter time.Duration
	// Clock gives the time of records of kind recovered.
	Clock clock.PassiveClock
}

func (o *Options) setDefaults() {
	if o.Queue <= 0 {
		o.Queue = 8192
	}
	if o.QueueBytes <= 0 {
		o.QueueBytes = 64 << 20
	}
	if o.RetryAfter <= 0 {
		o.RetryAfter = 250 * time.Millisecond
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
}

// sink makes whole lines durable, or leaves things as they were.
type sink interface {
	Append(lines []byte) error
	Close() error
}

// File is a log that this process alone writes. Its methods may be called
// concurrently.
//
// One goroutine writes. It takes everything that waits, up to maxBatch, and
// pays one write and one sync for all of it; what arrives meanwhile is the next
// batch. Under load a sync is shared by all who wait for it, and a lone record
// does not wait for company.
type File struct {
	options Options
	wake    chan struct{} // holds at most one: something changed
	ended   chan struct{} // closed when the writer has ended

	mu      sync.Mutex
	queue   []*entry
	held    int // records in queue and in the batch being written
	bytes   int // their bytes
	closed  bool
	failing bool
	head    Head
	stats   Stats

	closeErr error // written before ended is closed
}

// Stats counts what happened since Open.
type Stats struct {
	// Records that are durable, in how many batches.
	Records, Batches uint64
	// Failures to write a batch.
	Failures uint64
	// Refused because the queue was full.
	Refused uint64
	// Waiting in the queue now.
	Waiting int
	// Available is false from a failed write to the next one that works. Without
	// records nothing is tried, so readiness must not hang on it.
	Available bool
}

// entry is a record on its way. done is nil if nobody waits.
type entry struct {
	encoder *encoder
	size    int
	done    chan error
}

// Open opens or creates the log and continues its chain. A torn end is moved to
// a file of its own beside it, and the first record to be written tells so.
func Open(path string, o Options) (*File, error) {
	o.setDefaults()
	lines, torn, err := linefile.Open(path, linefile.Options{Valid: isEntry, MaxTorn: maxBatch, Now: o.Clock.Now})
	if err != nil {
		return nil, fmt.Errorf("opening audit log: %w", err)
	}
	head, err := lastHead(lines)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening audit log: %w", err), lines.Close())
	}
	f := newFile(o, head)
	if torn.Bytes > 0 {
		note := &Record{Kind: KindRecovered, Time: o.Clock.Now(), Torn: &Torn{File: filepath.Base(torn.Path), Bytes: torn.Bytes}}
		if err := f.Enqueue(note); err != nil {
			return nil, errors.Join(fmt.Errorf("opening audit log: %w", err), lines.Close())
		}
	}
	go f.write(lines)
	return f, nil
}

func newFile(o Options, head Head) *File {
	return &File{
		options: o,
		head:    head,
		wake:    make(chan struct{}, 1),
		ended:   make(chan struct{}),
		stats:   Stats{Available: true},
	}
}

func lastHead(lines *linefile.File) (Head, error) {
	last, err := lines.Last()
	if err != nil || last == nil {
		return Head{Digest: noDigest}, err
	}
	head, ok := parseHead(last)
	if !ok {
		return Head{}, ErrNotEntry
	}
	return Head{Seq: head.seq, Digest: lineDigest(last)}, nil
}

// Append returns nil when the record is durable. After an error, even that of
// ctx, the record may or may not stand in the log; the call must not go ahead.
func (f *File) Append(ctx context.Context, r *Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e, err := newEntry(r)
	if err != nil {
		return err
	}
	e.done = make(chan error, 1)
	if err := f.add(e); err != nil {
		e.encoder.release()
		return err
	}
	select {
	case err := <-e.done:
		return err
	case <-ctx.Done(): // the writer's answer finds room in the channel
		return ctx.Err()
	}
}

// Enqueue returns nil when the record has its place in the queue. It will be
// written in that order, and again after failures, until it is durable or the
// process ends.
func (f *File) Enqueue(r *Record) error {
	e, err := newEntry(r)
	if err != nil {
		return err
	}
	if err := f.add(e); err != nil {
		e.encoder.release()
		return err
	}
	return nil
}

func newEntry(r *Record) (*entry, error) {
	enc := encoders.Get().(*encoder)
	if err := enc.record(r); err != nil {
		enc.release()
		return nil, err
	}
	return &entry{encoder: enc, size: len(enc.buf)}, nil
}

func (f *File) add(e *entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ErrClosed
	}
	if f.held >= f.options.Queue || f.bytes+e.size > f.options.QueueBytes {
		f.stats.Refused++
		return ErrQueueFull
	}
	f.queue = append(f.queue, e)
	f.held++
	f.bytes += e.size
	if e.done != nil || !f.failing { // what nobody waits for waits for the retry
		f.signal()
	}
	return nil
}

func (f *File) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Head gives the end of what is durable, to be kept elsewhere.
func (f *File) Head() Head {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.head
}

// Stats gives the counts.
func (f *File) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	s.Waiting = f.held
	return s
}

// Available says whether the last write succeeded. It comes back with the next record that can be written.
func (f *File) Available() bool { return f.Stats().Available }

// Close writes what waits and closes the file. It says how many records could
// not be written. Closing again waits for the first and gives the same answer.
func (f *File) Close() error {
	f.mu.Lock()
	f.closed = true
	f.signal()
	f.mu.Unlock()
	<-f.ended
	return f.closeErr
}
