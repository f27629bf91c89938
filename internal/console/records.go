package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"gatewright.dev/gatewright/internal/audit"
)

// Records is a decision record that can be read.
type Records interface {
	// Head is the end of what is durable.
	Head() audit.Head
	// Newest calls each with the entries of the record, the newest first, until it returns false.
	Newest(ctx context.Context, each func(audit.Entry) bool) error
	// Find finds a decision by its id, with what people have said of it.
	Find(ctx context.Context, id string) (audit.Marked, bool, error)
}

// FileRecords reads a log that is in files, while it is written.
type FileRecords struct {
	// Path of the log.
	Path string
	// End is the end of what is durable.
	End func() audit.Head
}

// Head implements Records.
func (f FileRecords) Head() audit.Head { return f.End() }

// Find implements Records.
func (f FileRecords) Find(ctx context.Context, id string) (audit.Marked, bool, error) {
	return audit.FindMarked(ctx, f.Path, id)
}

// Newest implements Records. It reads the files backwards, so that the newest entries cost the same however long the log
// is. A last line that is not finished is left out.
func (f FileRecords) Newest(ctx context.Context, each func(audit.Entry) bool) error {
	parts, err := audit.Parts(f.Path)
	if err != nil {
		return err
	}
	for _, part := range slices.Backward(parts) {
		if err := backwards(ctx, part, each); err != nil {
			if errors.Is(err, errEnough) {
				return nil
			}
			return fmt.Errorf("%s: %w", filepath.Base(part), err)
		}
	}
	return nil
}

// errEnough says that no more entries are wanted.
var errEnough = errors.New("enough")

// chunk is how much of a file is read at once.
const chunk = 256 << 10

func backwards(ctx context.Context, path string, each func(audit.Entry) bool) error {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // read only
	info, err := file.Stat()
	if err != nil {
		return err
	}
	var rest []byte // the beginning of what was read: the end of a line, of which more comes
	isLast := true  // what follows the last line feed is no line yet
	for end := info.Size(); end > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		start := max(0, end-chunk)
		data := make([]byte, int(end-start), int(end-start)+len(rest))
		if _, err := file.ReadAt(data, start); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		data = append(data, rest...)
		end = start
		if isLast {
			data, isLast = finished(data)
		}
		if rest, err = lines(data, start == 0, each); err != nil {
			return err
		}
		if len(rest) > audit.MaxRecord {
			return audit.ErrNotEntry
		}
	}
	return nil
}

// finished cuts data behind its last line feed. It says true if there is none.
func finished(data []byte) ([]byte, bool) {
	i := bytes.LastIndexByte(data, '\n')
	return data[:i+1], i < 0
}

// lines calls each with the lines of data, the last one first. Unless data is the beginning of the file its first line
// is given back.
func lines(data []byte, isBeginning bool, each func(audit.Entry) bool) ([]byte, error) {
	for len(data) > 0 {
		line := bytes.TrimSuffix(data, []byte("\n"))
		i := bytes.LastIndexByte(line, '\n')
		if i < 0 && !isBeginning {
			return data, nil
		}
		line = line[i+1:]
		e, err := audit.Decode(line)
		if err != nil {
			return nil, err
		}
		if !each(e) {
			return nil, errEnough
		}
		data = data[:i+1]
	}
	return nil, nil
}
