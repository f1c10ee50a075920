package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Lock waits until the caller has the lock.
func Lock(f *os.File) error { return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// TryLock takes the lock, or returns [ErrLocked] if another open file has it.
func TryLock(f *os.File) error {
	return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY)
}

// TryRLock takes a shared lock for reading. It returns [ErrLocked] if another open file has
// the lock exclusively.
func TryRLock(f *os.File) error { return lock(f, windows.LOCKFILE_FAIL_IMMEDIATELY) }

// lock locks one byte far beyond any content, because others cannot read a locked byte on
// this system.
func lock(f *os.File, flags uint32) error {
	at := windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// Unlock releases the lock before the file is closed.
func Unlock(f *os.File) error {
	at := windows.Overlapped{OffsetHigh: 1 << 30}
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}

// Owned returns true for every file: owners are not examined on this system.
func Owned(os.FileInfo) bool { return true }
