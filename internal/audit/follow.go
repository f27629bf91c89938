package audit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// DefaultPoll is how often Follow looks for more.
const DefaultPoll = 200 * time.Millisecond

// Follow gives a reader of a log that does not end at the end of the file: it waits there until more comes or ctx ends,
// and goes on in the next file when this one is full. It gives whole lines only, so a line that is half written is waited
// for, and one that a crash tore off and the next start set aside was never read. If the file is moved, replaced or made
// shorter by anybody but a gate it fails with ErrReplaced. It does not close file.
func Follow(ctx context.Context, file *os.File, poll time.Duration) io.Reader {
	f := &follower{file: file, path: file.Name(), poll: cmp.Or(poll, DefaultPoll), window: make([]byte, MaxRecord+1)}
	return readerFunc(func(p []byte) (int, error) { return f.read(ctx, p) })
}

type readerFunc func(p []byte) (int, error)

// Read implements io.Reader.
func (r readerFunc) Read(p []byte) (int, error) { return r(p) }

type follower struct {
	file    *os.File
	isOurs  bool // file was opened here, and is closed here
	isGone  bool // file had no name any more, and no file went on from it, at the last look
	path    string
	poll    time.Duration
	window  []byte
	pending []byte // of window: whole lines that nobody read yet
	offset  int64  // behind pending
	seq     uint64 // of the last line that was read
}

func (f *follower) read(ctx context.Context, p []byte) (int, error) {
	for len(f.pending) == 0 {
		if err := ctx.Err(); err != nil {
			return 0, f.end(err)
		}
		if err := f.fill(); err != nil {
			return 0, f.end(err)
		}
		if len(f.pending) > 0 {
			break
		}
		if err := f.wait(ctx); err != nil {
			return 0, f.end(err)
		}
	}
	n := copy(p, f.pending)
	f.pending = f.pending[n:]
	return n, nil
}

func (f *follower) end(err error) error {
	if f.isOurs {
		f.isOurs = false
		return errors.Join(err, f.file.Close())
	}
	return err
}

// fill reads whole lines. A window without a line feed is longer than any line and is given as it is, to be refused.
func (f *follower) fill() error {
	n, err := f.file.ReadAt(f.window, f.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if n < len(f.window) {
		n = bytes.LastIndexByte(f.window[:n], '\n') + 1
	} else if i := bytes.LastIndexByte(f.window, '\n'); i >= 0 {
		n = i + 1
	}
	f.pending = f.window[:n]
	f.offset += int64(n)
	if n > 0 && f.pending[n-1] == '\n' {
		lines := f.pending[:n-1]
		if head, ok := parseHead(lines[bytes.LastIndexByte(lines, '\n')+1:]); ok {
			f.seq = head.seq
		}
	}
	return nil
}

// wait waits for the next look, if the file is still the one that was read, or goes on in the next one.
func (f *follower) wait(ctx context.Context) error {
	opened, err := f.file.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(f.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	isSame := err == nil && os.SameFile(opened, named)
	if isSame && opened.Size() < f.offset {
		return ErrReplaced
	}
	if !isSame {
		if moved, err := f.next(opened); err != nil || moved {
			return err
		}
	}
	timer := time.NewTimer(f.poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// next goes on in the file that begins with the next line. It says false as long as there is none yet.
func (f *follower) next(opened os.FileInfo) (bool, error) {
	full, err := fullFiles(f.path)
	if err != nil {
		return false, err
	}
	if opened.Size() > f.offset {
		return true, nil // its last lines, written just before it was full
	}
	for _, path := range append(full, f.path) {
		if found, err := f.goOn(path); err != nil || found {
			return found, err
		}
	}
	isFull := slices.ContainsFunc(full, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && os.SameFile(opened, info)
	})
	if !isFull && f.isGone {
		return false, ErrReplaced
	}
	f.isGone = !isFull // or the next file was made, and this one dropped, since the files were listed
	return false, nil  // the next one is about to be made
}

// goOn goes on in a file if that begins with the next line. The line is read from the open file: by the time that a name is
// opened once more, the file may be full and the name that of a later one.
func (f *follower) goOn(path string) (bool, error) {
	file, err := os.Open(filepath.Clean(path))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	head, ok, err := fileHead(file)
	if err != nil || !ok || f.seq == 0 || head.seq != f.seq+1 {
		return false, errors.Join(err, file.Close())
	}
	if err := f.end(nil); err != nil {
		return false, errors.Join(err, file.Close())
	}
	f.file, f.isOurs, f.isGone, f.offset = file, true, false, 0
	return true, nil
}
