package serve

import (
	"bufio"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// trimAfter is the time after which an idle plugin releases memory from its start.
	trimAfter = time.Second
	// trimAgain is the time without a call after which it releases memory from calls.
	trimAgain = 30 * time.Second
)

// trimWhenIdle releases memory to the system while the plugin is idle: freed
// allocations, and the code and constants that were used, which the system rereads from
// the file on the next access.
func trimWhenIdle(c *calls) {
	for range time.Tick(trimAfter) {
		if c.isIdle() {
			break
		}
	}
	for begun := 0; ; {
		debug.FreeOSMemory()
		trimFiles("/proc/self/smaps")
		begun = c.waitForPause(begun, trimAgain)
	}
}

// waitForPause waits until more than seen calls have begun, and then for a pause without
// calls. It returns the number of calls that have begun.
func (c *calls) waitForPause(seen int, pause time.Duration) int {
	c.mu.Lock()
	next := make(chan struct{})
	if c.begun > seen {
		close(next)
	} else {
		c.next = next
	}
	c.mu.Unlock()
	<-next
	for before := seen; ; <-time.After(pause) {
		c.mu.Lock()
		begun, idle := c.begun, c.running == 0
		c.mu.Unlock()
		if idle && begun == before {
			return begun
		}
		before = begun
	}
}

// trimFiles unmaps the pages of files that were never written to.
func trimFiles(smaps string) {
	f, err := os.Open(smaps)
	if err != nil {
		return
	}
	defer f.Close()
	var at mapping
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) < 2:
		case !strings.HasSuffix(fields[0], ":"):
			at.trim()
			at = parseMapping(fields)
		case fields[0] == "Anonymous:": // copies of pages that were written to
			at.written = fields[1] != "0"
		}
	}
	at.trim()
}

type mapping struct {
	start, end uintptr
	file       bool // read-only, private, of a file
	written    bool
}

// parseMapping reads the first line of a mapping, such as
// "00400000-00a2d000 r-xp 00000000 08:01 1234 /usr/bin/x".
func parseMapping(fields []string) mapping {
	from, to, _ := strings.Cut(fields[0], "-")
	start, errStart := strconv.ParseUint(from, 16, strconv.IntSize)
	end, errEnd := strconv.ParseUint(to, 16, strconv.IntSize)
	readOnly := fields[1] == "r-xp" || fields[1] == "r--p"
	return mapping{
		start: uintptr(start), end: uintptr(end),
		file: errStart == nil && errEnd == nil && readOnly && len(fields) >= 6 && strings.HasPrefix(fields[5], "/"),
	}
}

// trim drops the pages. Pages that differ from the file, such as those of a dynamic
// linker, would be lost.
func (m mapping) trim() {
	if m.file && !m.written {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.start, m.end-m.start, syscall.MADV_DONTNEED)
	}
}
