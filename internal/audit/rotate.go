package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gatewright.dev/gatewright/internal/audit/linefile"
)

// files is a log of one file in use and those before it, which are full. The one in use has the name of the log; when it
// is full it gets the number of its first line behind its name, and a new one takes its place:
//
//	audit.jsonl.00000000000000000001   full, ends with a checkpoint
//	audit.jsonl.00000000000000004711   full
//	audit.jsonl                        in use, begins with a record of kind rotated
//
// A process that is killed between any two steps leaves the old file under its new name, whole, and either no file in
// use or an empty one: then the chain goes on from the end of the newest full one.
type files struct {
	path    string
	options Options
	lines   *linefile.File // nil: the file in use could not be made, and is tried again
	head    Head           // at the time of opening
	rotated *Rotated       // to be told in the first line, nil if one is there
	// isSigned says that the last line was a checkpoint when the log was opened.
	isSigned bool
	first    uint64    // line of the file in use, 0 if it is empty
	since    time.Time // of its first line
}

func openFiles(path string, o Options) (*files, linefile.Torn, error) {
	f := &files{path: filepath.Clean(path), options: o}
	torn, err := f.open()
	if err != nil {
		return nil, linefile.Torn{}, err
	}
	if err := f.look(); err != nil {
		return nil, linefile.Torn{}, errors.Join(err, f.lines.Close())
	}
	return f, torn, nil
}

func (f *files) open() (linefile.Torn, error) {
	lines, torn, err := linefile.Open(f.path, linefile.Options{Valid: isEntry, MaxTorn: int64(max(f.options.MaxBatch, maxBatch)), Now: f.options.Clock.Now})
	f.lines = lines
	return torn, err
}

// look finds out where the chain ends, in the file in use or in the one before it.
func (f *files) look() error {
	first, err := f.lines.First()
	if err != nil {
		return err
	}
	if first == nil {
		return f.lookBefore()
	}
	entry, err := Decode(first)
	if err != nil {
		return err
	}
	f.first, f.since = entry.Seq, entry.Time
	last, err := f.lines.Last()
	if err != nil {
		return err
	}
	f.head, f.isSigned, err = endOf(last)
	return err
}

func endOf(last []byte) (Head, bool, error) {
	head, ok := parseHead(last)
	if !ok {
		return Head{}, false, ErrNotEntry
	}
	return Head{Seq: head.seq, Digest: lineDigest(last)}, head.kind == KindCheckpoint, nil
}

// lookBefore takes the end of the newest full file as that of the chain.
func (f *files) lookBefore() error {
	f.head = Head{Digest: noDigest}
	full, err := fullFiles(f.path)
	if err != nil || len(full) == 0 {
		return err
	}
	newest := full[len(full)-1]
	last, err := lastLine(newest)
	if err != nil {
		return fmt.Errorf("%s: %w", newest, err)
	}
	if f.head, f.isSigned, err = endOf(last); err != nil {
		return fmt.Errorf("%s: %w", newest, err)
	}
	f.rotated = &Rotated{File: filepath.Base(newest), Through: f.head}
	return nil
}

// Append implements Sink.
func (f *files) Append(lines []byte) error {
	if f.lines == nil {
		if _, err := f.open(); err != nil {
			return err
		}
	}
	if f.first == 0 && f.lines.Size() > 0 {
		return fmt.Errorf("%w: it should be new, and another process has written to it", linefile.ErrUnavailable)
	}
	if err := f.lines.Append(lines); err != nil {
		return err
	}
	if f.first == 0 {
		head, _ := parseHead(lines)
		f.first, f.since = head.seq, f.options.Clock.Now()
	}
	return nil
}

// Close implements Sink.
func (f *files) Close() error {
	if f.lines == nil {
		return nil
	}
	return f.lines.Close()
}

// due implements turner.
func (f *files) due(now time.Time) bool {
	r := f.options.Rotation
	return f.lines != nil && f.first > 0 &&
		(r.MaxBytes > 0 && f.lines.Size() >= r.MaxBytes || r.MaxAge > 0 && now.Sub(f.since) >= r.MaxAge)
}

// turn implements turner. Once the old file has its new name the old name is free, so that a failure after that is no
// reason to write to the old file again: Append makes the new one.
func (f *files) turn(h Head) (*Rotated, error) {
	full := fullName(f.path, f.first)
	if err := f.lines.Rename(full); err != nil {
		return nil, err
	}
	old := f.lines
	f.lines, f.first = nil, 0
	rotated := &Rotated{File: filepath.Base(full), Through: h}
	_, err := f.open() // before the old one is given free: nobody else takes the log in between
	if err != nil {
		f.lines = nil
	}
	return rotated, errors.Join(err, old.Close())
}

// expired implements turner.
func (f *files) expired(now time.Time) ([]Dropped, error) {
	r := f.options.Retention
	if r == (Retention{}) {
		return nil, nil
	}
	full, err := fullFiles(f.path)
	if err != nil || len(full) == 0 {
		return nil, err
	}
	sizes, total := make([]int64, len(full)), int64(0)
	for i, path := range full {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		sizes[i] = info.Size()
		total += info.Size()
	}
	var out []Dropped
	for i, path := range full {
		last, err := lastEntry(path)
		if err != nil {
			return out, fmt.Errorf("%s: %w", path, err)
		}
		why := ""
		switch {
		case r.MaxAge > 0 && now.Sub(last.Time) > r.MaxAge:
			why = "age"
		case r.MaxBytes > 0 && total > r.MaxBytes:
			why = "bytes"
		case r.MaxFiles > 0 && len(full)-i > r.MaxFiles:
			why = "files"
		default:
			return out, nil // what follows is younger, and has to stay in one piece
		}
		first, _ := firstSeq(filepath.Base(f.path), filepath.Base(path))
		out = append(out, Dropped{File: filepath.Base(path), Bytes: sizes[i], First: first, Through: last.head, Why: why})
		total -= sizes[i]
	}
	return out, nil
}

// remove implements turner.
func (f *files) remove(d Dropped) error {
	dir := filepath.Dir(f.path)
	if err := os.Remove(filepath.Join(dir, filepath.Base(d.File))); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

const seqDigits = 20

func fullName(path string, first uint64) string {
	return fmt.Sprintf("%s.%0*d", path, seqDigits, first)
}

// firstSeq reads the number in the name of a full file of the log at path.
func firstSeq(path, full string) (uint64, bool) {
	digits := full[min(len(full), len(path)+1):]
	if len(digits) != seqDigits || full[:len(path)+1] != path+"." {
		return 0, false
	}
	var n uint64
	for _, c := range []byte(digits) {
		if !isDigit(c) {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

// fullFiles are the full files of the log at path, oldest first.
func fullFiles(path string) ([]string, error) {
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range all {
		if _, ok := firstSeq(base, e.Name()); ok {
			out = append(out, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	slices.Sort(out) // the digits are as many in all names
	return out, nil
}

// ended is the last line of a file.
type ended struct {
	Entry
	head Head
}

func lastEntry(path string) (ended, error) {
	line, err := lastLine(path)
	if err != nil {
		return ended{}, err
	}
	e, err := Decode(line)
	return ended{e, Head{Seq: e.Seq, Digest: lineDigest(line)}}, err
}

// lastLine reads the last line of a file that nobody writes to.
func lastLine(path string) ([]byte, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	window := make([]byte, min(info.Size(), MaxRecord+2))
	if _, err := f.ReadAt(window, info.Size()-int64(len(window))); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(window) == 0 || window[len(window)-1] != '\n' {
		return nil, ErrTorn
	}
	window = window[:len(window)-1]
	return window[bytes.LastIndexByte(window, '\n')+1:], nil
}

// firstHead reads the head of the first line of a file; not ok for what is empty or no log.
func firstHead(path string) (lineHead, bool, error) {
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		return lineHead{}, false, err
	}
	defer f.Close() //nolint:errcheck // read only
	return fileHead(f)
}

func fileHead(f io.ReaderAt) (lineHead, bool, error) {
	line := make([]byte, maxHead+64)
	n, err := f.ReadAt(line, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return lineHead{}, false, err
	}
	head, ok := parseHead(line[:n])
	return head, ok, nil
}
