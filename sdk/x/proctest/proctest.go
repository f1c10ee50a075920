// Package proctest is for tests that wait for the end of processes that are not their
// children. Start with [Await]. It needs /proc, as on Linux.
package proctest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Gone reports whether a process has ended, even if it is not reaped yet.
func Gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
}

// Await waits until processes have ended and returns those that have not. It polls, because
// there is no notification for processes that are not children. The limit is counted in
// ticks, so that ticks that are late or dropped on a busy machine do not count.
func Await(limit time.Duration, pids ...int) (left []int) {
	const every = 10 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	left = slices.Clone(pids)
	for range limit / every {
		if left = slices.DeleteFunc(left, Gone); len(left) == 0 {
			break
		}
		<-tick.C
	}
	return left
}
