package capture

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// A file is closed when it is as large or as old as this, so that retention, which removes whole files, is not far off.
const (
	maxFile    = 64 << 20
	maxFileAge = 24 * time.Hour
)

// maxLine is the longest line: a state in base64 with what stands around it.
const maxLine = MaxState*4/3 + 1<<10

// writer is the state of the goroutine that writes.
type writer struct {
	store *Store
	file  *os.File
	size  int64
	since time.Time
	torn  bool // the last write failed: what follows starts on a line of its own
	err   error
}

func (s *Store) run() {
	defer close(s.ended)
	for k := range s.work {
		switch {
		case k.done != nil:
			close(k.done)
		case k.line.Digest == "":
			s.writer.err = s.writer.close()
			return
		default:
			s.keep(&k.line)
		}
	}
}

// keep writes one state. What cannot be written is no longer in the index, so that it is tried again when it comes again.
func (s *Store) keep(l *line) {
	size := len(l.State)
	at, err := s.writer.write(l)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting -= size
	if err != nil {
		delete(s.index, l.Digest)
		s.options.Failed(fmt.Errorf("keeping a call: %w", err))
		return
	}
	s.index[l.Digest] = at
}

func (w *writer) write(l *line) (place, error) {
	if l.Mode == Encrypted {
		recipient := w.store.recipient.Load()
		box, err := recipient.seal(l.Digest, l.State)
		if err != nil {
			return place{}, err
		}
		l.State, l.Box, l.KID = nil, box, recipient.kid
	}
	text, err := json.Marshal(l)
	if err != nil {
		return place{}, err
	}
	if err := w.next(l.Time); err != nil {
		return place{}, err
	}
	if w.torn {
		text = append([]byte{'\n'}, text...)
	}
	n, err := w.file.Write(append(text, '\n'))
	at := place{filepath.Base(w.file.Name()), w.size, len(text)}
	if w.torn {
		at.offset, at.length = at.offset+1, at.length-1
	}
	w.size += int64(n)
	w.torn = err != nil
	return at, err
}

// next makes a new file when the one in use is full, old or not there.
func (w *writer) next(now time.Time) error {
	if w.file != nil && w.size < maxFile && now.Sub(w.since) < maxFileAge {
		return nil
	}
	if err := w.close(); err != nil {
		return err
	}
	w.retain()
	stamp := now.UTC().Format("20060102T150405.000000000Z")
	for i := 0; ; i++ {
		name := fmt.Sprintf("%s%s-%03d%s", prefix, stamp, i, suffix)
		f, err := os.OpenFile(filepath.Join(w.store.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
		if errors.Is(err, os.ErrExist) && i < 999 {
			continue
		}
		if err != nil {
			return err
		}
		w.file, w.size, w.since, w.torn = f, 0, now, false
		return nil
	}
}

func (w *writer) close() error {
	if w.file == nil {
		return nil
	}
	f := w.file
	w.file = nil
	return errors.Join(f.Sync(), f.Close())
}

// retain removes files that are too old, and the oldest while there is too much. The newest stays.
func (w *writer) retain() {
	s := w.store
	names, err := s.files()
	if err != nil {
		s.options.Failed(fmt.Errorf("looking for calls to drop: %w", err))
		return
	}
	var total int64
	infos := make([]os.FileInfo, len(names))
	for i, name := range names {
		if infos[i], err = os.Stat(filepath.Join(s.dir, name)); err == nil {
			total += infos[i].Size()
		}
	}
	now := s.options.Clock.Now()
	for i, name := range names {
		if infos[i] == nil || i == len(names)-1 && now.Sub(infos[i].ModTime()) <= s.options.MaxAge {
			continue
		}
		if now.Sub(infos[i].ModTime()) <= s.options.MaxAge && total <= s.options.MaxBytes {
			continue
		}
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
			s.options.Failed(fmt.Errorf("dropping kept calls: %w", err))
			continue
		}
		total -= infos[i].Size()
		s.forget(name)
	}
}

func (s *Store) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for digest, at := range s.index {
		if at.file == name {
			delete(s.index, digest)
		}
	}
}

// eachLine calls each with every whole line that is not too long.
func eachLine(r io.Reader, each func(offset int64, text []byte)) error {
	in := bufio.NewReaderSize(r, 1<<20)
	var offset int64
	var long []byte
	for {
		part, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return err
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(long) <= maxLine {
				long = append(long, part...)
			}
			offset += int64(len(part))
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil // no line feed: torn, or being written
		}
		start := offset - int64(len(long))
		text := part
		if len(long) > 0 {
			text = append(long, part...)
		}
		if len(text) <= maxLine {
			each(start, text[:len(text)-1])
		}
		offset += int64(len(part))
		long = long[:0]
	}
}

// digestOf reads the digest at the start of a line.
func digestOf(text []byte) (string, bool) {
	rest, ok := bytes.CutPrefix(text, []byte(`{"digest":"`))
	if !ok || text[len(text)-1] != '}' {
		return "", false
	}
	digest, _, ok := bytes.Cut(rest, []byte{'"'})
	return string(digest), ok
}
