package subproc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// strayRounds bounds the search for the processes that others have started
// during the search.
const strayRounds = 5

// killStrays kills the processes that have the mark in their environment and
// began after the plugin: they have left its process group, but inherited the
// mark.
func killStrays(plugin int, mark string) {
	for range strayRounds {
		found := false
		for _, pid := range processesSince(plugin) {
			found = killMarked(pid, mark) || found
		}
		if !found {
			return
		}
	}
}

// processesSince returns the processes that can have started after another one,
// or all if their numbers have been reused.
func processesSince(first int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	if last := lastProcess(); last < first {
		first = 0
	}
	var pids []int
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid > first {
			pids = append(pids, pid)
		}
	}
	return pids
}

// lastProcess returns the number of the process that was started last; 0 if it
// is not known.
func lastProcess() int {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	last, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		return 0
	}
	return last
}

// killMarked kills a process if it has the mark.
func killMarked(pid int, mark string) bool {
	handle, err := unix.PidfdOpen(pid, 0) // it can end, and its number be reused
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(handle) }()
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil || !bytes.Contains(append(env, 0), append([]byte(mark), 0)) {
		return false
	}
	return unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0) == nil
}
