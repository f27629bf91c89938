package approval

import (
	"errors"
	"fmt"
	"os"

	"gatewright.dev/gatewright/internal/audit/linefile"
)

// A journal is compacted as follows. A crash after any step leaves the old journal or the new one at the path, and both
// say the same:
//
//	1 the book is written to PATH.compact, which is locked, and made durable      crash: PATH.compact is removed
//	2 if lines were ignored, the old journal also stays as PATH.unsealed-TIME     crash: the same
//	3 PATH.compact is renamed to PATH                                             crash: old or new
//	4 the folder is made durable; until then nothing is appended                  crash: old or new

func leftover(path string) string { return path + ".compact" }

// removeLeftover removes what an earlier compaction has not finished. Who holds the journal may.
func removeLeftover(path string) error {
	err := os.Remove(leftover(path)) //nolint:gosec // G703: the operator names the journal
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing what a compaction has left: %w", err)
	}
	return nil
}

// minWaste is how many lines have to be of no use, beside more than half of all, before a change tidies up behind itself.
const minWaste = 256

func (f *File) compactIfWorthwhile() {
	f.mu.RLock()
	needed := 3 * len(f.book.byID)
	for _, all := range f.book.raises {
		needed += len(all)
	}
	isWorthwhile := f.book.forgotten > 0 && f.count > minWaste && f.count > 2*needed
	f.mu.RUnlock()
	if isWorthwhile {
		_ = f.compact() // the journal is as good as before, and the next change tries again
	}
}

// compact replaces the journal by one that leads to the same book. Its caller holds change.
func (f *File) compact() error {
	if err := errors.Join(f.settleMove(), f.flush()); err != nil {
		return fmt.Errorf("compacting approvals: %w", err)
	}
	f.mu.RLock()
	events, forgotten := f.book.events(), f.book.forgotten
	f.mu.RUnlock()
	lines, head, err := f.rewrite(events)
	if err != nil {
		return fmt.Errorf("compacting approvals: %w", errors.Join(err, removeLeftover(f.path)))
	}
	old := f.lines
	f.lines, f.head, f.count, f.isMoved, f.hasForeign = lines, head, len(events), true, false
	f.mu.Lock()
	f.book.forgotten -= forgotten
	f.mu.Unlock()
	f.step("renamed")
	err = errors.Join(f.settleMove(), old.Close())
	f.step("durable")
	if err != nil {
		return fmt.Errorf("compacting approvals: %w", err)
	}
	return nil
}

// chunk bounds what is written at once, in bytes.
const chunk = 1 << 20

// rewrite makes the new journal and puts it in the old one's place.
func (f *File) rewrite(events []event) (lines *linefile.File, head string, err error) {
	if err := removeLeftover(f.path); err != nil {
		return nil, "", err
	}
	lines, _, err = linefile.Open(leftover(f.path), linefile.Options{MaxTorn: linefile.MaxLine, Now: f.clock.Now})
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lines.Close())
		}
	}()
	f.step("opened")
	if head, err = f.fill(lines, events); err != nil {
		return nil, "", err
	}
	f.step("written")
	if f.hasForeign {
		if err := f.keepForeign(); err != nil {
			return nil, "", err
		}
		f.step("kept")
	}
	return lines, head, lines.Replace(f.path)
}

func (f *File) fill(lines *linefile.File, events []event) (head string, err error) {
	var data []byte
	for i := range events {
		var text []byte
		if text, head, err = f.encode(head, events[i:i+1]); err != nil {
			return "", err
		}
		data = append(data, text...)
		if len(data) < chunk && i < len(events)-1 {
			continue
		}
		if err := lines.Append(data); err != nil {
			return "", err
		}
		data = data[:0]
		f.step("filled")
	}
	return head, nil
}

// keepForeign keeps a journal with lines that are not the gate's: somebody has to look at them.
func (f *File) keepForeign() error {
	name := f.path + ".unsealed-" + f.clock.Now().UTC().Format("20060102T150405.000000000Z")
	if err := os.Link(f.path, name); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("keeping a journal with lines that are not sealed: %w", err)
	}
	return nil
}
