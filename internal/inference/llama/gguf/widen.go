package gguf

import (
	"context"
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
	// blocksAtOnce is how many are read between two looks at the context.
	blocksAtOnce = 1 << 15
)

// Widened says how many bytes the file has with its weights in Q5_0 stored as Q8_0, and whether it has any.
func (h *Header) Widened() (size int64, has bool) {
	size = h.DataStart
	for _, t := range h.Tensors {
		size = h.aligned(size) + widenedBytes(t)
		has = has || t.Type == typeQ5_0
	}
	if !has {
		return h.Size, false
	}
	return size, true
}

// Widen writes the file from which h was read, r, with its weights in Q5_0 stored as Q8_0. Each number stays what it is. A
// file whose tensors overlap or lie in another order than they are listed in is Malformed. Other errors are those of ctx, r and w.
func (h *Header) Widen(ctx context.Context, w io.Writer, r io.ReaderAt) error {
	header := make([]byte, h.DataStart)
	if _, err := r.ReadAt(header, 0); err != nil {
		return err
	}
	end, at := int64(0), int64(0)
	for _, t := range h.Tensors {
		if t.Offset < end {
			return fault(Malformed, "tensors overlap or are out of order")
		}
		end, at = t.Offset+t.Bytes, h.aligned(at)
		if t.Type == typeQ5_0 {
			binary.LittleEndian.PutUint32(header[t.typeAt:], typeQ8_0)
		}
		binary.LittleEndian.PutUint64(header[t.typeAt+4:], uint64(at))
		at += widenedBytes(t)
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	at = 0
	for _, t := range h.Tensors {
		if _, err := w.Write(make([]byte, h.aligned(at)-at)); err != nil {
			return err
		}
		at = h.aligned(at) + widenedBytes(t)
		if err := writeTensor(ctx, w, io.NewSectionReader(r, h.DataStart+t.Offset, t.Bytes), t.Type); err != nil {
			return err
		}
	}
	return nil
}

func (h *Header) aligned(n int64) int64 { return (n + h.alignment - 1) / h.alignment * h.alignment }

func widenedBytes(t Tensor) int64 {
	if t.Type == typeQ5_0 {
		return t.Bytes / bytesQ5_0 * bytesQ8_0
	}
	return t.Bytes
}

func writeTensor(ctx context.Context, w io.Writer, r *io.SectionReader, kind uint32) error {
	in, out := make([]byte, blocksAtOnce*bytesQ5_0), make([]byte, 0, blocksAtOnce*bytesQ8_0)
	for left := r.Size(); left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece := in[:min(left, int64(len(in)))]
		if _, err := io.ReadFull(r, piece); err != nil {
			return err
		}
		left -= int64(len(piece))
		if kind == typeQ5_0 {
			out = out[:0]
			for at := 0; at < len(piece); at += bytesQ5_0 {
				out = appendWidened(out, [bytesQ5_0]byte(piece[at:]))
			}
			piece = out
		}
		if _, err := w.Write(piece); err != nil {
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
