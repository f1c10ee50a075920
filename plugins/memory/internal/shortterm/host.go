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

// hostName identifies a process as PID-START, where START counts from the start
// of the machine. On Linux, a later process with the same PID differs.
type hostName string

// parent returns the process that started this one.
func parent() hostName { return hostOf(os.Getppid()) }

func hostOf(pid int) hostName {
	name := strconv.Itoa(pid)
	if start := startOf(pid); start != "" {
		name += "-" + start
	}
	return hostName(name)
}

// alive reports whether the process still runs.
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

// startOf returns the start time of a process, "" if the system does not report
// it.
func startOf(pid int) string {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	// The second field is the program's name, which can contain anything.
	_, after, _ := bytes.Cut(stat[max(bytes.LastIndexByte(stat, ')'), 0):], []byte(" "))
	fields := strings.Fields(string(after))
	const start = 22 - 3 // the fields are counted from 1, and two are cut off
	if len(fields) <= start {
		return ""
	}
	return fields[start]
}

// uptime returns the time since the start of the machine, which does not change
// with the clock, or the time of day if the system does not report it.
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
