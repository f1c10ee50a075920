package codeactions

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// runtimeMemory is the private writable memory of an idle child.
const runtimeMemory = 96 << 20

// confineSelf sets the child's limits: memory, CPU time, no files, no
// children, no core dump.
func confineSelf(memory int64, timeout time.Duration) error {
	seconds := uint64(timeout/time.Second) + 2
	limits := []struct {
		name     string
		resource int
		max      uint64
	}{
		{"memory", unix.RLIMIT_DATA, uint64(memory) + runtimeMemory},
		{"CPU time", unix.RLIMIT_CPU, seconds},
		{"file size", unix.RLIMIT_FSIZE, 0},
		{"core dumps", unix.RLIMIT_CORE, 0},
		// The job is read and the pipe for the answer is open: the child does not
		// need to open any file, socket or pipe.
		{"open files", unix.RLIMIT_NOFILE, 0},
	}
	for _, l := range limits {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.max, Max: l.max}); err != nil {
			return fmt.Errorf("limit %s: %w", l.name, err)
		}
	}
	return nil
}
