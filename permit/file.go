package permit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/audit/linefile"
)

var (
	// ErrCorrupt says that a journal holds what no store has written.
	ErrCorrupt = errors.New("journal of used permits is corrupt")
	// ErrLocked says that another process has the journal.
	ErrLocked = linefile.ErrLocked
)

// segmentLines is how many lines a segment has before the other one is taken, if all in it is over: about 200 KiB.
const segmentLines = 2048

// File is a Store that outlives its process, for a tool server of one replica. A use is durable before Use returns.
//
// It has two segments, PATH.a and PATH.b, and appends to one until that is long and all that the other says is over;
// then the other is begun anew. PATH itself is empty and carries the lock, since a segment is replaced:
//
//	PATH.a  ├── all over ──┤                     removed and begun anew ├──▶
//	PATH.b                 ├── in force, long ──┤
//
// A line that a crash has torn off is a use whose call never returned, so its permit has let nothing run. A complete
// line that does not fit may have been a use: then the journal is not opened at all.
type File struct {
	clock clock.PassiveClock
	lock  *linefile.File

	mu       sync.Mutex
	ledger   *ledger
	segments [2]segment
	current  int
	limit    int // lines of a segment
	closed   bool
}

// segment is one file of the journal.
type segment struct {
	path  string
	file  *linefile.File
	lines int
	last  time.Time // when all of its lines are over
}

var _ Store = (*File)(nil)

// OpenFile opens or creates a journal with mode 0600. No second process can have it open meanwhile. A nil
// clock is the system's.
func OpenFile(path string, c clock.PassiveClock) (*File, error) {
	c = orSystem(c)
	lock, _, err := linefile.Open(path, fileOptions(c))
	if err != nil {
		return nil, fmt.Errorf("opening used permits: %w", err)
	}
	f := &File{clock: c, lock: lock, ledger: newLedger(maxUsed), limit: segmentLines}
	for i, suffix := range []string{".a", ".b"} {
		f.segments[i].path = path + suffix
		if err := f.load(&f.segments[i]); err != nil {
			return nil, errors.Join(fmt.Errorf("opening used permits: %w", err), f.Close())
		}
	}
	if f.segments[1].last.After(f.segments[0].last) {
		f.current = 1
	}
	return f, nil
}

func fileOptions(c clock.PassiveClock) linefile.Options {
	const maxLine = 256 // an id of 128 bytes, a time, and the words between
	return linefile.Options{MaxTorn: maxLine, Now: c.Now}
}

func (f *File) load(s *segment) error {
	file, _, err := linefile.Open(s.path, fileOptions(f.clock))
	if err != nil {
		return err
	}
	s.file = file
	now := f.clock.Now()
	return file.Lines(func(line []byte) error {
		id, until, ok := parseUse(line)
		if !ok {
			return ErrCorrupt
		}
		s.count(until)
		if _, known := f.ledger.used[id]; !known && until.After(now) {
			f.ledger.add(id, until)
		}
		return nil
	})
}

func (s *segment) count(until time.Time) {
	s.lines++
	if until.After(s.last) {
		s.last = until
	}
}

// Use implements Store.
func (f *File) Use(ctx context.Context, jti string, until time.Time) error {
	if err := checkUse(ctx, jti); err != nil {
		return err
	}
	until = wholeSecond(until)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return linefile.ErrClosed
	}
	if err := f.ledger.check(jti, until, f.clock.Now()); err != nil {
		return err
	}
	if err := f.turn(); err != nil {
		return fmt.Errorf("beginning a segment of used permits: %w", err)
	}
	s := &f.segments[f.current]
	if err := s.file.Append(formatUse(jti, until)); err != nil {
		return fmt.Errorf("writing down a used permit: %w", err)
	}
	s.count(until)
	f.ledger.add(jti, until)
	return nil
}

// turn takes the other segment when this one is long and all in the other is over.
func (f *File) turn() error {
	other := &f.segments[1-f.current]
	if f.segments[f.current].lines < f.limit || other.last.After(f.ledger.horizon) {
		return nil
	}
	if other.file != nil {
		if err := other.file.Close(); err != nil {
			return err
		}
		other.file = nil
	}
	if err := os.Remove(other.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	file, _, err := linefile.Open(other.path, fileOptions(f.clock))
	if err != nil {
		return err
	}
	*other = segment{path: other.path, file: file}
	f.current = 1 - f.current
	return nil
}

// Close closes the journal. Afterwards nothing can be used.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	var errs []error
	for i := range f.segments {
		if file := f.segments[i].file; file != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(append(errs, f.lock.Close())...)
}

func wholeSecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}

// formatUse writes one line: used ID until SECONDS.
func formatUse(id string, until time.Time) []byte {
	return fmt.Appendf(nil, "used %s until %d\n", id, until.Unix())
}

// parseUse reads exactly what formatUse writes.
func parseUse(line []byte) (id string, until time.Time, ok bool) {
	words := strings.Split(string(line), " ")
	if len(words) != 4 || !isID(words[1]) {
		return "", time.Time{}, false
	}
	n, err := strconv.ParseInt(words[3], 10, 64)
	if err != nil || n <= 0 {
		return "", time.Time{}, false
	}
	id, until = words[1], time.Unix(n, 0)
	return id, until, string(formatUse(id, until)) == string(line)+"\n"
}
