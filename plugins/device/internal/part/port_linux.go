package part

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// LockPort takes the lock of a serial port that other programs respect too: root can open
// a port that is in exclusive use. It waits until ctx is done, and then returns
// [ErrPortBusy]. The file does not block; closing it releases the lock.
func LockPort(ctx context.Context, path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
		if err == nil {
			if err = flock(f); err == nil {
				return f, nil
			}
			_ = f.Close()
		}
		if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, err
		}
		select {
		case <-time.After(PortPoll):
		case <-ctx.Done():
			return nil, ErrPortBusy
		}
	}
}

// flock locks a file without making it block, as its method Fd does.
func flock(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var locked error
	err = raw.Control(func(fd uintptr) { locked = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) })
	return cmp.Or(err, locked)
}
