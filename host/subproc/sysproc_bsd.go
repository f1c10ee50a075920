//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package subproc

import (
	"errors"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// awaitExit blocks until the child has ended but does not reap it, so that its process
// group cannot be mistaken for another. It returns false if it could not wait.
func awaitExit(pid int) bool {
	queue, err := unix.Kqueue()
	if err != nil {
		return false
	}
	defer unix.Close(queue)
	unix.CloseOnExec(queue)
	var watch unix.Kevent_t
	unix.SetKevent(&watch, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	watch.Fflags = unix.NOTE_EXIT
	changes := []unix.Kevent_t{watch}
	for {
		n, err := unix.Kevent(queue, changes, make([]unix.Kevent_t, 1), nil)
		switch {
		case errors.Is(err, unix.EINTR):
			changes = nil // the change was applied before the wait
		case errors.Is(err, unix.ESRCH):
			return true // it has ended already
		case err != nil || n > 0:
			return err == nil
		}
	}
}

// activity returns the processor time of the process, and whether the process is stopped
// by a signal.
func (r *runner) activity() (used time.Duration, stopped, known bool) {
	_, used, stopped, known = askPS(int(r.pid.Load()))
	return used, stopped, known
}

// resident returns the memory of a process. The part without mapped files is not known.
func resident(pid int) (all, own int64) {
	all, _, _, _ = askPS(pid)
	return all, all
}

// wrap makes the command limit itself: no process can limit another one.
func (l Limits) wrap(cmd *exec.Cmd) {
	if l.OpenFiles > 0 {
		limitFiles(cmd, l.OpenFiles)
	}
}
