package checkpoint

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"

	"github.com/the-edge-agent/tea/host/internal/filelock"
)

// lockFile makes the caller the owner of f until releaseFile; a
// [*LockedError], without a pid, where a live process owns it.
func lockFile(f *os.File, path string) error {
	err := filelock.TryLock(f)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return &LockedError{Path: path}
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	return nil
}

// releaseFile closes f, which releases its lock.
func releaseFile(f *os.File) error { return f.Close() }

// lockOwner reports whether another open file owns f. It takes the lock for a
// moment to find out; the pid is not known.
func lockOwner(f *os.File) (pid int, locked bool, err error) {
	err = filelock.TryLock(f)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return 0, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	return 0, false, filelock.Unlock(f)
}
