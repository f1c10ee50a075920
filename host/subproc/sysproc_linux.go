package subproc

import (
	"errors"

	"golang.org/x/sys/unix"
)

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
