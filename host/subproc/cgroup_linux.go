package subproc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cgroups creates a control group with limits for each process of a plugin. It contains
// all processes that the plugin starts. The nil cgroups creates none.
type cgroups struct {
	// prefix is the prefix of the paths of the groups.
	prefix string

	mu   sync.Mutex
	made int
}

// cgroupRoots are the mount points of version 2.
var cgroupRoots = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}

// newCgroups returns nil unless the host may divide its group, which systemd allows for
// units with Delegate=. The host moves to a leaf, because only leaves can have
// processes.
func newCgroups() *cgroups {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	base := delegatedGroup(string(text), cgroupRoots)
	if base == "" {
		return nil
	}
	return divide(base)
}

// divide moves the host to a leaf of its group and enables the controllers for the
// leaf's siblings.
func divide(base string) *cgroups {
	stale, _ := filepath.Glob(filepath.Join(base, "tea-*")) // the pattern is valid
	for _, dir := range stale {
		_ = os.Remove(dir) // fails if it is in use
	}
	pid := strconv.Itoa(os.Getpid())
	leaf := filepath.Join(base, "tea-"+pid+"-host")
	if os.Mkdir(leaf, 0o755) != nil || writeGroup(leaf, "cgroup.procs", pid) != nil {
		return nil
	}
	for _, controller := range []string{"memory", "cpu"} {
		_ = writeGroup(base, "cgroup.subtree_control", "+"+controller) // the controller is missing or not permitted
	}
	return &cgroups{prefix: filepath.Join(base, "tea-"+pid+"-plugin-")}
}

// delegatedGroup returns the directory of the host's group in one of the roots, from the
// text of /proc/self/cgroup; "" if the host must not divide the group.
func delegatedGroup(text string, roots []string) string {
	for line := range strings.Lines(text) {
		group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		for _, root := range roots {
			dir := filepath.Join(root, group)
			for _, attr := range []string{"user.delegate", "trusted.delegate"} {
				var value [1]byte
				if n, err := unix.Getxattr(dir, attr, value[:]); err == nil && n == 1 && value[0] == '1' {
					return dir
				}
			}
		}
	}
	return ""
}

func writeGroup(dir, file, text string) error {
	return os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644)
}

// cgroup is the group of one process. The nil cgroup does nothing.
type cgroup struct {
	path string
	dir  *os.File
}

// add creates a group; it returns nil if that fails.
func (c *cgroups) add(name string, limits Limits) *cgroup {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	c.made++
	path := c.prefix + name + "-" + strconv.Itoa(c.made)
	c.mu.Unlock()
	if os.Mkdir(path, 0o755) != nil {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		_ = os.Remove(path) // it is empty
		return nil
	}
	// The files exist only if their controllers are enabled. Without them, the limits
	// of the process remain.
	if limits.Memory > 0 && !limits.isDefault {
		_ = writeGroup(path, "memory.max", strconv.FormatInt(limits.Memory, 10))
	}
	if limits.CPU > 0 {
		const period = 100_000
		_ = writeGroup(path, "cpu.max", fmt.Sprintf("%d %d", int64(limits.CPU*period), period))
	}
	return &cgroup{path: path, dir: dir}
}

// admit starts a process in the group.
func (g *cgroup) admit(attr *syscall.SysProcAttr) {
	if g != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(g.dir.Fd())
	}
}

// kill kills all processes of the group.
func (g *cgroup) kill() {
	if g != nil {
		_ = writeGroup(g.path, "cgroup.kill", "1") // since Linux 5.14
	}
}

// exhausted reports whether the kernel has killed a process of the group because
// of the memory limit.
func (g *cgroup) exhausted() bool {
	if g == nil {
		return false
	}
	events, err := os.ReadFile(filepath.Join(g.path, "memory.events"))
	for line := range bytes.Lines(events) {
		kills, ok := bytes.CutPrefix(line, []byte("oom_kill "))
		if ok && string(bytes.TrimSpace(kills)) != "0" {
			return err == nil
		}
	}
	return false
}

// remove removes the group after its processes have been killed.
func (g *cgroup) remove() {
	if g == nil {
		return
	}
	g.dir.Close()
	for wait := time.Millisecond; os.Remove(g.path) != nil && wait < time.Second; wait *= 2 {
		time.Sleep(wait) //nolint:forbidigo // the kernel announces nothing
	}
}
