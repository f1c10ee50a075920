package cloud_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/objstore/objtest"
)

// commands has the commands of tea for a memory that is not embedded.
type commands struct {
	t    *testing.T
	dir  string
	tea  string
	args []string
	env  []string
}

// run runs a command, and returns its output and exit code.
func (c *commands) run(args ...string) (output string, code int) {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), c.tea, append(append([]string{"memory"}, args...), c.args...)...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), c.env...)
	var all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &all, &all
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		c.t.Fatal(err)
	}
	return all.String(), cmd.ProcessState.ExitCode()
}

func (c *commands) want(code int, text string, args ...string) {
	c.t.Helper()
	output, got := c.run(args...)
	if got != code || !strings.Contains(output, text) {
		c.t.Errorf("tea memory %s: exit code %d, want %d with %q:\n%s", strings.Join(args, " "), got, code, text, output)
	}
	if strings.Contains(output, objtest.SecretKey) || strings.Contains(output, "wrong-secret") {
		c.t.Errorf("tea memory %s prints the secret:\n%s", strings.Join(args, " "), output)
	}
}

// The commands of tea inspect, archive and reset a memory in a bucket.
func TestCommandsOfARemoteMemory(t *testing.T) {
	t.Parallel()
	if os.Getenv("TEA_KILLS") == "" {
		t.Skip("it builds tea and the plugin, which takes minutes; make test-stores runs it")
	}
	server := objtest.S3(t)
	bin := t.TempDir()
	for name, source := range map[string]string{
		"tea": "github.com/the-edge-agent/tea/cmd/tea", "tea-plugin-memory": "github.com/the-edge-agent/tea/plugins/memory/cloud/cmd/tea-plugin-memory-cloud",
	} {
		build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags", "grpcnotrace", "-o", filepath.Join(bin, name), source)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", name, err, out)
		}
	}
	options, err := json.Marshal(server.Settings)
	if err != nil {
		t.Fatal(err)
	}
	url := server.Address + "/agents"
	dir := t.TempDir()
	c := &commands{t: t, dir: dir, tea: filepath.Join(bin, "tea"), args: []string{
		"--plugins", bin, "--path", filepath.Join(dir, "memory"), "--engine", "bucket",
	}}
	with := func(options string) { c.env = []string{"TEA_MEMORY_URL=" + url, "TEA_MEMORY_OPTIONS=" + options} }
	with(string(options))
	call := opened(t, map[string]any{"engine": "bucket", "url": url, "path": t.TempDir(), "options": server.Settings})
	for _, step := range []struct {
		action string
		params map[string]any
	}{
		{"ltm.store", map[string]any{"key": "a", "value": 1}},
		{"data.create_table", map[string]any{"name": "readings", "schema": map[string]any{"id": "int"}, "primary_key": "id"}},
		{"data.insert", map[string]any{"table": "readings", "rows": []any{map[string]any{"id": 1}, map[string]any{"id": 2}}}},
	} {
		if _, err := call(step.action, step.params); err != nil {
			t.Fatalf("%s: %v", step.action, err)
		}
	}
	c.want(0, "bucket", "inspect")
	c.want(0, `"ltm": 1`, "inspect", "--json")
	c.want(0, "", "export", "all.teamem")
	c.want(0, "", "backup", "checked.teamem")
	c.want(1, "not empty", "restore", "all.teamem")
	c.want(2, "--yes", "reset")
	c.want(0, "removed", "reset", "--yes")
	c.want(0, `"ltm": 0`, "inspect", "--json")
	c.want(0, "", "restore", "checked.teamem")
	c.want(0, "", "import", "all.teamem", "--keep")
	c.want(0, `"ltm": 1`, "inspect", "--json")
	found, err := call("data.query", map[string]any{"sql": "SELECT count(*) AS n FROM readings"})
	if rows, _ := found["rows"].([]any); err != nil || len(rows) != 1 || rows[0].(map[string]any)["n"] != int64(2) {
		t.Errorf("the restored rows: %v, %v", found, err)
	}

	with("{")
	c.want(2, "--options", "inspect")
	wrong := server.Settings
	wrong.SecretAccessKey = "wrong-secret"
	if options, err = json.Marshal(wrong); err != nil {
		t.Fatal(err)
	}
	with(string(options))
	c.want(1, "permission", "export", "denied.teamem")
	if _, err := os.Stat(filepath.Join(dir, "denied.teamem")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a failed export leaves an archive: %v", err)
	}
	c.env = []string{"TEA_MEMORY_URL="}
	c.want(1, "settings.memory.url is not set", "inspect")
}
