package plugproc

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttr puts a plugin into a process group of its own and has the
// kernel kill it when the host dies.
func processAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit blocks until the child has ended but leaves it unreaped, so that
// its process group cannot be mistaken for another. It is false where it could
// not wait.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
