package subproc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// clockTick is the unit of times in /proc. It is the same on all architectures.
const clockTick = 10 * time.Millisecond

// activity returns the processor time of the process, and whether the process is
// stopped by a signal. They are not known on every system.
func (r *runner) activity() (used time.Duration, stopped, known bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.pid.Load()))
	if err != nil {
		return 0, false, false
	}
	// The fields after the name, which is in parentheses and can contain any
	// character, begin with the state; user and system time are the 12th and
	// 13th.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, false, false
	}
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, false, false
		}
		used += time.Duration(ticks) * clockTick
	}
	return used, string(fields[0]) == "T", true
}

// resident returns the memory of a process, and the part of it without mapped files.
func resident(pid int) (all, own int64) {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, 0
	}
	var size, shared int64
	if _, err := fmt.Sscan(string(statm), &size, &all, &shared); err != nil {
		return 0, 0
	}
	page := int64(os.Getpagesize())
	return all * page, max(0, all-shared) * page
}
