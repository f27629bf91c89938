package approval

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/audit/linefile"
)

// ErrCorrupt says that the journal holds what no store has written.
var ErrCorrupt = errors.New("approvals' journal is corrupt")

// File is a Store that outlives its process: a journal of events, of which each
// is durable before Raise, Decide or Consume returns.
//
// An event that was torn off by a crash is one whose call never returned, so
// dropping it takes back nothing that anybody was told. A complete line that
// does not fit is another matter: what it said may have been that an approval
// was used. Then the journal is not opened at all.
type File struct {
	store
	lines *linefile.File
}

var _ Store = (*File)(nil)

// OpenFile opens or creates a journal with mode 0600. No second process can
// have it open meanwhile.
func OpenFile(path string, c clock.PassiveClock) (*File, error) {
	lines, _, err := linefile.Open(path, linefile.Options{MaxTorn: linefile.MaxLine, Now: c.Now})
	if err != nil {
		return nil, fmt.Errorf("opening approvals: %w", err)
	}
	f := &File{store: store{clock: c, book: newBook()}, lines: lines}
	f.journal = f.write
	if err := f.replay(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening approvals: %w", err), lines.Close())
	}
	return f, nil
}

func (f *File) replay() error {
	return f.lines.Lines(func(line []byte) error {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return ErrCorrupt // the error could quote arguments
		}
		if err := f.book.apply(e); err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return nil
	})
}

func (f *File) write(events ...event) error {
	var lines []byte
	for _, e := range events {
		line, err := encode(e)
		if err != nil {
			return fmt.Errorf("encoding event: %w", err)
		}
		lines = append(append(lines, line...), '\n')
	}
	return f.lines.Append(lines)
}

// Close closes the journal. Afterwards nothing can be raised, decided or consumed.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.flush(), f.lines.Close())
}
