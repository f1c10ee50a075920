package serial

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lock takes the lock of a port that other programs respect too: root can open a port
// that is in exclusive use.
func lock(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.EBUSY) {
		return nil, errBusy
	}
	if err != nil {
		return nil, err
	}
	raw, err := f.SyscallConn()
	for err == nil {
		var busy error
		if err = raw.Control(func(fd uintptr) { busy = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) }); err == nil && busy == nil {
			return f, nil
		}
		if busy != nil && !errors.Is(busy, unix.EWOULDBLOCK) {
			err = busy
			break
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			err = errBusy
		}
	}
	return nil, errors.Join(err, f.Close())
}

// ports returns the serial ports that have hardware. The library would open each ttyS
// port to find out, and change its mode.
func ports() ([]Found, error) {
	links, err := filepath.Glob("/sys/class/tty/*/device/driver")
	if err != nil {
		return nil, err
	}
	found := []Found{}
	for _, link := range links {
		class := filepath.Dir(filepath.Dir(link))
		if kind, err := os.ReadFile(filepath.Join(class, "type")); err == nil && strings.TrimSpace(string(kind)) == "0" {
			continue // a driver that has found no hardware
		}
		f := Found{Path: "/dev/" + filepath.Base(class)}
		if driver, err := os.Readlink(link); err == nil {
			f.Driver = filepath.Base(driver)
		}
		found = append(found, f)
	}
	names, _ := filepath.Glob("/dev/serial/by-id/*") // a fixed pattern
	for _, name := range names {
		to, err := filepath.EvalSymlinks(name)
		for i := range found {
			if err == nil && found[i].Path == to {
				found[i].ID = name
			}
		}
	}
	return found, nil
}
