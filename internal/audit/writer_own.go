package audit

import "fmt"

// isUnsigned says whether there are records that no checkpoint covers.
func (w *writer) isUnsigned() bool {
	return w.file.options.Signer != nil && w.file.head.Seq > w.file.signed
}

// isDue says whether the lines up to head have to be signed now.
func (w *writer) isDue(head Head) bool {
	f := w.file
	if f.options.Signer == nil || head.Seq <= f.signed {
		return false
	}
	return head.Seq-f.signed >= uint64(f.options.SignRecords) || len(w.expired) > 0 ||
		f.options.Clock.Since(w.lastSigned) >= f.options.SignEvery
}

// hasOwn says whether the log has something to say without a record of anybody else.
func (w *writer) hasOwn() bool { return len(w.file.notes) > 0 || w.isDue(w.file.head) }

// sign adds a checkpoint over everything before it, if one is due.
func (w *writer) sign(head Head) Head {
	if !w.isDue(head) {
		return head
	}
	return w.signNow(head)
}

func (w *writer) signNow(head Head) Head {
	c := w.file.options.Signer.Checkpoint(head, w.file.options.Clock.Now())
	w.checkpoint = &c
	return w.note(head, &Record{Kind: KindCheckpoint, Checkpoint: &c})
}

// settleOwn does what waited for a batch to be durable.
func (w *writer) settleOwn() {
	f := w.file
	if w.checkpoint != nil {
		f.signed = f.head.Seq // the checkpoint itself needs no other
		w.lastSigned = f.options.Clock.Now()
		if f.options.Signed != nil {
			f.options.Signed(*w.checkpoint)
		}
	}
	if f.options.Mirror != nil {
		f.options.Mirror(w.lines)
	}
	for _, d := range w.expired {
		if err := w.turner.remove(d); err != nil {
			f.options.Warn(fmt.Errorf("removing %s of the audit log: %w", d.File, err))
			break // the rest has to stay in one piece
		}
	}
	w.expired = nil
}

// turn begins a new file if the one in use is full. What is in the old one is signed there first. A file that cannot be
// rotated is appended to further: records that are kept are worth more than files of a certain size.
func (w *writer) turn() error {
	if w.turner == nil || !w.turner.due(w.file.options.Clock.Now()) {
		return nil
	}
	f := w.file
	if w.isUnsigned() {
		batch := w.batch
		w.batch = nil
		w.lines = w.lines[:0]
		w.written, w.counted = 0, 0
		head := w.signNow(f.head)
		if err := w.sink.Append(w.lines); err != nil {
			w.batch, w.checkpoint = batch, nil
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		w.settle(head)
		w.batch = batch
	}
	rotated, err := w.turner.turn(f.head)
	if rotated != nil {
		f.notes = append([]*Record{{Kind: KindRotated, Rotated: rotated}}, f.notes...)
	}
	if err != nil {
		f.options.Warn(fmt.Errorf("rotating the audit log: %w", err))
		return nil
	}
	w.retain()
	return nil
}

// retain says in the log which files go; they go once that is durable.
func (w *writer) retain() {
	if w.turner == nil {
		return
	}
	expired, err := w.turner.expired(w.file.options.Clock.Now())
	if err != nil {
		w.file.options.Warn(fmt.Errorf("looking for old files of the audit log: %w", err))
		return
	}
	w.expired = expired
	for i := range expired {
		w.file.notes = append(w.file.notes, &Record{Kind: KindDropped, Dropped: &expired[i]})
	}
}

// last signs what no checkpoint covers yet, before the log is closed. If that fails nothing is lost but the signature.
func (w *writer) last() {
	if w.failed || w.doubt != nil || !w.isUnsigned() {
		return
	}
	w.batch, w.lines = w.batch[:0], w.lines[:0]
	w.written, w.counted = 0, 0
	head := w.signNow(w.file.head)
	if err := w.sink.Append(w.lines); err != nil {
		w.file.options.Warn(fmt.Errorf("signing the end of the audit log: %w", err))
		return
	}
	w.settle(head)
}
