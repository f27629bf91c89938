// Package linefile keeps lines in a file that one process appends to. An
// append is durable or has not happened; what a crash has torn off is set
// aside and never deleted. The audit log and the approvals' journal stand on it.
package linefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

var (
	// ErrUnavailable says that nothing can be appended now. Later it may work again.
	ErrUnavailable = errors.New("file cannot be appended to")
	// ErrClosed says that the file was closed.
	ErrClosed = fmt.Errorf("%w: closed", ErrUnavailable)
	// ErrLocked says that another process has the file.
	ErrLocked = errors.New("file is in use by another process")
	// ErrCorrupt says that the end of the file holds more that is not valid
	// than one append can have left behind.
	ErrCorrupt = errors.New("file is corrupt")
)

// Options of Open.
type Options struct {
	// Valid says whether a complete line at the end is one of ours. Nil takes all.
	Valid func(line []byte) bool
	// MaxTorn is how many bytes one append can leave behind; more is ErrCorrupt.
	MaxTorn int64
	// Now names what is set aside.
	Now func() time.Time
}

// Torn is what Open has set aside.
type Torn struct {
	// Path of the copy, empty if nothing was torn.
	Path string
	// Bytes that were set aside.
	Bytes int64
}

// File is an open file of lines. Its owner serialises all calls.
type File struct {
	path   string
	handle handle
	size   int64 // all before it is durable
	dirty  bool  // a failed append may have left bytes beyond size
	closed bool
}

// handle is what is done to an open file, so that tests can make it fail.
type handle interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Truncate(size int64) error
	Stat() (os.FileInfo, error)
	datasync() error
}

type osHandle struct{ *os.File }

func (h osHandle) datasync() error { return datasync(h.File) }

// Open opens or creates the file with mode 0600, takes its lock, and sets
// aside what follows the last valid line.
func Open(path string, o Options) (*File, Torn, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, Torn{}, fmt.Errorf("opening file: %w", err)
	}
	f := &File{path: path, handle: osHandle{file}}
	torn, err := f.prepare(file, o)
	if err != nil {
		return nil, Torn{}, errors.Join(err, file.Close())
	}
	return f, torn, nil
}

func (f *File) prepare(file *os.File, o Options) (Torn, error) {
	if err := lock(file); err != nil {
		return Torn{}, err
	}
	info, err := f.sameFile()
	if err != nil {
		return Torn{}, err
	}
	if !info.Mode().IsRegular() {
		return Torn{}, fmt.Errorf("%w: not a regular file", ErrUnavailable)
	}
	if err := file.Chmod(0o600); err != nil {
		return Torn{}, fmt.Errorf("restricting file: %w", err)
	}
	if f.size, err = validEnd(file, info.Size(), o); err != nil {
		return Torn{}, err
	}
	var torn Torn
	if f.size < info.Size() {
		if torn, err = f.setAside(info.Size(), o.Now()); err != nil {
			return Torn{}, fmt.Errorf("setting a torn line aside: %w", err)
		}
	}
	// What an earlier process wrote and did not live to sync is read as part of
	// the file from here on, so it has to be durable before anything follows it.
	if err := f.handle.datasync(); err != nil {
		return Torn{}, fmt.Errorf("syncing file: %w", err)
	}
	return torn, syncDir(filepath.Dir(f.path))
}

// setAside copies what lies beyond size to a file of its own, and cuts it off
// only after the copy is durable.
func (f *File) setAside(end int64, now time.Time) (Torn, error) {
	copied, err := createTorn(f.path, now)
	if err != nil {
		return Torn{}, err
	}
	tail := io.NewSectionReader(f.handle, f.size, end-f.size)
	n, err := io.Copy(copied, tail)
	if err == nil && n != end-f.size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = copied.Sync()
	}
	if err := errors.Join(err, copied.Close()); err != nil {
		return Torn{}, errors.Join(err, os.Remove(copied.Name()))
	}
	if err := syncDir(filepath.Dir(f.path)); err != nil {
		return Torn{}, err
	}
	if err := f.handle.Truncate(f.size); err != nil {
		return Torn{}, err
	}
	return Torn{Path: copied.Name(), Bytes: n}, nil
}

func createTorn(path string, now time.Time) (*os.File, error) {
	name := path + ".torn-" + now.UTC().Format("20060102T150405.000000000Z")
	for i := 0; ; i++ {
		unique := name
		if i > 0 {
			unique = fmt.Sprintf("%s-%d", name, i)
		}
		file, err := os.OpenFile(unique, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil || !errors.Is(err, os.ErrExist) || i == 1000 {
			return file, err
		}
	}
}

// Append writes data, which is whole lines, and returns when it is durable.
// After an error nothing of it counts, and the next call tries again.
//
// After a sync that failed the kernel may call pages clean that never reached
// the disk. The bytes are therefore cut off and written anew from memory by a
// later call, and never taken as written because a second sync succeeds.
func (f *File) Append(data []byte) error {
	if err := f.ready(); err != nil {
		return err
	}
	n, err := f.handle.Write(data)
	if err == nil && n != len(data) {
		err = io.ErrShortWrite
	}
	if err == nil {
		err = f.handle.datasync()
	}
	if err != nil {
		f.dirty = true
		return fmt.Errorf("%w: %w", ErrUnavailable, errors.Join(err, f.rollback()))
	}
	f.size += int64(len(data))
	return nil
}

// ready says whether an append may start: after an earlier failure has been
// cut off, and only while the path still names this file at the known length.
func (f *File) ready() error {
	if f.closed {
		return ErrClosed
	}
	if f.dirty {
		if err := f.rollback(); err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	info, err := f.sameFile()
	if err != nil {
		return err
	}
	if info.Size() != f.size {
		return fmt.Errorf("%w: it has %d bytes, %d were written by this process and before it", ErrUnavailable, info.Size(), f.size)
	}
	return nil
}

func (f *File) rollback() error {
	if err := f.handle.Truncate(f.size); err != nil {
		return fmt.Errorf("cutting off a failed append: %w", err)
	}
	if err := f.handle.datasync(); err != nil {
		return fmt.Errorf("syncing after a failed append: %w", err)
	}
	f.dirty = false
	return nil
}

// sameFile refuses a file that was deleted or moved while it is open: what is
// written there would be durable where nobody looks.
func (f *File) sameFile() (os.FileInfo, error) {
	opened, err := f.handle.Stat()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	named, err := os.Stat(f.path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if !os.SameFile(opened, named) {
		return nil, fmt.Errorf("%w: another file is at its path", ErrUnavailable)
	}
	return opened, nil
}

// Rename gives the file another name in its folder, under which nothing may be yet. It is appended to under that name
// from then on.
func (f *File) Rename(name string) error {
	if err := f.ready(); err != nil {
		return err
	}
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("%w: renaming: %w: %s", ErrUnavailable, os.ErrExist, name)
	} else if !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: renaming: %w", ErrUnavailable, err)
	}
	if err := os.Rename(f.path, name); err != nil {
		return fmt.Errorf("%w: renaming: %w", ErrUnavailable, err)
	}
	f.path = name
	return syncDir(filepath.Dir(name))
}

// Size is the length of what is durable, in bytes.
func (f *File) Size() int64 { return f.size }

// First gives the first line without its line feed, nil if there is none.
func (f *File) First() ([]byte, error) {
	if f.size == 0 {
		return nil, nil
	}
	window := make([]byte, min(f.size, MaxLine+1))
	if _, err := f.handle.ReadAt(window, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading the start: %w", err)
	}
	line, _, ok := bytes.Cut(window, []byte{'\n'})
	if !ok {
		return nil, fmt.Errorf("%w: its first line is longer than %d bytes", ErrCorrupt, MaxLine)
	}
	return line, nil
}

// Close cuts off what a failed append left, releases the lock and closes.
func (f *File) Close() error {
	if f.closed {
		return nil
	}
	f.closed = true
	var err error
	if f.dirty {
		err = f.rollback()
	}
	return errors.Join(err, f.handle.Close())
}
