//go:build unix

package filelock

import (
	"os"

	"golang.org/x/sys/unix"
)

// Lock waits until the caller has the lock.
func Lock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }

// TryLock fails if another open file has the lock.
func TryLock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// Unlock releases the lock before the file is closed.
func Unlock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }
