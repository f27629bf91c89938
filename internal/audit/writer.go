package audit

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// maxBatch bounds what one write holds, and with it what a crash can tear off.
const maxBatch = 4 << 20

// noteRoom is what a batch leaves free for records of the log itself.
const noteRoom = 64 << 10

// write is the goroutine that owns the sink.
func (f *File) write(s Sink) {
	w := writer{file: f, sink: s}
	if !f.options.SignAtOnce {
		w.lastSigned = f.options.Clock.Now()
	}
	w.turner, _ = s.(turner)
	w.resumer, _ = s.(Resumer)
	w.retain()
	again := time.NewTimer(0) // after a failure, and to sign what nothing follows
	defer again.Stop()
	for !w.closing {
		select {
		case <-f.wake:
		case <-again.C:
		}
		for w.round() {
			// Whoever was just answered is about to answer a caller and take the next call. Letting them run first makes
			// one write and one sync of what would have been several, at no cost when nobody is there.
			runtime.Gosched()
		}
		switch {
		case w.failed:
			again.Reset(f.options.RetryAfter)
		case w.isUnsigned():
			again.Reset(f.options.SignEvery)
		}
	}
	w.last()
	f.finish(s)
}

// finish gives everybody who still waits an answer.
func (f *File) finish(s Sink) {
	f.mu.Lock()
	left := f.queue
	f.queue = nil
	f.held, f.bytes = 0, 0
	f.mu.Unlock()
	lost := 0
	for _, e := range left {
		if e.done != nil {
			e.done <- ErrClosed
		} else {
			lost++
		}
	}
	err := s.Close()
	if lost > 0 {
		err = errors.Join(fmt.Errorf("%w: %d records were not written", ErrUnavailable, lost), err)
	}
	f.closeErr = err
	close(f.ended)
}

// writer is the state of the goroutine between two batches.
type writer struct {
	file    *File
	sink    Sink
	turner  turner  // nil: the sink has one file
	resumer Resumer // nil: the sink knows what happened
	batch   []*entry
	lines   []byte
	closing bool
	failed  bool // the last write; as long as it holds, the timer wakes us

	lastSigned time.Time
	checkpoint *Checkpoint // of the batch that is being written
	expired    []Dropped   // files that the batch being written says are dropped
	written    int         // notes in the batch that is being written
	counted    uint64      // what the batch being written says had no place
	doubt      *doubt
}

// doubt is a batch of which nobody knows whether it was written.
type doubt struct {
	head Head
	kept int // entries of it that stand in front of the queue
}

// round writes one batch. It says whether to go on at once: not when nothing
// waits, and after a failure only while somebody waits for an answer.
func (w *writer) round() bool {
	if w.doubt != nil {
		if err := w.resume(); err != nil {
			return w.refuse(err)
		}
	}
	if !w.take() && !w.hasOwn() {
		return false
	}
	if err := w.turn(); err != nil {
		return w.giveBack(err, Head{})
	}
	return w.put()
}

// put writes what was taken with what the log itself has to say.
func (w *writer) put() bool {
	head := w.encode()
	if head == w.file.head {
		return false
	}
	err := w.sink.Append(w.lines)
	w.failed = err != nil
	if err != nil {
		return w.giveBack(fmt.Errorf("%w: %w", ErrUnavailable, err), head)
	}
	w.settle(head)
	return true
}

// refuse answers everybody who waits: nothing can be written before the sink says what it has.
func (w *writer) refuse(err error) bool {
	w.take()
	w.failed = true
	return w.giveBack(fmt.Errorf("%w: %w", ErrUnavailable, err), Head{})
}

// resume finds out whether the batch in doubt was written. If it was, what was kept of it for another try is done. Until
// then what was kept stands in front of the queue, since only what somebody waits for is ever taken out of it.
func (w *writer) resume() error {
	head, err := w.resumer.Resume()
	if err != nil {
		return err
	}
	if head == (Head{}) {
		head.Digest = noDigest
	}
	f, d := w.file, w.doubt
	switch head {
	case f.head:
		w.doubt = nil
		return nil
	case d.head:
		w.doubt = nil
		w.adopt(d)
		return nil
	}
	return fmt.Errorf("another writer has the log: its end is line %d, and this process wrote up to %d", head.Seq, f.head.Seq)
}

// adopt takes a batch as written that was given up for lost.
func (w *writer) adopt(d *doubt) {
	f := w.file
	f.mu.Lock()
	f.stats.Records += d.head.Seq - f.head.Seq
	f.stats.Batches++
	f.head = d.head
	f.unrecorded -= w.counted
	for _, e := range f.queue[:d.kept] {
		f.held--
		f.bytes -= e.size
		e.encoder.release()
	}
	f.queue = append(f.queue[:0], f.queue[d.kept:]...)
	f.mu.Unlock()
	f.notes = f.notes[w.written:]
	w.settleOwn()
}

// take moves the first records of the queue to the batch.
func (w *writer) take() bool {
	f := w.file
	f.mu.Lock()
	defer f.mu.Unlock()
	w.closing = f.closed
	w.batch = w.batch[:0]
	n, size := 0, noteRoom
	for n < len(f.queue) {
		if size += f.queue[n].size + maxHead + 1; size > f.options.MaxBatch && n > 0 {
			break
		}
		n++
	}
	w.batch = append(w.batch, f.queue[:n]...)
	rest := copy(f.queue, f.queue[n:])
	clear(f.queue[rest:])
	f.queue = f.queue[:rest]
	return n > 0
}

// encode builds the lines and gives the head that they lead to: what the log itself has to say first, then the records,
// then a signature if one is due.
func (w *writer) encode() Head {
	f := w.file
	head := f.head // only this goroutine changes it
	w.lines, w.checkpoint = w.lines[:0], nil
	w.written = len(f.notes)
	for _, n := range f.notes {
		head = w.note(head, n)
	}
	f.mu.Lock()
	w.counted = f.unrecorded
	f.mu.Unlock()
	if w.counted > 0 {
		head = w.note(head, &Record{Kind: KindUnrecorded, Unrecorded: w.counted})
	}
	for _, e := range w.batch {
		head = w.line(head, e.encoder.buf)
	}
	return w.sign(head)
}

func (w *writer) line(head Head, members []byte) Head {
	start := len(w.lines)
	w.lines = appendHead(w.lines, head.Seq+1, head.Digest)
	w.lines = append(w.lines, members...)
	head = Head{Seq: head.Seq + 1, Digest: lineDigest(w.lines[start:])}
	w.lines = append(w.lines, '\n')
	return head
}

// note writes a record of the log itself.
func (w *writer) note(head Head, r *Record) Head {
	r.Time = w.file.options.Clock.Now()
	e := encoders.Get().(*encoder)
	defer e.release()
	if err := e.record(r); err != nil {
		w.file.options.Warn(fmt.Errorf("a %s record of the log: %w", r.Kind, err)) // cannot be: it holds what this package put there
		return head
	}
	return w.line(head, e.buf)
}

// settle makes the head known before anybody hears of success.
func (w *writer) settle(head Head) {
	f := w.file
	written := head.Seq - f.head.Seq
	f.mu.Lock()
	f.head = head
	f.failing = false
	f.stats.Available = true
	f.stats.Batches++
	f.stats.Records += written
	f.unrecorded -= w.counted
	for _, e := range w.batch {
		f.held--
		f.bytes -= e.size
	}
	f.mu.Unlock()
	for i, e := range w.batch {
		e.encoder.release()
		if e.done != nil {
			e.done <- nil
		}
		w.batch[i] = nil
	}
	w.batch = w.batch[:0]
	f.notes = f.notes[w.written:]
	w.settleOwn()
	if cap(w.lines) > maxBatch/4 {
		w.lines = nil
	}
}

// giveBack answers those who wait, and puts the others back in front. head is where the batch would have led.
func (w *writer) giveBack(err error, head Head) bool {
	f := w.file
	w.failed = true
	f.mu.Lock()
	var keep []*entry
	for _, e := range w.batch {
		if e.done == nil {
			keep = append(keep, e)
			continue
		}
		f.held--
		f.bytes -= e.size
	}
	if w.resumer != nil && head != (Head{}) {
		w.doubt = &doubt{head: head, kept: len(keep)}
	}
	f.queue = append(keep, f.queue...)
	f.failing = true
	f.stats.Available = false
	f.stats.Failures++
	more := false
	for _, e := range f.queue {
		more = more || e.done != nil
	}
	f.mu.Unlock()
	for i, e := range w.batch {
		if e.done != nil {
			e.encoder.release()
			e.done <- err
		}
		w.batch[i] = nil
	}
	w.batch = w.batch[:0]
	return more
}
