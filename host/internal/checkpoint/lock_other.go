//go:build !linux && !wasm

package checkpoint

import (
	"errors"
	"fmt"
	"os"

	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

// lockFile makes the caller the owner of f until releaseFile. The error is a
// [*InUseError], without a pid, if a live process owns it.
func lockFile(f *os.File, path string) error {
	err := filelock.TryLock(f)
	if errors.Is(err, filelock.ErrLocked) {
		return &InUseError{Path: path}
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	return nil
}

// releaseFile closes f, and releases the lock if f has one.
func releaseFile(f *os.File) error {
	_ = filelock.Unlock(f) // fails if f has none, on Windows
	return f.Close()
}

// lockOwner reports whether another open file owns f, by briefly taking the lock.
// The pid is unknown.
func lockOwner(f *os.File) (pid int, locked bool, err error) {
	err = filelock.TryRLock(f)
	if errors.Is(err, filelock.ErrLocked) {
		return 0, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	return 0, false, filelock.Unlock(f)
}
