package plugproc

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// spare is what a process can map beyond twice its memory limit. Programs map
// more than they use; the kernel's limit is for those that grow faster than the
// host looks.
const spare = 256 << 20

// shortestLook is the shortest time between two looks at the memory of a process.
const shortestLook = 20 * time.Millisecond

// wrap leaves the command as it is: apply sets the limits.
func (Limits) wrap(*exec.Cmd) {}

// apply sets the kernel's limits of a process that has just started. The
// processes that it starts inherit them.
func (l Limits) apply(pid int) error {
	var errs []error
	set := func(what string, resource int, n uint64) {
		if err := unix.Prlimit(pid, resource, &unix.Rlimit{Cur: n, Max: n}, nil); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	if l.OpenFiles > 0 {
		set("open_files", unix.RLIMIT_NOFILE, uint64(l.OpenFiles))
	}
	if l.Memory > 0 && !l.isDefault {
		set("memory_mb", unix.RLIMIT_DATA, 2*uint64(l.Memory)+spare)
	}
	if l.CPU > 0 {
		if err := pin(pid, int(math.Ceil(l.CPU))); err != nil {
			errs = append(errs, fmt.Errorf("cpu: %w", err))
		}
	}
	return errors.Join(errs...)
}

// pin binds all threads of a process, and those that they start, to n
// processors.
func pin(pid, n int) error {
	var allowed, chosen unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &allowed); err != nil {
		return err
	}
	if n >= allowed.Count() {
		return nil
	}
	// Plugins with the same limit are spread over the processors.
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

// physicalMemory returns the memory of the machine in bytes; 0 if it is not
// known.
var physicalMemory = sync.OnceValue(func() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(uint64(info.Totalram) * uint64(info.Unit)) //nolint:unconvert // Totalram has 32 bits on some systems
})
