package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/utils/clock"

	"gatewright.dev/gatewright/internal/audit/linefile"
)

// maxCheckpoints is how long a file of checkpoints gets, about two weeks of a busy gate. What is older goes: each
// checkpoint vouches for all lines before it.
const maxCheckpoints = 32 << 20

// Outside keeps checkpoints in a file of their own, away from the goroutine that writes the log. Methods may be called
// concurrently.
type Outside struct {
	path  string
	clock clock.PassiveClock
	warn  func(error)
	work  chan Checkpoint
	ended chan struct{}
	last  Checkpoint

	mu     sync.Mutex
	closed bool
	lines  *linefile.File
}

// OpenOutside opens or creates a file of checkpoints, mode 0600. warn is told what could not be written.
func OpenOutside(path string, c clock.PassiveClock, warn func(error)) (*Outside, error) {
	o := &Outside{path: path, clock: c, warn: warn, work: make(chan Checkpoint, 16), ended: make(chan struct{})}
	if err := o.open(); err != nil {
		return nil, fmt.Errorf("opening checkpoints: %w", err)
	}
	last, err := o.lines.Last()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening checkpoints: %w", err), o.lines.Close())
	}
	if last != nil {
		if o.last, err = ParseCheckpoint(last); err != nil {
			return nil, errors.Join(fmt.Errorf("opening checkpoints: %w", err), o.lines.Close())
		}
	}
	go o.run()
	return o, nil
}

func (o *Outside) open() (err error) {
	isCheckpoint := func(line []byte) bool { _, err := ParseCheckpoint(line); return err == nil }
	o.lines, _, err = linefile.Open(o.path, linefile.Options{Valid: isCheckpoint, MaxTorn: 4 << 10, Now: o.clock.Now})
	return err
}

// Last is the last checkpoint when the file was opened; its Seq is 0 if there was none.
func (o *Outside) Last() Checkpoint { return o.last }

// Keep takes a checkpoint without waiting. One that finds no place is passed over, since the next one says more.
func (o *Outside) Keep(c Checkpoint) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	select {
	case o.work <- c:
	default:
	}
}

func (o *Outside) run() {
	defer close(o.ended)
	for c := range o.work {
		if err := o.write(c); err != nil {
			o.warn(fmt.Errorf("keeping a checkpoint of the audit log: %w", err))
		}
	}
}

func (o *Outside) write(c Checkpoint) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if o.lines == nil {
		if err := o.open(); err != nil {
			return err
		}
	}
	if err := o.lines.Append(append(text, '\n')); err != nil {
		return err
	}
	if o.lines.Size() < maxCheckpoints {
		return nil
	}
	// A full file makes room for a new one. The checkpoint that is written next vouches for all before it.
	old := o.path + ".old"
	if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	err = errors.Join(o.lines.Rename(old), o.lines.Close())
	o.lines = nil
	return err
}

// Close writes what waits and closes the file.
func (o *Outside) Close() error {
	o.mu.Lock()
	if !o.closed {
		o.closed = true
		close(o.work)
	}
	o.mu.Unlock()
	<-o.ended
	if o.lines == nil {
		return nil
	}
	return o.lines.Close()
}

// ReadCheckpoints reads a file of checkpoints. A last line that is not finished is left out: a gate may be writing it.
func ReadCheckpoints(path string) ([]Checkpoint, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	var out []Checkpoint
	in := bufio.NewReaderSize(f, 4<<10)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, n, err)
		}
		c, err := ParseCheckpoint(line)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, n, err)
		}
		out = append(out, c)
	}
}
