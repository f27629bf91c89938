package linefile

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// MaxLine is the longest line that is read back.
const MaxLine = 1 << 20

// Lines calls each with every line, without its line feed, oldest first. The
// line is only valid during the call.
func (f *File) Lines(each func(line []byte) error) error {
	r := bufio.NewReaderSize(io.NewSectionReader(f.handle, 0, f.size), MaxLine+1)
	for n := 1; ; n++ {
		line, err := r.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading line %d: %w", n, err)
		}
		if err := each(line[:len(line)-1]); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
}

// Last gives the last line without its line feed, nil if there is none.
func (f *File) Last() ([]byte, error) {
	if f.size == 0 {
		return nil, nil
	}
	window, err := tail(f.handle, f.size, MaxLine+2)
	if err != nil {
		return nil, err
	}
	line, ok := lastLine(window, int64(len(window)) == f.size)
	if !ok {
		return nil, fmt.Errorf("%w: its last line is longer than %d bytes", ErrCorrupt, MaxLine)
	}
	return line, nil
}

// validEnd gives the offset behind the last valid line.
func validEnd(r io.ReaderAt, size int64, o Options) (int64, error) {
	window, err := tail(r, size, o.MaxTorn+MaxLine+2)
	if err != nil {
		return 0, err
	}
	start := size - int64(len(window)) // of the window
	window = window[:bytes.LastIndexByte(window, '\n')+1]
	for o.Valid != nil && len(window) > 0 {
		line, ok := lastLine(window, start == 0)
		if ok && o.Valid(line) {
			break
		}
		window = window[:len(window)-len(line)-1]
	}
	end := start + int64(len(window))
	if torn := size - end; torn > o.MaxTorn {
		return 0, fmt.Errorf("%w: at least %d bytes at its end are not valid lines", ErrCorrupt, torn)
	}
	return end, nil
}

// lastLine gives the last line of whole lines, without its line feed. It is not
// ok if the line may have started before the window.
func lastLine(window []byte, fromStart bool) (line []byte, ok bool) {
	lines := window[:len(window)-1]
	i := bytes.LastIndexByte(lines, '\n')
	return lines[i+1:], i >= 0 || fromStart
}

// tail reads the last n bytes of a file, or all of it.
func tail(r io.ReaderAt, size, n int64) ([]byte, error) {
	window := make([]byte, min(size, n))
	if _, err := r.ReadAt(window, size-int64(len(window))); err != nil && err != io.EOF {
		return nil, fmt.Errorf("reading the end: %w", err)
	}
	return window, nil
}
