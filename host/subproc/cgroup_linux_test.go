package subproc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// delegate makes a control group that a host can divide, as systemd does for a
// unit with Delegate=.
func delegate(t *testing.T) *os.File {
	t.Helper()
	for _, root := range cgroupRoots {
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil {
			continue
		}
		path := filepath.Join(root, fmt.Sprintf("teatest-%d", os.Getpid()))
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Skip("control groups cannot be made here: ", err)
		}
		t.Cleanup(func() { removeGroups(t, path) })
		if err := unix.Setxattr(path, "user.delegate", []byte("1"), 0); err != nil {
			t.Skip("control groups cannot be marked here: ", err)
		}
		dir, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { dir.Close() })
		return dir
	}
	t.Skip("there are no control groups of version 2 here")
	return nil
}

// removeGroups removes a group and those in it after their processes have
// ended.
func removeGroups(t *testing.T, path string) {
	_ = writeGroup(path, "cgroup.kill", "1")
	for end := time.Now().Add(time.Minute); ; {
		inner, _ := filepath.Glob(filepath.Join(path, "*", ""))
		for _, dir := range inner {
			_ = os.Remove(dir)
		}
		err := os.Remove(path)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Error(err)
			return
		}
	}
}

// In a control group, even a child that cleared its environment does not outlive
// the plugin or the host.
func TestNothingLeavesAControlGroup(t *testing.T) {
	t.Parallel()
	group := delegate(t)
	host, pids := startHostWith(t, shortDir(t), &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}, "ghost")
	if len(pids) != 8 {
		t.Fatalf("the host runs %d processes, want 2 plugins with three children each", len(pids))
	}
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if err != nil || !bytes.Contains(text, []byte(fmt.Sprintf("tea-%d-plugin-", host.Process.Pid))) {
			t.Errorf("process %d is in the wrong group: %s %v", pid, strings.TrimSpace(string(text)), err)
		}
	}
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantGone(t, pids[:4]...)
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	host.Wait()
	wantGone(t, pids...)
}

func TestHostWithoutADelegatedGroupMakesNone(t *testing.T) {
	t.Parallel()
	if c := newCgroups(); c != nil {
		t.Errorf("groups are made in %s", c.prefix)
	}
}

// fakeGroup is a directory with the files that the kernel makes in a group with
// the controllers cpu and memory (Documentation/admin-guide/cgroup-v2.rst).
func fakeGroup(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"cgroup.procs": "", "cgroup.subtree_control": "", "cgroup.kill": "", "memory.max": "max\n", "cpu.max": "max 100000\n",
		"memory.events": "low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\noom_group_kill 0\n",
	} {
		if err := writeGroup(path, file, text); err != nil {
			t.Fatal(err)
		}
	}
}

func readGroup(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestHostDividesItsGroup(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "system.slice", "tea.service")
	fakeGroup(t, base)
	if err := os.MkdirAll(filepath.Join(base, "tea-1-plugin-old-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := divide(base)
	if c == nil {
		t.Fatal("no groups")
	}
	pid := fmt.Sprint(os.Getpid())
	// The kernel's file adds a controller to those that it has; this one keeps
	// the last write.
	if got := readGroup(t, base, "cgroup.subtree_control"); got != "+cpu" {
		t.Errorf("the last controller is %q", got)
	}
	if got := readGroup(t, base, "tea-"+pid+"-host", "cgroup.procs"); got != pid {
		t.Errorf("the leaf has the process %q, want %s", got, pid)
	}
	if _, err := os.Stat(filepath.Join(base, "tea-1-plugin-old-1")); !os.IsNotExist(err) {
		t.Error("the empty group of an earlier host was left")
	}
	g := c.add("memory", Limits{Memory: 256 << 20, CPU: 1.5})
	defer g.dir.Close()
	if want := filepath.Join(base, "tea-"+pid+"-plugin-memory-1"); g.path != want {
		t.Errorf("the group is %s, want %s", g.path, want)
	}
	if memory, cpu := readGroup(t, g.path, "memory.max"), readGroup(t, g.path, "cpu.max"); memory != "268435456" || cpu != "150000 100000" {
		t.Errorf("memory.max %q, cpu.max %q", memory, cpu)
	}
	var attr syscall.SysProcAttr
	if g.admit(&attr); !attr.UseCgroupFD || attr.CgroupFD != int(g.dir.Fd()) {
		t.Errorf("processes start in %+v", attr)
	}
	g.kill()
	if got := readGroup(t, g.path, "cgroup.kill"); got != "1" {
		t.Errorf("cgroup.kill %q", got)
	}
}

func TestGroupReportsExhaustedMemory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "plugin")
	fakeGroup(t, path)
	g := &cgroup{path: path}
	if g.exhausted() {
		t.Error("nothing was killed")
	}
	if err := writeGroup(path, "memory.events", "low 0\nhigh 0\nmax 90\noom 1\noom_kill 1\noom_group_kill 0\n"); err != nil {
		t.Fatal(err)
	}
	if !g.exhausted() {
		t.Error("the kernel has killed a process")
	}
	if (&cgroup{path: t.TempDir()}).exhausted() || (*cgroup)(nil).exhausted() {
		t.Error("a group without the controller has no limit")
	}
}

func TestGroupIsDividedOnlyIfItIsDelegated(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const text = "2:cpu:/ignored\n0::/user.slice/tea.service\n"
	base := filepath.Join(root, "user.slice", "tea.service")
	fakeGroup(t, base)
	if got := delegatedGroup(text, []string{t.TempDir(), root}); got != "" {
		t.Errorf("%s is divided", got)
	}
	if err := unix.Setxattr(base, "user.delegate", []byte("1"), 0); err != nil {
		t.Skip("this file system has no extended attributes: ", err)
	}
	if got := delegatedGroup(text, []string{t.TempDir(), root}); got != base {
		t.Errorf("got %q, want %s", got, base)
	}
}
