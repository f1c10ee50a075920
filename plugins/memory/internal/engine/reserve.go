package engine

import (
	"os"
	"path/filepath"
)

const (
	// reserveFile keeps room on the disk for calls that free space.
	reserveFile = "reserve"
	reserveSize = 1 << 20
)

// keepReserve makes the reserve where it is missing and there is room for it.
func keepReserve(dir string) {
	path := filepath.Join(dir, reserveFile)
	if info, err := os.Stat(path); err == nil && info.Size() == reserveSize {
		return
	}
	// Zeros, not a hole: the blocks must be taken.
	if err := os.WriteFile(path, make([]byte, reserveSize), 0o600); err != nil {
		_ = os.Remove(path) // the disk is full or read-only; the next opening tries again
	}
}

// releaseReserve gives the room of the reserve back to the disk; false = there
// is none.
func (e *Engine) releaseReserve() bool {
	return os.Remove(filepath.Join(e.options.Dir, reserveFile)) == nil
}
