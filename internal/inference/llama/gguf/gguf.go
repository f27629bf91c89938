// Package gguf reads the header of a GGUF file: what the model says about itself and where its tensors lie. It
// bounds every length before it allocates, and takes nothing for granted: native code parses the same file afterwards, in a
// process that ends when it meets what it did not expect. Of the weights it reads those that Widen stores anew.
package gguf

import (
	"errors"
	"fmt"
	"io"
)

// Limits of a header. The largest real ones are a vocabulary of some 262,000 tokens and about 1,200 tensors.
const (
	MaxKeys       = 4096
	MaxTensors    = 65536
	MaxDimensions = 4
	maxName       = 1024
	maxString     = 4 << 20
	maxElements   = 16 << 20
	maxHeader     = 256 << 20
	// keptStrings is the longest list of strings that is kept; of a longer one only its measures are.
	keptStrings = 1024
)

// Fault says what kind of bad file it is.
type Fault string

// The faults.
const (
	NotGGUF   Fault = "NotGGUF"   // another format, or nothing but zeros
	Version   Fault = "Version"   // a version of the format that is not read
	Truncated Fault = "Truncated" // the file ends before what its header promises
	Malformed Fault = "Malformed" // it contradicts itself or exceeds a limit
)

// Error is every error of this package but those of the reader itself.
type Error struct {
	Fault  Fault
	Detail string
}

func (e *Error) Error() string { return string(e.Fault) + ": " + e.Detail }

func fault(f Fault, format string, args ...any) error {
	return &Error{Fault: f, Detail: fmt.Sprintf(format, args...)}
}

// Header is what stands before the weights.
type Header struct {
	Version uint32
	// Values are by key: uint64, int64, float64, bool, string, or an Array.
	Values  map[string]any
	Tensors []Tensor
	// DataStart is where the weights begin, Size how long the file is, both in bytes.
	DataStart, Size int64
	// alignment is what each tensor begins at a multiple of, in bytes from DataStart.
	alignment int64
}

// Array is a list in the header. Strings is set for lists of at most 1,024 strings.
type Array struct {
	Length  int
	Strings []string
	// Longest is the length in bytes of the longest string.
	Longest int
}

// Tensor is one block of weights. Offset counts from Header.DataStart; Bytes is its length.
type Tensor struct {
	Name          string
	Dimensions    []uint64
	Type          uint32
	Offset, Bytes int64
	// typeAt is where Type stands in the file; Offset follows it.
	typeAt int64
}

// Read reads the header of a file of that size and checks that its tensors lie inside, one behind the other.
func Read(r io.ReaderAt, size int64) (*Header, error) {
	d := &decoder{r: io.NewSectionReader(r, 0, min(size, maxHeader)), size: size}
	h := &Header{Size: size, Values: map[string]any{}}
	tensors, keys := d.start(h)
	for range keys {
		d.value(h)
		if d.err != nil {
			return nil, d.err
		}
	}
	seen := make(map[string]bool)
	for range tensors {
		t := d.tensor()
		if d.err == nil && seen[t.Name] {
			d.fail(fault(Malformed, "a tensor is listed twice"))
		}
		if d.err != nil {
			return nil, d.err
		}
		seen[t.Name] = true
		h.Tensors = append(h.Tensors, t)
	}
	if d.err != nil {
		return nil, d.err
	}
	if err := h.place(d.at); err != nil {
		return nil, err
	}
	return h, nil
}

// place finds the start of the weights and checks that each tensor begins where the one before it ends, but for the alignment, and
// ends within the file.
func (h *Header) place(end int64) error {
	h.alignment = 32
	if v, ok := h.Values["general.alignment"]; ok {
		n, ok := v.(uint64)
		if !ok || n == 0 || n > 1<<20 || n&(n-1) != 0 {
			return fault(Malformed, "the alignment is no power of two up to 1 MiB")
		}
		h.alignment = int64(n)
	}
	h.DataStart = h.aligned(end)
	room, next := h.Size-h.DataStart, int64(0)
	for _, t := range h.Tensors {
		if t.Offset != next {
			return fault(Malformed, "a tensor does not begin where the one before it ends")
		}
		if t.Offset > room || t.Bytes > room-t.Offset {
			return fault(Truncated, "the file has %d bytes, its tensors need at least %d", h.Size, h.DataStart+t.Offset+t.Bytes)
		}
		next = h.aligned(t.Offset + t.Bytes)
	}
	return nil
}

// String returns a text value, and whether it is there and a text.
func (h *Header) String(key string) (string, bool) {
	s, ok := h.Values[key].(string)
	return s, ok
}

// Int returns a whole number that fits an int, and whether it is there.
func (h *Header) Int(key string) (int, bool) {
	switch v := h.Values[key].(type) {
	case uint64:
		return int(v), v <= 1<<31
	case int64:
		return int(v), v >= -(1<<31) && v <= 1<<31
	default:
		return 0, false
	}
}

// Array returns a list, and whether it is there.
func (h *Header) Array(key string) (Array, bool) {
	a, ok := h.Values[key].(Array)
	return a, ok
}

// Tensor returns the tensor of that name, and whether there is one.
func (h *Header) Tensor(name string) (Tensor, bool) {
	for _, t := range h.Tensors {
		if t.Name == name {
			return t, true
		}
	}
	return Tensor{}, false
}

// FaultOf returns the fault of an error, empty if it is the reader's own.
func FaultOf(err error) Fault {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Fault
	}
	return ""
}
