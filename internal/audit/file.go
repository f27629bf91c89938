package audit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/utils/clock"

	review "gatewright.dev/gatewright/api/review/v1alpha1"
)

var (
	// ErrUnavailable says that records cannot be made durable now. Later it may work again.
	ErrUnavailable = errors.New("audit log is unavailable")
	// ErrQueueFull says that records come faster than the disk takes them.
	ErrQueueFull = fmt.Errorf("%w: queue is full", ErrUnavailable)
	// ErrClosed says that the log was closed.
	ErrClosed = fmt.Errorf("%w: closed", ErrUnavailable)
	// ErrNotDurable says that no sink of the log makes anything durable.
	ErrNotDurable = fmt.Errorf("%w: no sink makes records durable", ErrUnavailable)
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
	// Clock gives the time of records of other kinds than decision, and when to sign and to begin a new file.
	Clock clock.PassiveClock
	// Signer signs checkpoints; without it there are none.
	Signer Signer
	// SignEvery is after how long a record is covered by a checkpoint at the latest, 10 s by default, and SignRecords
	// after how many, 4096 by default. Closing signs too.
	SignEvery   time.Duration
	SignRecords int
	// SignAtOnce signs with the first batch, and what a process that was killed left unsigned as soon as the log is open.
	SignAtOnce bool
	// Adopted says in the log that the lines which are there when it is opened were taken over as they are.
	Adopted bool
	// Signed is told each checkpoint once it is durable, from the goroutine that writes: it must not wait.
	Signed func(Checkpoint)
	// Mirror is given the lines of each batch once they are durable, from the goroutine that writes: it must not wait, and
	// must not hold on to them.
	Mirror func(lines []byte)
	// MaxBatch is how many bytes one write has at most, 4 MiB by default, and never less than one record.
	MaxBatch int
	// Rotation says when a file is full, and Retention how long full ones are kept. By default never, and for ever.
	Rotation  Rotation
	Retention Retention
	// Warn is told what an operator should know and no caller waits for, such as a file that cannot be rotated.
	Warn func(error)
}

// Rotation says when a log begins a new file. Zero is no bound.
type Rotation struct {
	// MaxBytes of one file, and MaxAge of its first record.
	MaxBytes int64
	MaxAge   time.Duration
}

// Retention says how long files that are full are kept. Zero is no bound. The file in use is always kept.
type Retention struct {
	// MaxFiles that are full, MaxBytes of all of them, and MaxAge of the last record in one.
	MaxFiles int
	MaxBytes int64
	MaxAge   time.Duration
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
	if o.SignEvery <= 0 {
		o.SignEvery = 10 * time.Second
	}
	if o.SignRecords <= 0 {
		o.SignRecords = 4096
	}
	if o.MaxBatch <= 0 {
		o.MaxBatch = maxBatch
	}
	if o.Warn == nil {
		o.Warn = func(error) {}
	}
}

// Sink makes whole lines durable, or leaves things as they were. One goroutine calls it.
type Sink interface {
	Append(lines []byte) error
	Close() error
}

// Resumer is a Sink that may not know whether a failed Append happened after all. Before the next one it is asked.
type Resumer interface {
	Sink
	// Resume returns the end of what is durable.
	Resume() (Head, error)
}

// turner is a sink of several files, of which one is in use.
type turner interface {
	// due says whether the next batch belongs into a new file.
	due(now time.Time) bool
	// turn begins a new file, and returns what its first record tells.
	turn(h Head) (*Rotated, error)
	// expired are files that retention removes, oldest first, and remove removes one.
	expired(now time.Time) ([]Dropped, error)
	remove(d Dropped) error
}

// File is a log that this process alone writes, by default a file. Its methods may be called concurrently.
//
// One goroutine writes. It takes everything that waits, up to maxBatch, and
// pays one write and one sync for all of it; what arrives meanwhile is the next
// batch. Under load a sync is shared by all who wait for it, and a lone record
// does not wait for company.
type File struct {
	options  Options
	fleeting bool
	wake     chan struct{} // holds at most one: something changed
	ended    chan struct{} // closed when the writer has ended
	notes    []*Record     // of the log itself, to be written first; the writer's once it runs
	signed   uint64        // the last line under a signature, or there before; the writer's too

	mu      sync.Mutex
	queue   []*entry
	held    int // records in queue and in the batch being written
	bytes   int // their bytes
	closed  bool
	failing bool
	head    Head
	stats   Stats
	// unrecorded counts what had no place in the queue since the log last said so.
	unrecorded uint64

	closeErr error // written before ended is closed
}

// Stats counts what happened since Open.
type Stats struct {
	// Records that are durable, those of the log itself included, in how many batches.
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

// Open opens or creates the log and continues its chain, also where the last file ends if the one at path is new. A torn
// end is moved to a file of its own beside it, and the first record to be written tells so.
func Open(path string, o Options) (*File, error) {
	o.setDefaults()
	s, torn, err := openFiles(path, o)
	if err != nil {
		return nil, fmt.Errorf("opening audit log: %w", err)
	}
	f := newFile(o, s.head)
	if s.head.Seq > 0 && !s.isSigned {
		f.signed = s.head.Seq - 1 // a process that was killed has not signed its last lines
	}
	if torn.Bytes > 0 {
		f.notes = append(f.notes, &Record{Kind: KindRecovered, Torn: &Torn{File: filepath.Base(torn.Path), Bytes: torn.Bytes}})
	}
	if o.Adopted && s.head.Seq > 0 {
		f.notes = append(f.notes, &Record{Kind: KindAdopted})
	}
	if s.rotated != nil {
		f.notes = append(f.notes, &Record{Kind: KindRotated, Rotated: s.rotated})
	}
	go f.write(s)
	return f, nil
}

// New makes a log of a sink whose last line is head, the zero value for none. Close closes the sink.
func New(s Sink, head Head, o Options) *File {
	o.setDefaults()
	if head == (Head{}) {
		head.Digest = noDigest
	}
	f := newFile(o, head)
	go f.write(s)
	return f
}

// NewFleeting makes a log of a sink that keeps nothing, such as a pipe: an Append, which promises that a record is
// durable, is refused with ErrNotDurable.
func NewFleeting(s Sink, o Options) *File {
	o.setDefaults()
	f := newFile(o, Head{Digest: noDigest})
	f.fleeting = true
	go f.write(s)
	return f
}

func newFile(o Options, head Head) *File {
	return &File{
		options: o,
		head:    head,
		signed:  head.Seq,
		wake:    make(chan struct{}, 1),
		ended:   make(chan struct{}),
		stats:   Stats{Available: true},
	}
}

// Append returns nil when the record is durable. After an error, even that of
// ctx, the record may or may not stand in the log; the call must not go ahead.
func (f *File) Append(ctx context.Context, r *Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if f.fleeting {
		return ErrNotDurable
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

// Enqueue returns nil when the record has its place in the queue. It will be written in that order, and again after
// failures, until it is durable or the process ends. A Block for which there is no place is counted, and the log has the
// count, as a record of kind unrecorded, once it takes records again.
func (f *File) Enqueue(r *Record) error {
	e, err := newEntry(r)
	if err != nil {
		return err
	}
	if err := f.add(e); err != nil {
		e.encoder.release()
		if errors.Is(err, ErrQueueFull) && r.Outcome == review.Block {
			f.mu.Lock()
			f.unrecorded++
			f.mu.Unlock()
		}
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
