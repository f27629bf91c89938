package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"unicode/utf8"
)

// The types of a value in a header, as the format numbers them.
const (
	typeUint8 = iota
	typeInt8
	typeUint16
	typeInt16
	typeUint32
	typeInt32
	typeFloat32
	typeBool
	typeString
	typeArray
	typeUint64
	typeInt64
	typeFloat64
)

// widths of the fixed types in bytes, 0 for the two that have none.
var widths = [...]int{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8}

// decoder keeps the first error, so that the layout above reads as a list.
type decoder struct {
	r        *io.SectionReader
	buffered *bufio.Reader
	size, at int64
	err      error
	scratch  [8]byte
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *decoder) read(p []byte) bool {
	if d.err != nil {
		return false
	}
	if d.buffered == nil {
		d.buffered = bufio.NewReaderSize(d.r, 64<<10)
	}
	n, err := io.ReadFull(d.buffered, p)
	d.at += int64(n)
	switch {
	case err == nil:
		return true
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		d.fail(err)
	case d.size > maxHeader:
		d.fail(fault(Malformed, "the header is longer than %d bytes", maxHeader))
	default:
		d.fail(fault(Truncated, "the file ends inside its header, after %d bytes", d.size))
	}
	return false
}

// fixed reads a little-endian number of 1, 2, 4 or 8 bytes.
func (d *decoder) fixed(width int) uint64 {
	d.scratch = [8]byte{}
	if !d.read(d.scratch[:width]) {
		return 0
	}
	return binary.LittleEndian.Uint64(d.scratch[:])
}

// start reads the fixed part: magic, version and the two counts.
func (d *decoder) start(h *Header) (tensors, keys uint64) {
	if d.size < 4 {
		d.fail(fault(NotGGUF, "the file has %d bytes", d.size))
	}
	magic := d.fixed(4)
	if d.err == nil && magic != 0x46554747 { // "GGUF"
		d.fail(fault(NotGGUF, "the file does not begin with the letters GGUF"))
	}
	h.Version = uint32(d.fixed(4))
	if d.err == nil && h.Version != 2 && h.Version != 3 {
		d.fail(fault(Version, "version %d of the format, versions 2 and 3 are read", h.Version))
	}
	tensors, keys = d.fixed(8), d.fixed(8)
	if tensors > MaxTensors || keys > MaxKeys {
		d.fail(fault(Malformed, "%d tensors and %d keys, at most %d and %d are read", tensors, keys, MaxTensors, MaxKeys))
	}
	if d.err != nil {
		return 0, 0
	}
	return tensors, keys
}

func (d *decoder) value(h *Header) {
	key := d.text(maxName)
	if d.err == nil && key == "" {
		d.fail(fault(Malformed, "a key is empty"))
	}
	if _, twice := h.Values[key]; twice {
		d.fail(fault(Malformed, "a key is listed twice"))
	}
	kind := d.fixed(4)
	var v any
	if kind == typeArray {
		v = d.array()
	} else {
		v = d.scalar(kind)
	}
	if d.err == nil {
		h.Values[key] = v
	}
}

func (d *decoder) scalar(kind uint64) any {
	if kind == typeString {
		return d.text(maxString)
	}
	width := d.width(kind)
	v := d.fixed(width)
	switch kind {
	case typeInt8:
		return int64(int8(v))
	case typeInt16:
		return int64(int16(v))
	case typeInt32:
		return int64(int32(v))
	case typeInt64:
		return int64(v)
	case typeFloat32:
		return float64(math.Float32frombits(uint32(v)))
	case typeFloat64:
		return math.Float64frombits(v)
	case typeBool:
		return v != 0
	default:
		return v
	}
}

func (d *decoder) width(kind uint64) int {
	if kind >= uint64(len(widths)) || widths[kind] == 0 {
		d.fail(fault(Malformed, "a value has an unknown type"))
		return 0
	}
	return widths[kind]
}

func (d *decoder) array() Array {
	kind, n := d.fixed(4), d.fixed(8)
	if n > maxElements {
		d.fail(fault(Malformed, "a list has %d elements", n))
	}
	if d.err != nil {
		return Array{}
	}
	a := Array{Length: int(n)}
	if kind != typeString {
		d.skip(int64(n) * int64(d.width(kind)))
		return a
	}
	for range n {
		s := d.text(maxString)
		if d.err != nil {
			return Array{}
		}
		a.Longest = max(a.Longest, len(s))
		if n <= keptStrings {
			a.Strings = append(a.Strings, s)
		}
	}
	return a
}

func (d *decoder) skip(n int64) {
	var block [4096]byte
	for n > 0 && d.read(block[:min(n, int64(len(block)))]) {
		n -= min(n, int64(len(block)))
	}
}

// text reads a counted string. What is not UTF-8 is kept as it is: single bytes are tokens of some vocabularies.
func (d *decoder) text(limit uint64) string {
	n := d.fixed(8)
	if d.err == nil && (n > limit || int64(n) > d.size-d.at) {
		d.fail(fault(Malformed, "a text of %d bytes, at most %d are read and %d are left", n, limit, d.size-d.at))
	}
	if d.err != nil {
		return ""
	}
	b := make([]byte, n)
	d.read(b)
	return string(b)
}

func (d *decoder) tensor() Tensor {
	t := Tensor{Name: d.text(maxName)}
	n := d.fixed(4)
	if d.err == nil && (n == 0 || n > MaxDimensions || t.Name == "" || !utf8.ValidString(t.Name)) {
		d.fail(fault(Malformed, "a tensor has %d dimensions or no proper name", n))
	}
	if d.err != nil {
		return t
	}
	for range n {
		t.Dimensions = append(t.Dimensions, d.fixed(8))
	}
	t.typeAt = d.at
	t.Type = uint32(d.fixed(4))
	offset := d.fixed(8)
	if d.err == nil && offset > math.MaxInt64 {
		d.fail(fault(Malformed, "a tensor lies beyond any file"))
	}
	t.Offset = int64(offset)
	t.Bytes = d.bytes(t)
	return t
}

// bytes computes the length of a tensor: its rows are whole blocks of its type.
func (d *decoder) bytes(t Tensor) int64 {
	b, known := blocks[t.Type]
	if d.err == nil && !known {
		d.fail(fault(Malformed, "a tensor has the unknown type %d", t.Type))
	}
	if d.err != nil {
		return 0
	}
	if t.Dimensions[0]%b.elements != 0 {
		d.fail(fault(Malformed, "a row of a tensor is no whole number of blocks"))
		return 0
	}
	total := b.bytes
	for i, n := range t.Dimensions {
		if i == 0 {
			n /= b.elements
		}
		if n == 0 || n > 1<<40 || total > (1<<46)/n {
			d.fail(fault(Malformed, "a tensor is empty or larger than any file"))
			return 0
		}
		total *= n
	}
	return int64(total)
}
