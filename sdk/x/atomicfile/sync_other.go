//go:build !linux

package atomicfile

import "os"

// SyncData makes the content of an open file durable, and its size if it has changed.
func SyncData(f *os.File) error { return f.Sync() }
