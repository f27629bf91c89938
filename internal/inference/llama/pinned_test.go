package llama

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/questions"
)

func TestPinnedBytesAreThoseThatWereHashed(t *testing.T) {
	content := bytes.Repeat([]byte("model "), 1_000_000)
	sum := sha256.Sum256(content)
	for name, directory := range map[string]string{"sealed memory": "", "a file without a name": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			p, err := pin(t.Context(), bytes.NewReader(content), directory)
			if err != nil {
				t.Fatal(err)
			}
			defer p.close()
			if p.sum != hex.EncodeToString(sum[:]) || p.size != int64(len(content)) {
				t.Errorf("hashed %s of %d bytes", p.sum, p.size)
			}
			again, err := os.ReadFile(p.path())
			if err != nil || !bytes.Equal(again, content) {
				t.Errorf("the copy reads as %d bytes, %v", len(again), err)
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
		})
	}
}

func TestVerifyNoticesChangedBytes(t *testing.T) {
	for name, change := range map[string]func(*os.File) error{
		"one byte that is another": func(f *os.File) error { _, err := f.WriteAt([]byte("x"), 3); return err },
		"one byte more":            func(f *os.File) error { _, err := f.WriteAt([]byte("x"), 5); return err },
		"one byte less":            func(f *os.File) error { return f.Truncate(4) },
	} {
		t.Run(name, func(t *testing.T) {
			p, err := pin(t.Context(), strings.NewReader("model"), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer p.close()
			if err := change(p.file); err != nil {
				t.Fatal(err)
			}
			var e *LoadError
			if err := p.verify(t.Context()); !errors.As(err, &e) || e.Reason != ModelHashMismatch || e.Want != p.sum || e.Got == p.sum {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestCopyingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pin(ctx, strings.NewReader("model"), ""); ReasonOf(err) != ModelUnreadable || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
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
	p, err := pin(t.Context(), f, "")
	if err != nil {
		t.Fatal(err)
	}
	if p.sum != wide.pinned.sum {
		t.Fatalf("the file is %s, the engine says %s", p.sum, wide.pinned.sum)
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
		state := []byte(fmt.Sprintf(`{"user_request":%q,"proposed_call":{"tool":"buy","arguments":{"count":%d}}}`, strings.Repeat("Please buy lamps. ", 1+7*i), i))
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

func TestWideningEndsWithItsContext(t *testing.T) {
	need(t, model(gemma))
	f, err := os.Open(model(gemma))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := pin(t.Context(), f, "")
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.widened(ctx, ""); ReasonOf(err) != ModelUnreadable || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
