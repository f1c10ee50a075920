package shortterm

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hostName names a process, and on Linux no later one with the same number:
// PID-START, where START counts from the start of the machine.
type hostName string

// parent is the process that has started this one.
func parent() hostName { return hostOf(os.Getppid()) }

func hostOf(pid int) hostName {
	name := strconv.Itoa(pid)
	if start := startOf(pid); start != "" {
		name += "-" + start
	}
	return hostName(name)
}

// alive says whether the process still runs.
func (h hostName) alive() bool {
	number, _, _ := strings.Cut(string(h), "-")
	pid, err := strconv.Atoi(number)
	if err != nil || pid <= 0 || hostOf(pid) != h {
		return false
	}
	process, err := os.FindProcess(pid)
	if err != nil || runtime.GOOS == "windows" {
		return err == nil
	}
	err = process.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}

// startOf is when a process was started, "" where the system does not say.
func startOf(pid int) string {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	// The second field is the program's name, which may hold anything.
	_, after, _ := bytes.Cut(stat[max(bytes.LastIndexByte(stat, ')'), 0):], []byte(" "))
	fields := strings.Fields(string(after))
	const start = 22 - 3 // the fields are counted from 1, and two are cut off
	if len(fields) <= start {
		return ""
	}
	return fields[start]
}

// uptime is a time that all processes of the machine agree on: since its
// start, where the system says, so that setting the clock does not matter.
func uptime() time.Duration {
	text, err := os.ReadFile("/proc/uptime")
	if err == nil {
		number, _, _ := strings.Cut(string(text), " ")
		if seconds, err := strconv.ParseFloat(number, 64); err == nil {
			return time.Duration(seconds * float64(time.Second))
		}
	}
	return time.Duration(time.Now().UnixNano())
}
