//go:build !linux

package checkpoint

import "os"

// syncData makes f's content durable.
func syncData(f *os.File) error { return f.Sync() }
