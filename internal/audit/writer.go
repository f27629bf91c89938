package audit

import (
	"errors"
	"fmt"
	"time"
)

// maxBatch bounds what one write holds, and with it what a crash can tear off.
const maxBatch = 4 << 20

// write is the goroutine that owns the sink.
func (f *File) write(s sink) {
	w := writer{file: f, sink: s}
	retry := time.NewTimer(0)
	defer retry.Stop()
	for !w.closing {
		select {
		case <-f.wake:
		case <-retry.C:
		}
		for w.round() {
		}
		if w.failed {
			retry.Reset(f.options.RetryAfter)
		}
	}
	f.finish(s)
}

// finish gives everybody who still waits an answer.
func (f *File) finish(s sink) {
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
	sink    sink
	batch   []*entry
	lines   []byte
	closing bool
	failed  bool // the last write; as long as it holds, the timer wakes us
}

// round writes one batch. It says whether to go on at once: not when nothing
// waits, and after a failure only while somebody waits for an answer.
func (w *writer) round() bool {
	if !w.take() {
		return false
	}
	head := w.encode()
	err := w.sink.Append(w.lines)
	w.failed = err != nil
	if err != nil {
		return w.giveBack(fmt.Errorf("%w: %w", ErrUnavailable, err))
	}
	w.settle(head)
	return true
}

// take moves the first records of the queue to the batch.
func (w *writer) take() bool {
	f := w.file
	f.mu.Lock()
	defer f.mu.Unlock()
	w.closing = f.closed
	w.batch = w.batch[:0]
	n, size := 0, 0
	for n < len(f.queue) {
		if size += f.queue[n].size + maxHead + 1; size > maxBatch && n > 0 {
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

// encode builds the lines and gives the head that they lead to.
func (w *writer) encode() Head {
	head := w.file.head // only this goroutine changes it
	w.lines = w.lines[:0]
	for _, e := range w.batch {
		start := len(w.lines)
		w.lines = appendHead(w.lines, head.Seq+1, head.Digest)
		w.lines = append(w.lines, e.encoder.buf...)
		head = Head{Seq: head.Seq + 1, Digest: lineDigest(w.lines[start:])}
		w.lines = append(w.lines, '\n')
	}
	return head
}

// settle makes the head known before anybody hears of success.
func (w *writer) settle(head Head) {
	f := w.file
	f.mu.Lock()
	f.head = head
	f.failing = false
	f.stats.Available = true
	f.stats.Batches++
	f.stats.Records += uint64(len(w.batch))
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
	if cap(w.lines) > maxBatch/4 {
		w.lines = nil
	}
}

// giveBack answers those who wait, and puts the others back in front.
func (w *writer) giveBack(err error) bool {
	f := w.file
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
	return more
}
