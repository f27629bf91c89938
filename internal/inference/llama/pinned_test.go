package llama

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/inference/llama/gguf"
	"gatewright.dev/gatewright/internal/questions"
)

// plain is a small file that pin takes as it is.
func plain() []byte {
	b := []byte("GGUF\x03\x00\x00\x00")
	b = append(b, make([]byte, 16)...) // no tensors, no values
	return append(b, bytes.Repeat([]byte("model "), 1_000_000)...)
}

// fives is a small file with weights in Q5_0, and something behind them.
func fives() []byte {
	b := []byte("GGUF\x03\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")   // one tensor, no values
	b = append(b, "\x01\x00\x00\x00\x00\x00\x00\x00w\x01\x00\x00\x00\x20\x00\x00\x00\x00\x00\x00\x00"...) // w, of 32 numbers
	b = append(b, "\x06\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)                                  // Q5_0, at the start
	b = append(b, make([]byte, (32-len(b)%32)%32)...)
	return append(b, bytes.Repeat([]byte("0123456789"), 500_000)...)
}

func pinContent(ctx context.Context, t *testing.T, content []byte, directory string) (*pinned, error) {
	t.Helper()
	h, err := gguf.Read(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	return pin(ctx, bytes.NewReader(content), h, directory)
}

func TestPinnedBytesAreThoseThatWereHashed(t *testing.T) {
	for name, content := range map[string][]byte{"a file": plain(), "a file with weights in five bits": fives()} {
		for where, directory := range map[string]string{"sealed memory": "", "a file without a name": t.TempDir()} {
			t.Run(name+" in "+where, func(t *testing.T) { checkPinned(t, content, directory) })
		}
	}
}

func checkPinned(t *testing.T, content []byte, directory string) {
	t.Helper()
	sum := sha256.Sum256(content)
	p, err := pinContent(t.Context(), t, content, directory)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if p.sum != hex.EncodeToString(sum[:]) {
		t.Errorf("hashed %s", p.sum)
	}
	again, err := os.ReadFile(p.path())
	if err != nil || int64(len(again)) != p.size {
		t.Errorf("the copy reads as %d bytes, %v", len(again), err)
	}
	if isSame := bytes.Equal(again, content); isSame != (p.loaded == p.sum) || isSame == bytes.Equal(content, fives()) {
		t.Errorf("the copy has %d of %d bytes and is the same: %v", len(again), len(content), isSame)
	}
	if err := p.verify(t.Context()); err != nil {
		t.Error(err)
	}
	if directory != "" {
		if left, _ := os.ReadDir(directory); len(left) != 0 {
			t.Errorf("%s is still there by name", left[0].Name())
		}
		return
	}
	if _, err := p.file.WriteAt([]byte("x"), 0); err == nil {
		t.Error("sealed memory was written to")
	}
	if f, err := os.OpenFile(p.path(), os.O_RDWR, 0); err == nil {
		if _, err := f.WriteAt([]byte("x"), 0); err == nil {
			t.Error("sealed memory was written to by another way in")
		}
		f.Close()
	}
	if err := p.file.Truncate(1); err == nil {
		t.Error("sealed memory was cut")
	}
}

func TestVerifyNoticesChangedBytes(t *testing.T) {
	for name, change := range map[string]func(*os.File, int64) error{
		"one byte that is another": func(f *os.File, _ int64) error { _, err := f.WriteAt([]byte("x"), 3); return err },
		"one byte more":            func(f *os.File, size int64) error { _, err := f.WriteAt([]byte("x"), size); return err },
		"one byte less":            func(f *os.File, size int64) error { return f.Truncate(size - 1) },
	} {
		for what, content := range map[string][]byte{"a file": plain(), "a file with weights in five bits": fives()} {
			t.Run(name+" of "+what, func(t *testing.T) {
				p, err := pinContent(t.Context(), t, content, t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				defer p.close()
				if err := change(p.file, p.size); err != nil {
					t.Fatal(err)
				}
				var e *LoadError
				if err := p.verify(t.Context()); !errors.As(err, &e) || e.Reason != ModelHashMismatch || e.Want != p.loaded || e.Got == p.loaded {
					t.Errorf("got %v", err)
				} else if !strings.Contains(err.Error(), p.sum) {
					t.Errorf("%q does not name the file", err)
				}
			})
		}
	}
}

func TestCopyingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, content := range map[string][]byte{"a file": plain(), "a file with weights in five bits": fives()} {
		if _, err := pinContent(ctx, t, content, ""); ReasonOf(err) != ModelUnreadable || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// What is loaded in place of a model with weights in Q5_0 is another file, and no answer shows it.
func TestWidenedWeightsGiveTheSameBits(t *testing.T) {
	need(t, model(gemma))
	wide := use(t, gemma)
	if wide.pinned.loaded == wide.pinned.sum || wide.Info().SHA256 != wide.pinned.sum {
		t.Fatalf("loaded %s of the file %s", wide.pinned.loaded, wide.pinned.sum)
	}
	f, err := os.Open(model(gemma))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := private("", func(to io.Writer) error { return copyAll(to, f) })
	if err != nil {
		t.Fatal(err)
	}
	if p.loaded != wide.pinned.sum {
		t.Fatalf("the file is %s, the engine says %s", p.loaded, wide.pinned.sum)
	}
	as, err := open(options(gemma), p, 512)
	if err != nil {
		t.Fatal(err)
	}
	defer as.Close()
	asked := []questions.Question{short("lamps"), short("money"), {
		Name: "what", Type: questions.Choice, Instructions: "What is bought?",
		Options: []questions.Option{{Name: "lamp"}, {Name: "table"}, {Name: "none"}},
	}}
	for i := range 4 {
		request := strings.Repeat("Please buy lamps. ", 1+7*i)
		state := fmt.Appendf(nil, `{"user_request":%q,"proposed_call":{"tool":"buy","arguments":{"count":%d}}}`, request, i)
		want, err := as.Ask(t.Context(), state, asked)
		if err != nil {
			t.Fatal(err)
		}
		got, err := wide.Ask(t.Context(), state, asked)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Distributions, got.Distributions); diff != "" {
			t.Errorf("state %d: %s", i, diff)
		}
	}
}
