package engine

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// availableMemory returns the memory that this process can use, in bytes: the
// smallest limit of its control groups or the machine's memory, 0 if unknown.
func availableMemory() int64 {
	limit := machineMemory("/proc/meminfo")
	for _, group := range controlGroups("/proc/self/cgroup") {
		if n := groupLimit(filepath.Join("/sys/fs/cgroup", group)); n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}

// controlGroups returns the process's group (version 2) and its parents.
func controlGroups(file string) []string {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		group, found := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !found {
			continue
		}
		groups := []string{group}
		for group != "/" && group != "." {
			group = filepath.Dir(group)
			groups = append(groups, group)
		}
		return groups
	}
	return nil
}

func groupLimit(dir string) int64 {
	data, err := os.ReadFile(filepath.Join(dir, "memory.max"))
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0 // "max"
	}
	return n
}

func machineMemory(file string) int64 {
	f, err := os.Open(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 2 && fields[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}
