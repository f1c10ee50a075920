//go:build unix && !linux

package checkpoint

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile makes the caller the owner of f until releaseFile; a
// [*LockedError], without a pid, where a live process owns it.
func lockFile(f *os.File, path string) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return &LockedError{Path: path}
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	return nil
}

// releaseFile closes f, and releases the lock if f has one. Without that the
// lock would outlive f in a child process that is just being started.
func releaseFile(f *os.File) error {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	return f.Close()
}

// lockOwner reports whether another open file owns f. It takes the lock for a
// moment to find out; the pid is not known.
func lockOwner(f *os.File) (pid int, locked bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return 0, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	return 0, false, unix.Flock(int(f.Fd()), unix.LOCK_UN)
}
