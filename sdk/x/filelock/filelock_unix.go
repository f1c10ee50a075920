//go:build unix

package filelock

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Lock waits until the caller has the lock.
func Lock(f *os.File) error { return lock(f, unix.LOCK_EX) }

// TryLock takes the lock, or returns [ErrLocked] if another open file has it.
func TryLock(f *os.File) error { return lock(f, unix.LOCK_EX|unix.LOCK_NB) }

// TryRLock takes a shared lock for reading. It returns [ErrLocked] if another open file has
// the lock exclusively.
func TryRLock(f *os.File) error { return lock(f, unix.LOCK_SH|unix.LOCK_NB) }

// Unlock releases the lock before the file is closed.
func Unlock(f *os.File) error { return lock(f, unix.LOCK_UN) }

func lock(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// Owned reports whether a file belongs to this user.
func Owned(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
