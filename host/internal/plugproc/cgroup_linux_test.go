package plugproc

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

// In its own group, not even a child without a trace in its environment
// outlives the plugin or the host.
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
