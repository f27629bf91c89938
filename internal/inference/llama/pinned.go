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

	"golang.org/x/sys/unix"
)

// pinned is a private copy of a model file: nobody else has a name for it, so its bytes are those that were hashed.
type pinned struct {
	file *os.File
	size int64
	sum  string
	// sealed says that the kernel refuses every change. Otherwise it is a file without a name, which only this process holds.
	sealed bool
}

// copyBlock is how much is copied or hashed between two looks at the context: some milliseconds.
const copyBlock = 4 << 20

// pin copies a model into memory that is sealed afterwards or, if a directory is given, into a file of it that has lost its
// name, and hashes what it copies.
func pin(ctx context.Context, source io.Reader, directory string) (*pinned, error) {
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
	h := sha256.New()
	if p.size, err = copyHashing(ctx, p.file, source, h); err == nil && directory == "" {
		err = p.seal()
	}
	if err != nil {
		return nil, errors.Join(&LoadError{Reason: ModelUnreadable, Detail: fmt.Sprintf("making a private copy: %v", err), cause: err}, p.file.Close())
	}
	p.sum = hex.EncodeToString(h.Sum(nil))
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

// copyHashing hashes each block while it is written.
func copyHashing(ctx context.Context, to io.Writer, from io.Reader, h hash.Hash) (int64, error) {
	block := make([]byte, copyBlock)
	total := int64(0)
	for {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		n, err := io.ReadFull(from, block)
		var hashing sync.WaitGroup
		hashing.Go(func() { h.Write(block[:n]) })
		_, werr := to.Write(block[:n])
		hashing.Wait()
		if werr != nil {
			return total, werr
		}
		total += int64(n)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return total, nil
		case err != nil:
			return total, err
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
	if _, err := copyHashing(ctx, io.Discard, io.NewSectionReader(p.file, 0, p.size+1), h); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != p.sum {
		return &LoadError{Reason: ModelHashMismatch, Detail: "the loaded bytes have changed", Want: p.sum, Got: got}
	}
	return nil
}

func (p *pinned) close() error { return p.file.Close() }
