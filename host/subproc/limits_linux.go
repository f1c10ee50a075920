package subproc

import (
	"errors"
	"fmt"
	"math"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/the-edge-agent/tea/sdk/x/childproc"
)

// headroom is the memory that a process can map beyond twice its limit. Programs map more
// than they use; the kernel's limit is only for processes that grow faster than the host
// checks.
const headroom = 256 << 20

// shortestLook is the minimum interval between two checks of a process's memory.
const shortestLook = 20 * time.Millisecond

// wrap does nothing: apply sets the limits.
func (Limits) wrap(*exec.Cmd) {}

// apply sets the kernel's limits for a process that has just started. Its child
// processes inherit them.
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
		set("memory_mb", unix.RLIMIT_DATA, 2*uint64(l.Memory)+headroom)
	}
	if l.CPU > 0 {
		if err := childproc.Pin(pid, int(math.Ceil(l.CPU))); err != nil {
			errs = append(errs, fmt.Errorf("cpu: %w", err))
		}
	}
	return errors.Join(errs...)
}

// physicalMemory returns the memory of the machine in bytes; 0 if it is not
// known.
func physicalMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(uint64(info.Totalram) * uint64(info.Unit)) //nolint:unconvert // Totalram has 32 bits on some systems
}
