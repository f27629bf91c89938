package linefile

import (
	"fmt"
	"os"
	"path/filepath"
)

// Replace puts the file in the place of another in its folder, and the lock goes with it. Until SyncDir has returned nil
// a crash can bring the other back.
func (f *File) Replace(path string) error {
	if f.closed {
		return ErrClosed
	}
	if err := os.Rename(f.path, path); err != nil {
		return fmt.Errorf("%w: replacing: %w", ErrUnavailable, err)
	}
	f.path = path
	return nil
}

// SyncDir makes durable under which path the file stands.
func (f *File) SyncDir() error {
	if err := syncDir(filepath.Dir(f.path)); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}
