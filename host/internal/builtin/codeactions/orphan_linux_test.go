package codeactions_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const endless = `
settings: {code: {enabled: true}}
nodes:
  - {name: a, uses: code.execute, with: {code: "while true do end", timeout_seconds: 600}}
`

// TestTheChildEndsWithItsHost kills a host that is running code.
func TestTheChildEndsWithItsHost(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "flow.yaml")
	if err := os.WriteFile(file, []byte(endless), 0o600); err != nil {
		t.Fatal(err)
	}
	host := exec.Command(command[0], "run", file)
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Process.Kill() })
	var child string
	await(t, "the child's start", func() bool {
		child = childOf(host.Process.Pid)
		return child != ""
	})
	environ, err := os.ReadFile(filepath.Join("/proc", child, "environ"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range strings.Split(strings.TrimRight(string(environ), "\x00"), "\x00") {
		if !strings.HasPrefix(v, "GO") {
			t.Errorf("the child sees the variable %s", v)
		}
	}
	await(t, "the child's limits", func() bool {
		limits, _ := os.ReadFile(filepath.Join("/proc", child, "limits"))
		return isZero(string(limits), "Max open files") && isZero(string(limits), "Max file size")
	})
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	await(t, "the child's end", func() bool {
		_, err := os.Stat(filepath.Join("/proc", child))
		state, _ := os.ReadFile(filepath.Join("/proc", child, "stat"))
		return err != nil || strings.Contains(string(state), ") Z ")
	})
}

// isZero looks for a line "Max open files  0  0  files".
func isZero(limits, name string) bool {
	_, rest, _ := strings.Cut(limits, name)
	return strings.HasPrefix(strings.TrimLeft(rest, " "), "0 ")
}

// await polls for something that another process does.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); !done(); <-tick.C {
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// childOf is the pid of a process's first child once that runs code, or nothing.
func childOf(pid int) string {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range tasks {
		children, _ := os.ReadFile(file)
		for _, child := range strings.Fields(string(children)) {
			if line, _ := os.ReadFile(filepath.Join("/proc", child, "cmdline")); strings.Contains(string(line), command[1]) {
				return child
			}
		}
	}
	return ""
}
