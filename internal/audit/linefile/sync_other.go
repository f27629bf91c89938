//go:build !linux

package linefile

import "os"

func datasync(f *os.File) error { return f.Sync() }
