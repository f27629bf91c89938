package gguf

import (
	"bytes"
	"encoding/binary"
	"io"
)

// Types of weights that Widen knows, by their number in the format. A block of either holds 32 numbers, each a whole number
// times the block's scale. In Q5_0 these have 5 bits, low ones and high ones apart; in Q8_0 each is a byte.
const (
	typeQ5_0 = 6
	typeQ8_0 = 8
)

const (
	perBlock  = 32
	bytesQ5_0 = 2 + 4 + perBlock/2 // scale, high bits, low bits
	bytesQ8_0 = 2 + perBlock
	// blocksAtOnce is how many are read before any is written.
	blocksAtOnce = 1 << 15
)

// Widened says how many bytes Widen writes, and whether the file has weights in Q5_0.
func (h *Header) Widened() (size int64, has bool) {
	size = h.DataStart
	for _, t := range h.Tensors {
		size = h.aligned(size) + widenedBytes(t)
		has = has || t.Type == typeQ5_0
	}
	return size, has
}

// Widen reads the file of h from its first byte to its last, and writes it with its weights in Q5_0 stored as Q8_0, without what
// lies behind the last tensor. Each number stays what it is. What is written depends on nothing but the bytes that are read here:
// a header of another length is Malformed. Other errors are those of r and w.
func (h *Header) Widen(w io.Writer, r io.Reader) error {
	header := make([]byte, h.DataStart)
	if _, err := io.ReadFull(r, header); err != nil {
		return err
	}
	again, err := Read(bytes.NewReader(header), h.Size)
	if err != nil || again.DataStart != h.DataStart {
		return fault(Malformed, "the header changed while the file was read")
	}
	return again.widen(header, w, r)
}

func (h *Header) widen(header []byte, w io.Writer, r io.Reader) error {
	at := int64(0)
	for _, t := range h.Tensors {
		at = h.aligned(at)
		if t.Type == typeQ5_0 {
			binary.LittleEndian.PutUint32(header[t.typeAt:], typeQ8_0)
		}
		binary.LittleEndian.PutUint64(header[t.typeAt+4:], uint64(at))
		at += widenedBytes(t)
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	c := converter{w: w, r: r, in: make([]byte, blocksAtOnce*bytesQ5_0), out: make([]byte, 0, blocksAtOnce*bytesQ8_0)}
	zeros := make([]byte, h.alignment)
	read, written := int64(0), int64(0)
	for _, t := range h.Tensors {
		if _, err := io.CopyN(io.Discard, r, t.Offset-read); err != nil {
			return err
		}
		if _, err := w.Write(zeros[:h.aligned(written)-written]); err != nil {
			return err
		}
		if err := c.tensor(t); err != nil {
			return err
		}
		read, written = t.Offset+t.Bytes, h.aligned(written)+widenedBytes(t)
	}
	_, err := io.Copy(io.Discard, r)
	return err
}

func (h *Header) aligned(n int64) int64 { return (n + h.alignment - 1) / h.alignment * h.alignment }

func widenedBytes(t Tensor) int64 {
	if t.Type == typeQ5_0 {
		return t.Bytes / bytesQ5_0 * bytesQ8_0
	}
	return t.Bytes
}

// converter writes one tensor after the other.
type converter struct {
	w       io.Writer
	r       io.Reader
	in, out []byte
}

func (c *converter) tensor(t Tensor) error {
	for left := t.Bytes; left > 0; {
		piece := c.in[:min(left, int64(len(c.in)))]
		if _, err := io.ReadFull(c.r, piece); err != nil {
			return err
		}
		left -= int64(len(piece))
		if t.Type == typeQ5_0 {
			c.out = c.out[:0]
			for at := 0; at < len(piece); at += bytesQ5_0 {
				c.out = appendWidened(c.out, [bytesQ5_0]byte(piece[at:]))
			}
			piece = c.out
		}
		if _, err := c.w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// appendWidened appends a block of Q5_0 as one of Q8_0. The first half of the numbers has the lower four bits of each byte, the
// second the upper four; all have 16 too much.
func appendWidened(out []byte, b [bytesQ5_0]byte) []byte {
	high := binary.LittleEndian.Uint32(b[2:])
	out = append(out, b[0], b[1])
	low := b[6:]
	for i, v := range low {
		out = append(out, (v&0xf|byte(high>>i)<<4&0x10)-16)
	}
	for i, v := range low {
		out = append(out, (v>>4|byte(high>>(i+perBlock/2))<<4&0x10)-16)
	}
	return out
}
