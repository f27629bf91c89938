package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/audit/linefile"
)

// ErrCorrupt says that the journal lacks a line or holds one, sealed by its gate, that cannot follow what is before it.
var ErrCorrupt = errors.New("approvals' journal is corrupt")

// File is a Store that outlives its process: a journal of events, of which each
// is durable before Raise, Decide or Consume returns.
//
// Every line is sealed by the gate's key and names the line before. An event
// that was torn off by a crash is one whose call never returned, so dropping it
// takes back nothing that anybody was told. A line without a valid seal is not
// ours: it is ignored, whatever it says, and reported. A sealed line that does
// not follow what is before it is another matter: what is missing may have been
// that an approval was used. Then the journal is not opened at all.
type File struct {
	store
	path    string
	lines   *linefile.File
	head    string // digest of the last line's seal
	count   int    // lines in the journal
	ignored []Ignored
	// hasForeign says that the journal on the disk holds lines that were ignored.
	hasForeign bool
	// isMoved says that the journal was replaced and that this may not be durable yet.
	isMoved bool
	// step is told how far a compaction has come, so that a test can look at the disk there.
	step func(string)
}

var _ Store = (*File)(nil)

// OpenFile opens or creates a journal with mode 0600. No second process can
// have it open meanwhile.
func OpenFile(path string, c clock.PassiveClock, seals *Seals) (*File, error) {
	options := linefile.Options{MaxTorn: linefile.MaxLine, Now: c.Now}
	lines, _, err := linefile.Open(path, options)
	if err != nil {
		return nil, fmt.Errorf("opening approvals: %w", err)
	}
	f := &File{store: store{clock: c, seals: seals, book: newBook()}, path: path, lines: lines, step: func(string) {}}
	f.journal, f.tidy = f.write, f.compactIfWorthwhile
	err = removeLeftover(path)
	if err == nil {
		err = f.replay()
	}
	if err == nil {
		err = f.pass(c.Now())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening approvals: %w", err), f.lines.Close())
	}
	f.hasForeign = len(f.ignored) > 0
	if f.hasForeign || f.book.forgotten > 0 {
		_ = f.compact() // what cannot be tidied up now stays as it is, and is ignored again
	}
	return f, nil
}

// Ignored are the lines that were not taken as the gate's when the journal was opened.
func (f *File) Ignored() []Ignored { return f.ignored }

func (f *File) write(events ...event) error {
	if err := f.settleMove(); err != nil {
		return err
	}
	data, head, err := f.encode(f.head, events)
	if err != nil {
		return err
	}
	if err := f.lines.Append(data); err != nil {
		return err
	}
	f.head, f.count = head, f.count+len(events)
	return nil
}

// settleMove makes durable that the journal was replaced, before anything is written that must not be lost with it.
func (f *File) settleMove() error {
	if !f.isMoved {
		return nil
	}
	if err := f.lines.SyncDir(); err != nil {
		return err
	}
	f.isMoved = false
	return nil
}

// encode writes events as sealed lines that follow a head, and gives the head after them.
func (f *File) encode(head string, events []event) ([]byte, string, error) {
	var data []byte
	for _, e := range events {
		e.Prev = head
		body, err := encode(e)
		if err != nil {
			return nil, "", fmt.Errorf("encoding event: %w", err)
		}
		l := line{V: 2, Event: body}
		if l.Seal, err = f.seals.sign(eventMessage(body)); err != nil {
			return nil, "", fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		text, err := encode(l)
		if err != nil {
			return nil, "", fmt.Errorf("encoding event: %w", err)
		}
		data = append(append(data, text...), '\n')
		head = headOf(l.Seal)
	}
	return data, head, nil
}

// Close closes the journal. Afterwards nothing can be raised, decided or consumed.
func (f *File) Close() error {
	f.change.Lock()
	defer f.change.Unlock()
	return errors.Join(f.flush(), f.lines.Close())
}

// Tidy lets time do its work, writes what it has done and drops from the journal what ended more than an hour ago, with
// all that it held of calls. A gate calls it now and then, since otherwise that waits for the next change.
func (f *File) Tidy(ctx context.Context) error {
	if err := f.look(ctx, func(*book, time.Time) {}); err != nil {
		return err
	}
	f.change.Lock()
	defer f.change.Unlock()
	if err := f.flush(); err != nil {
		return err
	}
	if f.forgotten() == 0 {
		return nil
	}
	return f.compact()
}

func (f *File) forgotten() int {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.book.forgotten
}

// decodeLine gives the parts of a line. A line that is no JSON is nobody's: something has damaged the file.
func decodeLine(text []byte) (line, event, error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return l, event{}, ErrCorrupt // the error could quote arguments
	}
	var e event
	if err := json.Unmarshal(l.Event, &e); err != nil {
		return l, event{}, nil // of another version, or of another hand
	}
	return l, e, nil
}
