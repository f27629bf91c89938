package llama

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"
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
