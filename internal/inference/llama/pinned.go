package llama

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"sync"

	"gatewright.dev/gatewright/internal/inference/llama/gguf"

	"golang.org/x/sys/unix"
)

// pinned is a private copy of a model file: nobody else has a name for it, so its bytes are those that were hashed.
type pinned struct {
	file *os.File
	size int64
	// sum is the SHA-256 of the model file. loaded is that of this copy: another one if weights were widened.
	sum, loaded string
	// sealed says that the kernel refuses every change. Otherwise it is a file without a name, which only this process holds.
	sealed bool
}

// copyBlock is how much is copied or hashed at once: some milliseconds.
const copyBlock = 4 << 20

// pin copies a model into memory that is sealed afterwards or, if a directory is given, into a file of it that has lost its
// name. Weights in Q5_0 are widened on the way: the same numbers, but what the engine multiplies without taking them apart
// first. What is copied is made of the bytes that are hashed while they are read, each of them once; h, the header that was
// read before, only says whether to widen.
func pin(ctx context.Context, source io.ReaderAt, h *gguf.Header, directory string) (*pinned, error) {
	from := &stoppable{ctx, io.NewSectionReader(source, 0, h.Size+1)}
	var whole hash.Hash
	p, err := private(directory, func(to io.Writer) error {
		if _, has := h.Widened(); has {
			whole = sha256.New()
			return h.Widen(to, io.TeeReader(from, whole))
		}
		return copyAll(to, from)
	})
	if err != nil {
		return nil, err
	}
	if p.sum = p.loaded; whole != nil {
		p.sum = hex.EncodeToString(whole.Sum(nil))
	}
	return p, nil
}

// private makes a copy of what write writes.
func private(directory string, write func(io.Writer) error) (*pinned, error) {
	p := &pinned{}
	var err error
	if directory == "" {
		p.file, err = memoryFile()
	} else {
		p.file, err = namelessFile(directory)
	}
	if err != nil {
		return nil, refuse(ModelUnreadable, "making a private copy: %v", err)
	}
	h := &hashing{to: p.file, hash: sha256.New()}
	if err = write(h); err == nil && directory == "" {
		err = p.seal()
	}
	switch {
	case gguf.FaultOf(err) != "":
		return nil, errors.Join(headerError(err), p.file.Close())
	case err != nil:
		return nil, errors.Join(&LoadError{Reason: ModelUnreadable, Detail: fmt.Sprintf("making a private copy: %v", err), cause: err}, p.file.Close())
	}
	p.size, p.loaded = h.size, hex.EncodeToString(h.hash.Sum(nil))
	return p, nil
}

func memoryFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("model", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("making a file in memory: %w", err)
	}
	return os.NewFile(uintptr(fd), "model"), nil
}

func namelessFile(directory string) (*os.File, error) {
	f, err := os.CreateTemp(directory, "model-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// hashing hashes what it passes on, both at once.
type hashing struct {
	to   io.Writer
	hash hash.Hash
	size int64
}

func (h *hashing) Write(p []byte) (int, error) {
	var wait sync.WaitGroup
	wait.Go(func() { h.hash.Write(p) })
	n, err := h.to.Write(p)
	wait.Wait()
	h.size += int64(n)
	return n, err
}

// stoppable reads until its context ends.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s *stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

// copyAll copies in large blocks, so that hashing goes on beside writing.
func copyAll(to io.Writer, from io.Reader) error {
	block := make([]byte, copyBlock)
	for {
		n, err := io.ReadFull(from, block)
		if _, werr := to.Write(block[:n]); werr != nil {
			return werr
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// seal forbids every later change, by this process too, and then forbids to lift that.
func (p *pinned) seal() error {
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(p.file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("sealing: %w", err)
	}
	p.sealed = true
	return nil
}

// path is a name for the copy that works in this process alone.
func (p *pinned) path() string { return fmt.Sprintf("/proc/self/fd/%d", p.file.Fd()) }

// verify hashes the copy once more, from which the weights are mapped.
func (p *pinned) verify(ctx context.Context) error {
	h := sha256.New()
	if err := copyAll(h, &stoppable{ctx, io.NewSectionReader(p.file, 0, p.size+1)}); err != nil {
		return err
	}
	got := hex.EncodeToString(h.Sum(nil))
	if got == p.loaded {
		return nil
	}
	detail := "the loaded bytes have changed"
	if p.loaded != p.sum {
		detail = "the copy that was loaded of the file " + p.sum + " has changed"
	}
	return &LoadError{Reason: ModelHashMismatch, Detail: detail, Want: p.loaded, Got: got}
}

func (p *pinned) close() error { return p.file.Close() }
