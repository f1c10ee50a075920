package filelock

import (
	"os"

	"golang.org/x/sys/windows"
)

// Lock waits until the caller has the lock.
func Lock(f *os.File) error { return lock(f, 0) }

// TryLock fails if another open file has the lock.
func TryLock(f *os.File) error { return lock(f, windows.LOCKFILE_FAIL_IMMEDIATELY) }

// lock locks one byte far behind any content: here a locked byte cannot be read
// by others.
func lock(f *os.File, flags uint32) error {
	at := windows.Overlapped{OffsetHigh: 1 << 30}
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|flags, 0, 1, 0, &at)
}

// Unlock releases the lock before the file is closed.
func Unlock(f *os.File) error {
	at := windows.Overlapped{OffsetHigh: 1 << 30}
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}
