package process

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// awaitExit blocks until the child has ended, without reaping it, so that its process
// group ID is not reused.
func (p *Process) awaitExit() {
	for {
		if err := unix.Waitid(unix.P_PID, p.Pid(), nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// keepDescriptors keeps inherited descriptors of this process from the servers. Go
// does not pass on descriptors that it opens.
func keepDescriptors() {
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) // since Linux 5.11
}

// headroom is the memory that a process may map beyond twice its memory limit:
// programs map more than they use.
const headroom = 256 << 20

// limit sets the kernel's limits of a process that has just started. Its children
// inherit them. The watch enforces the exact limit.
func limit(pid int, memory int64) {
	if memory > 0 {
		n := 2*uint64(memory) + headroom
		_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: n, Max: n}, nil) // it may have ended
	}
}

// watchMemory kills the process when it uses more memory than its limit.
func (p *Process) watchMemory(limit int64) {
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-p.exited:
			return
		case <-look.C:
		}
		if used := resident(p.Pid()); used > limit {
			p.kill(fmt.Sprintf("it was killed: it used %d MiB of memory and its limit is %d MiB (memory_mb)", used>>20, limit>>20))
			return
		}
	}
}

// resident returns the memory of a process in bytes; 0 if it is unknown.
func resident(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	fields := bytes.Fields(text)
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize())
}
