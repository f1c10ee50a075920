package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// The lock is an open-file-description lock on bytes far beyond any content: it
// belongs to the open file, ends with the process however that ends, and, unlike
// flock, can be queried without being taken. One byte excludes other owners; the
// position of a second one tells them the owner's pid.
const (
	lockByte    = int64(1) << 62
	lockPIDZero = lockByte + 1
)

// lockLinger is how long the lock can outlive its process: a child that was being
// started holds the lock until its exec.
const lockLinger = 5 * time.Second

// lockFile makes the caller the owner of f until releaseFile. The error is a
// [*InUseError] if a live process, including this one, owns it.
func lockFile(f *os.File, path string) error {
	err := setLock(f, lockByte)
	for waited := time.Duration(0); errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES); waited += 10 * time.Millisecond {
		owner, _, askErr := lockOwner(f)
		if askErr != nil {
			return fmt.Errorf("ask for the owner of %s: %w", path, askErr)
		}
		if owner == 0 || waited >= lockLinger || !errors.Is(unix.Kill(owner, 0), unix.ESRCH) {
			return &InUseError{Path: path, PID: owner}
		}
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // the kernel announces nothing
		err = setLock(f, lockByte)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	if err := setLock(f, lockPIDZero+int64(os.Getpid())); err != nil {
		return fmt.Errorf("lock %s: %w", path, err)
	}
	return nil
}

func setLock(f *os.File, start int64) error {
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: start, Len: 1})
}

// releaseFile closes f and releases the lock if f has one. Closing alone would
// leave the lock to a child process that is being started.
func releaseFile(f *os.File) error {
	_ = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK, Start: lockByte})
	return f.Close()
}

// lockOwner reports whether another open file owns f, and the pid of its process,
// 0 if unknown. f may be open for reading only.
func lockOwner(f *os.File) (pid int, locked bool, err error) {
	ask := unix.Flock_t{Type: unix.F_RDLCK, Start: lockPIDZero}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &ask); err != nil {
		return 0, false, err
	}
	if ask.Type != unix.F_UNLCK {
		return int(ask.Start - lockPIDZero), true, nil
	}
	ask = unix.Flock_t{Type: unix.F_RDLCK, Start: lockByte, Len: 1}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &ask); err != nil {
		return 0, false, err
	}
	return 0, ask.Type != unix.F_UNLCK, nil
}
