package chromium

import (
	"bytes"
	"os"
	"strconv"
)

// memoryOf returns the memory of a process and its descendants in bytes. It counts
// shared memory once.
func memoryOf(root int) int64 {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	children := map[int][]int{}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			parent := parentOf(pid)
			children[parent] = append(children[parent], pid)
		}
	}
	resident, shared := memoryFields(root)
	total := resident - shared
	most := shared
	for queue := children[root]; len(queue) > 0; queue = queue[1:] {
		resident, shared := memoryFields(queue[0])
		total += resident - shared
		most = max(most, shared)
		queue = append(queue, children[queue[0]]...)
	}
	return (total + most) * int64(os.Getpagesize())
}

// parentOf returns the parent of a process; 0 if it has ended.
func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name in parentheses can contain anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return parent
}

// memoryFields returns the resident and the shared pages of a process.
func memoryFields(pid int) (resident, shared int64) {
	statm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, 0
	}
	fields := bytes.Fields(statm)
	if len(fields) < 3 {
		return 0, 0
	}
	resident, _ = strconv.ParseInt(string(fields[1]), 10, 64) // the kernel writes numbers
	shared, _ = strconv.ParseInt(string(fields[2]), 10, 64)
	return resident, shared
}
