package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Options of Open.
type Options struct {
	// Write opens the store to keep calls too. The folder is made if it is not there.
	Write bool
	// Recipient is a file with the public key that states are encrypted for. Without it nothing can be kept encrypted.
	Recipient string
	// Identity is a file with the private key, to read what is encrypted.
	Identity string
	// MaxAge is how long calls are kept, 30 days by default. They go file by file, so some stay up to a day longer.
	MaxAge time.Duration
	// MaxBytes is how much the folder may hold, 1 GiB by default. The oldest files go first.
	MaxBytes int64
	// Queue is how many calls may wait for the disk, 1024 by default, and QueueBytes how many bytes they may have, 64 MiB
	// by default.
	Queue, QueueBytes int
	// Clock is the time; the system's by default.
	Clock clock.PassiveClock
	// Failed is told, from one goroutine, what could not be kept, and why; nil tells nobody.
	Failed func(error)
}

func (o *Options) setDefaults() {
	if o.MaxAge <= 0 {
		o.MaxAge = 30 * 24 * time.Hour
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 1 << 30
	}
	if o.Queue <= 0 {
		o.Queue = 1024
	}
	if o.QueueBytes <= 0 {
		o.QueueBytes = 64 << 20
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
}

// place is where a line stands.
type place struct {
	file   string
	offset int64
	length int
}

// line is one kept state in a file.
type line struct {
	Digest string    `json:"digest"`
	Time   time.Time `json:"time"`
	Mode   Mode      `json:"mode"`
	// State as it is, for Plain.
	State json.RawMessage `json:"state,omitempty"`
	// KID of the key and Box, what is sealed for it, for Encrypted.
	KID string `json:"kid,omitempty"`
	Box []byte `json:"box,omitempty"`
}

// Store is a folder of kept calls. Its methods may be called concurrently. Several stores, of several processes too, may
// have one folder: each writes files of its own.
type Store struct {
	dir       string
	options   Options
	recipient atomic.Pointer[recipient] // nil: none
	identity  *identity
	work      chan kept
	ended     chan struct{}
	writer    writer

	mu      sync.RWMutex
	index   map[string]place
	waiting int // bytes on their way
	closed  bool
}

// kept is a state on its way to the disk. done is set to wait for all before it.
type kept struct {
	line line
	done chan struct{}
}

const prefix, suffix = "states-", ".jsonl"

// Open opens a folder of kept calls. Without Options.Write it is only read.
func Open(dir string, o Options) (*Store, error) {
	o.setDefaults()
	s := &Store{dir: dir, options: o, index: map[string]place{}, ended: make(chan struct{}), closed: !o.Write}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	var err error
	if o.Identity != "" {
		if s.identity, err = loadIdentity(o.Identity); err != nil {
			return nil, err
		}
	}
	if o.Write {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("making the folder for kept calls: %w", err)
		}
	}
	files, err := s.files()
	if err != nil {
		return nil, fmt.Errorf("reading kept calls: %w", err)
	}
	for _, f := range files {
		if err := s.read(f); err != nil {
			return nil, fmt.Errorf("reading kept calls: %w", err)
		}
	}
	if !o.Write {
		close(s.ended)
		return s, nil
	}
	s.writer = writer{store: s}
	s.work = make(chan kept, o.Queue)
	s.writer.retain()
	go s.run()
	return s, nil
}

// Reload reads the public key anew, after the pair was rotated. After an error the store encrypts for the one before.
func (s *Store) Reload() error {
	if s.options.Recipient == "" {
		return nil
	}
	r, err := loadRecipient(s.options.Recipient)
	if err != nil {
		return err
	}
	s.recipient.Store(r)
	return nil
}

// Recipient names the key that states are encrypted for, empty if there is none.
func (s *Store) Recipient() string {
	if r := s.recipient.Load(); r != nil {
		return r.kid
	}
	return ""
}

// files are the names of the files in the folder, oldest first.
func (s *Store) files() ([]string, error) {
	all, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range all {
		if strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) && e.Type().IsRegular() {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out, nil
}

// read takes a file into the index. Lines that a crash tore are skipped: nothing refers to them.
func (s *Store) read(name string) error {
	f, err := os.Open(filepath.Join(s.dir, filepath.Base(name)))
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	return eachLine(f, func(offset int64, text []byte) {
		if digest, ok := digestOf(text); ok {
			s.index[digest] = place{name, offset, len(text)}
		}
	})
}

// Put keeps a state under a digest, without waiting for the disk: after a crash the last ones may be missing. A digest
// that is kept already is not kept again. It takes JSON and does not hold on to it after it was written.
func (s *Store) Put(mode Mode, digest string, state []byte) error {
	switch {
	case mode != Plain && mode != Encrypted:
		return fmt.Errorf("mode %q is none", mode)
	case mode == Encrypted && s.recipient.Load() == nil:
		return fmt.Errorf("%w: the store has no public key to encrypt for", ErrNoKey)
	case len(state) > MaxState:
		return ErrTooLarge
	case !json.Valid(state):
		return fmt.Errorf("%w: it is not JSON", ErrCorrupt)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if _, ok := s.index[digest]; ok {
		return nil
	}
	if s.waiting+len(state) > s.options.QueueBytes {
		return ErrFull
	}
	select {
	case s.work <- kept{line: line{Digest: digest, Time: s.options.Clock.Now().UTC(), Mode: mode, State: state}}:
		s.index[digest] = place{} // on its way
		s.waiting += len(state)
		return nil
	default:
		return ErrFull
	}
}

// Keeps says whether the store can keep a state so.
func (s *Store) Keeps(mode Mode) bool {
	return s.options.Write && (mode == Plain || mode == Encrypted && s.recipient.Load() != nil)
}

// Get returns the JSON of the state that is kept under a digest.
func (s *Store) Get(digest string) ([]byte, error) {
	s.mu.RLock()
	at, ok := s.index[digest]
	s.mu.RUnlock()
	if !ok || at.file == "" {
		return nil, ErrNotFound
	}
	text := make([]byte, at.length)
	f, err := os.Open(filepath.Join(s.dir, filepath.Base(at.file)))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNotFound // its time was over
	}
	if err != nil {
		return nil, fmt.Errorf("reading a kept call: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	if _, err := f.ReadAt(text, at.offset); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	var l line
	if err := json.Unmarshal(text, &l); err != nil || l.Digest != digest {
		return nil, ErrCorrupt
	}
	return s.open(&l)
}

func (s *Store) open(l *line) ([]byte, error) {
	switch l.Mode {
	case Plain:
		return l.State, nil
	case Encrypted:
		if s.identity == nil {
			return nil, fmt.Errorf("%w: it is for key %s", ErrNoKey, l.KID)
		}
		if _, ok := s.identity.keys[l.KID]; !ok {
			return nil, fmt.Errorf("%w: it is for key %s, and the key given is %s", ErrNoKey, l.KID, s.identity.kid)
		}
		return s.identity.open(l.KID, l.Digest, l.Box)
	}
	return nil, ErrCorrupt
}

// Flush waits until all that was put is written, or was found not to be writable.
func (s *Store) Flush(ctx context.Context) error {
	s.mu.RLock()
	closed := s.closed
	s.mu.RUnlock()
	if closed {
		return nil
	}
	k := kept{done: make(chan struct{})}
	select {
	case s.work <- k:
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-k.done:
		return nil
	case <-s.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Len is how many states are kept or on their way.
func (s *Store) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.index)
}

// Close writes what waits and ends the store.
func (s *Store) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if first {
		s.work <- kept{} // the end: nothing is put behind it
	}
	<-s.ended
	return s.writer.err
}

var _ io.Closer = (*Store)(nil)
