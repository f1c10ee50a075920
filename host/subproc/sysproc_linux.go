package subproc

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttr gives a plugin a separate process group and makes the kernel kill it when
// the host dies.
func processAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit blocks until the child has ended but does not reap it, so that its process
// group cannot be mistaken for another. It returns false if it could not wait.
func awaitExit(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}
