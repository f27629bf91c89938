package linefile

import (
	"os"
	"syscall"
)

// datasync makes content and length durable, and skips the times.
func datasync(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err != syscall.EINTR {
			return err
		}
	}
}
