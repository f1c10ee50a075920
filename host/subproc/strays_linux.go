package subproc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// strayRounds bounds the repetition of the search, for processes that were started
// during it.
const strayRounds = 5

// killStrays kills the processes that have the mark in their environment and began after
// the plugin: they have left its process group but inherited the mark.
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

// processesSince returns the processes that may have started after another one, or all of
// them if process ids have been reused.
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

// lastProcess returns the id of the last started process; 0 if unknown.
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
	handle, err := unix.PidfdOpen(pid, 0) // it can end, and its id be reused
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
