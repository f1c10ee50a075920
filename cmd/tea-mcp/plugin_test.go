package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
	"github.com/the-edge-agent/tea/test/teaproc"
)

// servePlugin serves a plugin whose action returns the id of its process.
func servePlugin() {
	get := func(context.Context, *tea.Request, struct{}) (map[string]any, error) {
		return map[string]any{"pid": os.Getpid()}, nil
	}
	serve.Main(tea.Bundle{Name: "pid", Version: "1.0.0", Actions: []tea.Action{tea.NewAction("pid.get", "Returns the id.", get)}})
}

// installPlugin puts the plugin into a directory. A copy could still be open for
// writing in a process that another test forks.
func installPlugin(t *testing.T, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err == nil {
		err = os.Link(self, filepath.Join(dir, "tea-plugin-pid"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestPluginsRunAsInRun(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"pid.yaml": "nodes: [{name: n, uses: pid.get}]"})
	c := p.start(nil, "")
	c.log.await(t, `pid.yaml:1:25: error TEA1401: unknown action "pid.get"`)
	if names := c.toolNames(); len(names) != 0 {
		t.Errorf("tools without the plugin: %v", names)
	}
	dir := t.TempDir()
	installPlugin(t, dir)
	c = p.start(nil, "", "--plugins", dir)
	first := c.call("pid", nil)
	second := c.call("pid", nil)
	pid, _ := first.State["pid"].(float64)
	if pid == 0 || second.State["pid"] != pid {
		t.Fatalf("calls: %+v, %+v\n%s", first, second, c.log)
	}
	if err := c.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	// The server has ended; init reaps the plugin.
	teaproc.Poll(t, func() (bool, any) { return syscall.Kill(int(pid), 0) != nil, "running: the plugin" })
}

func TestLockAppliesToTheDirectory(t *testing.T) {
	t.Parallel()
	p := newProject(t, map[string]string{"pid.yaml": "nodes: [{name: n, uses: pid.get}]", "tea.lock": "{}"})
	dir := t.TempDir()
	installPlugin(t, dir)
	log := newLogs()
	err := p.command(log, "mcp", p.dir, "--plugins", dir).Run()
	if err == nil || !strings.Contains(log.String(), "tea.lock") {
		t.Errorf("a lock that cannot be read: %v\n%s", err, log)
	}
}
