package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// file builds the bytes of a GGUF.
type file struct{ bytes.Buffer }

func (f *file) num(v any) *file {
	if err := binary.Write(f, binary.LittleEndian, v); err != nil {
		panic(err)
	}
	return f
}

func (f *file) text(s string) *file {
	f.num(uint64(len(s)))
	f.WriteString(s)
	return f
}

func (f *file) start(tensors, keys uint64) *file {
	f.WriteString("GGUF")
	return f.num(uint32(3)).num(tensors).num(keys)
}

func (f *file) tensor(name string, kind uint32, offset uint64, dims ...uint64) *file {
	f.text(name).num(uint32(len(dims)))
	for _, d := range dims {
		f.num(d)
	}
	return f.num(kind).num(offset)
}

// data pads to the start of the weights and adds n bytes of them.
func (f *file) data(n int) *file {
	f.Write(make([]byte, (32-f.Len()%32)%32+n))
	return f
}

func whole() *file {
	f := new(file).start(2, 5)
	f.text("general.architecture").num(uint32(typeString)).text("llama")
	f.text("llama.context_length").num(uint32(typeUint32)).num(uint32(8192))
	f.text("llama.bias").num(uint32(typeInt8)).num(int8(-3))
	f.text("llama.eps").num(uint32(typeFloat32)).num(float32(0.5))
	f.text("words").num(uint32(typeArray)).num(uint32(typeString)).num(uint64(2)).text("a").text("bcd")
	f.tensor("a", 0, 0, 4, 2)
	f.tensor("b", 8, 32, 32)
	return f.data(32 + 34)
}

func TestReadTakesEverythingThatAHeaderSays(t *testing.T) {
	b := whole().Bytes()
	got, err := Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	want := &Header{
		Version: 3,
		Values: map[string]any{
			"general.architecture": "llama", "llama.context_length": uint64(8192), "llama.bias": int64(-3), "llama.eps": 0.5,
			"words": Array{Length: 2, Strings: []string{"a", "bcd"}, Longest: 3},
		},
		Tensors: []Tensor{
			{Name: "a", Dimensions: []uint64{4, 2}, Type: 0, Bytes: 32, typeAt: 231},
			{Name: "b", Dimensions: []uint64{32}, Type: 8, Offset: 32, Bytes: 34, typeAt: 264},
		},
		DataStart: int64(len(b)) - 66, Size: int64(len(b)), alignment: 32,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Header{}, Tensor{})); diff != "" {
		t.Error(diff)
	}
}

func TestReadRefuses(t *testing.T) {
	key := func(f *file) *file { return f.text("k").num(uint32(typeUint8)).num(uint8(1)) }
	tests := map[string]struct {
		file *file
		want Fault
	}{
		"nothing":                             {new(file), NotGGUF},
		"zeros":                               {new(file).data(4096), NotGGUF},
		"text":                                {&file{*bytes.NewBufferString(strings.Repeat("hello, world\n", 100))}, NotGGUF},
		"the letters and nothing more":        {&file{*bytes.NewBufferString("GGUF")}, Truncated},
		"a version of the future":             {&file{*bytes.NewBufferString("GGUF\x09\x00\x00\x00")}, Version},
		"more keys than any model has":        {new(file).start(0, math.MaxUint64), Malformed},
		"more tensors than any model has":     {new(file).start(math.MaxUint64, 0), Malformed},
		"an end inside of a key":              {new(file).start(0, 1).num(uint64(5)), Malformed},
		"a key that is longer than the file":  {new(file).start(0, 1).num(uint64(500)), Malformed},
		"a key of half of all memory":         {new(file).start(0, 1).num(uint64(1 << 40)), Malformed},
		"an empty key":                        {new(file).start(0, 1).text("").num(uint32(0)).num(uint8(0)), Malformed},
		"a key that is there twice":           {key(key(new(file).start(0, 2))), Malformed},
		"a value of an unknown type":          {new(file).start(0, 1).text("k").num(uint32(99)), Malformed},
		"a list of lists":                     {new(file).start(0, 1).text("k").num(uint32(typeArray)).num(uint32(typeArray)).num(uint64(1)), Malformed},
		"a list that is longer than the file": {new(file).start(0, 1).text("k").num(uint32(typeArray)).num(uint32(typeUint8)).num(uint64(1 << 20)), Truncated},
		"a list of more than anything":        {new(file).start(0, 1).text("k").num(uint32(typeArray)).num(uint32(typeUint8)).num(uint64(1 << 60)), Malformed},
		"a tensor without dimensions":         {new(file).start(1, 0).tensor("a", 0, 0), Malformed},
		"a tensor of nine dimensions":         {new(file).start(1, 0).tensor("a", 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1), Malformed},
		"a tensor of an unknown type":         {new(file).start(1, 0).tensor("a", 4, 0, 32).data(64), Malformed},
		"a row of half a block":               {new(file).start(1, 0).tensor("a", 8, 0, 16).data(64), Malformed},
		"a tensor whose size overflows":       {new(file).start(1, 0).tensor("a", 0, 0, 1<<40, 1<<40).data(64), Malformed},
		"an empty tensor":                     {new(file).start(1, 0).tensor("a", 0, 0, 0).data(64), Malformed},
		"a tensor that is there twice":        {new(file).start(2, 0).tensor("a", 0, 0, 4).tensor("a", 0, 32, 4).data(64), Malformed},
		"a tensor that begins in another":     {new(file).start(2, 0).tensor("a", 0, 0, 16).tensor("b", 0, 32, 4).data(128), Malformed},
		"tensors in another order":            {new(file).start(2, 0).tensor("a", 0, 32, 4).tensor("b", 0, 0, 4).data(64), Malformed},
		"two names for one tensor":            {new(file).start(2, 0).tensor("a", 0, 0, 4).tensor("b", 0, 0, 4).data(64), Malformed},
		"a gap between two tensors":           {new(file).start(2, 0).tensor("a", 0, 0, 4).tensor("b", 0, 64, 4).data(96), Malformed},
		"a tensor that is not aligned":        {new(file).start(1, 0).tensor("a", 0, 8, 4).data(64), Malformed},
		"a tensor that ends after the file":   {new(file).start(1, 0).tensor("a", 0, 0, 64).data(64), Truncated},
		"a tensor that begins after the file": {new(file).start(1, 0).tensor("a", 0, 1<<40, 4).data(64), Malformed},
		"a tensor beyond any file":            {new(file).start(1, 0).tensor("a", 0, 1<<63, 4).data(64), Malformed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h, err := Read(bytes.NewReader(tc.file.Bytes()), int64(tc.file.Len()))
			if FaultOf(err) != tc.want || h != nil {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestReadRefusesEveryPrefixOfAFile(t *testing.T) {
	b := whole().Bytes()
	for n := range b {
		if _, err := Read(bytes.NewReader(b[:n]), int64(n)); FaultOf(err) == "" {
			t.Fatalf("the first %d of %d bytes were taken for a whole file: %v", n, len(b), err)
		}
	}
}

type brokenReader struct{ err error }

func (b brokenReader) ReadAt([]byte, int64) (int, error) { return 0, b.err }

func TestReadPassesOnWhatTheReaderSays(t *testing.T) {
	want := errors.New("disk gone")
	if _, err := Read(brokenReader{want}, 100); !errors.Is(err, want) || FaultOf(err) != "" {
		t.Errorf("got %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(whole().Bytes())
	f.Add(new(file).start(1, 0).tensor("a", 8, 0, 32).data(34).Bytes())
	f.Add(narrow(2))
	f.Add([]byte("GGUF"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if FaultOf(err) == "" {
				t.Fatalf("an error without a fault: %v", err)
			}
			return
		}
		for _, tensor := range h.Tensors {
			if tensor.Offset < 0 || tensor.Bytes <= 0 || h.DataStart+tensor.Offset+tensor.Bytes > int64(len(b)) {
				t.Fatalf("%+v lies outside of %d bytes", tensor, len(b))
			}
		}
		size, has := h.Widened()
		if !has {
			return
		}
		var out bytes.Buffer
		if err := h.Widen(&out, bytes.NewReader(b)); err != nil {
			return
		}
		if again, err := Read(bytes.NewReader(out.Bytes()), size); err != nil || len(again.Tensors) != len(h.Tensors) || size > 2*int64(len(b)) {
			t.Fatalf("%d bytes were widened to %d that read as %v, %v", len(b), size, again, err)
		}
	})
}
