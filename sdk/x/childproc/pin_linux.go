package childproc

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Pin binds all threads of a process, and the threads and processes that they start, to n
// processors. It does nothing on systems other than Linux.
func Pin(pid, n int) error {
	var allowed, chosen unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &allowed); err != nil {
		return err
	}
	if n >= allowed.Count() {
		return nil
	}
	// Processes with the same limit are distributed over the processors.
	for i, skip := 0, pid%allowed.Count(); chosen.Count() < n; i = (i + 1) % (len(allowed) * 64) {
		if !allowed.IsSet(i) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		chosen.Set(i)
	}
	threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(id, &chosen); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
