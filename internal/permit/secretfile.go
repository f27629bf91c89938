package permit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gatewright.dev/gatewright/permit"
)

// readSecretFile reads a file that nobody else can read.
func readSecretFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("mode %04o: %w", info.Mode().Perm(), ErrReadableByOthers)
	}
	data, err := io.ReadAll(io.LimitReader(f, permit.MaxKeySet+1))
	if err != nil {
		return nil, err
	}
	if len(data) > permit.MaxKeySet {
		return nil, fmt.Errorf("larger than %d bytes", permit.MaxKeySet)
	}
	return data, nil
}

// replaceFile makes a file appear whole or not at all, with mode 0600. Place is os.Link, which keeps a file that is
// there already, or os.Rename, which replaces it.
func replaceFile(path string, data []byte, place func(from, to string) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if rmErr := os.Remove(f.Name()); rmErr != nil && !errors.Is(rmErr, os.ErrNotExist) {
			err = errors.Join(err, rmErr)
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := place(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
