package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// narrow is a model of three tensors, of which the second and the third are in Q5_0.
func narrow(blocks int) []byte {
	f := new(file).start(3, 1)
	f.text("general.architecture").num(uint32(typeString)).text("llama")
	one, two := blocks*bytesQ5_0, 2*bytesQ5_0
	f.tensor("norm", 0, 0, 3)
	f.tensor("q", typeQ5_0, 32, perBlock, uint64(blocks))
	f.tensor("k", typeQ5_0, uint64(32+(one+31)/32*32), 2*perBlock)
	f.data(32 + (one+31)/32*32 + two)
	b := f.Bytes()
	weights := b[len(b)-32-(one+31)/32*32-two:]
	r := rand.New(rand.NewPCG(1, 2))
	for i := range weights {
		weights[i] = byte(r.Uint32())
	}
	return b
}

func widen(t *testing.T, b []byte) ([]byte, error) {
	t.Helper()
	h, err := Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = h.Widen(&out, bytes.NewReader(b))
	if size, has := h.Widened(); err == nil && (!has || size != int64(out.Len())) {
		t.Errorf("%d bytes of %d were announced, %v", size, out.Len(), has)
	}
	return out.Bytes(), err
}

// numbers are scale and whole numbers of each block of a tensor, as the format describes the two types.
func numbers(b []byte, h *Header, t Tensor) (all []int) {
	b = b[h.DataStart+t.Offset:][:t.Bytes]
	_, width := BlockOf(t.Type)
	for ; len(b) > 0; b = b[width:] {
		all = append(all, int(binary.LittleEndian.Uint16(b)))
		for i := range perBlock {
			if t.Type == typeQ8_0 {
				all = append(all, int(int8(b[2+i])))
				continue
			}
			fifth := int(b[2+i/8]>>(i%8)) & 1
			all = append(all, int(b[6+i%16]>>(i/16*4))&0xf+16*fifth-16)
		}
	}
	return all
}

func TestWidenKeepsEveryNumber(t *testing.T) {
	for name, blocks := range map[string]int{"one block": 1, "more than are read at once": blocksAtOnce + 3} {
		t.Run(name, func(t *testing.T) {
			before := narrow(blocks)
			after, err := widen(t, before)
			if err != nil {
				t.Fatal(err)
			}
			was, err := Read(bytes.NewReader(before), int64(len(before)))
			if err != nil {
				t.Fatal(err)
			}
			is, err := Read(bytes.NewReader(after), int64(len(after)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(was.Values, is.Values); diff != "" {
				t.Error(diff)
			}
			for i, w := range was.Tensors {
				got := is.Tensors[i]
				if got.Name != w.Name || !cmp.Equal(got.Dimensions, w.Dimensions) {
					t.Errorf("%+v became %+v", w, got)
				}
				if w.Type == typeQ5_0 {
					if got.Type != typeQ8_0 || !cmp.Equal(numbers(after, is, got), numbers(before, was, w)) {
						t.Errorf("tensor %s has other numbers, in type %d", w.Name, got.Type)
					}
				} else if got.Type != w.Type || !bytes.Equal(after[is.DataStart+got.Offset:][:got.Bytes], before[was.DataStart+w.Offset:][:w.Bytes]) {
					t.Errorf("tensor %s was touched", w.Name)
				}
			}
		})
	}
}

func TestWidenedSaysWhetherThereAreSuchWeights(t *testing.T) {
	for name, test := range map[string]struct {
		file []byte
		size int64
		has  bool
	}{
		"none":                    {whole().Bytes(), int64(whole().Len()), false},
		"none, and bytes behind":  {append(whole().Bytes(), 1, 2, 3), int64(whole().Len()), false},
		"three blocks":            {narrow(1), int64(len(narrow(1))) + 32 + 2*12, true}, // the first does not fit before the next boundary any more
		"three, and bytes behind": {append(narrow(1), 1, 2, 3), int64(len(narrow(1))) + 32 + 2*12, true},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := Read(bytes.NewReader(test.file), int64(len(test.file)))
			if err != nil {
				t.Fatal(err)
			}
			if size, has := h.Widened(); has != test.has || size != test.size {
				t.Errorf("%d bytes of %d, %v; want %d", size, len(test.file), has, test.size)
			}
		})
	}
}

// What is written comes out of the bytes that are read, whatever was read of the file before.
func TestWidenGoesByTheHeaderThatItReads(t *testing.T) {
	b := narrow(2)
	h, err := Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(b)
	typeAt := h.Tensors[1].typeAt
	binary.LittleEndian.PutUint32(other[typeAt:], 0) // F32: then the next one would begin in it
	if err := h.Widen(io.Discard, bytes.NewReader(other)); FaultOf(err) != Malformed {
		t.Errorf("a header that changed: %v", err)
	}
	for n := range b {
		if err := h.Widen(io.Discard, bytes.NewReader(b[:n])); err == nil {
			t.Fatalf("the first %d of %d bytes were taken for the file", n, len(b))
		}
	}
}

// brokenWriter fails after some bytes.
type brokenWriter struct {
	left int
	err  error
}

func (b *brokenWriter) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, b.err
	}
	return len(p), nil
}

func TestWidenPassesOnWhatFails(t *testing.T) {
	b := narrow(4)
	h, err := Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	full, gone := errors.New("disk full"), errors.New("disk gone")
	for left := range len(b) {
		if err := h.Widen(&brokenWriter{left, full}, bytes.NewReader(b)); !errors.Is(err, full) {
			t.Fatalf("after %d bytes: %v", left, err)
		}
	}
	if err := h.Widen(io.Discard, io.MultiReader(bytes.NewReader(b[:len(b)-9]), iotest.ErrReader(gone))); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}
