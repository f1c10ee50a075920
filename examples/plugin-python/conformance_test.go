// Package python tests the plugin written in Python.
package python

import (
	"os"
	"os/exec"
	"testing"

	"github.com/the-edge-agent/tea/examples/internal/hosted"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// prepare installs the dependencies in CI; elsewhere a machine without them
// skips the test.
func prepare(t *testing.T) {
	t.Helper()
	source, err := os.Stat("proto/plugin.proto")
	if err != nil {
		t.Fatal(err)
	}
	if generated, err := os.Stat("src/tea_plugin/proto/plugin_pb2.py"); err == nil && generated.ModTime().After(source.ModTime()) {
		return
	}
	if os.Getenv("CI") != "true" {
		t.Skip("the dependencies or the generated code are missing or old; run examples/plugin-python/setup")
	}
	if out, err := exec.CommandContext(t.Context(), "./setup").CombinedOutput(); err != nil {
		t.Fatalf("setup: %v\n%s", err, out)
	}
}

// A plugin in another language passes the same suite as the SDK's own.
func TestPythonPlugin(t *testing.T) {
	prepare(t)
	if out, err := exec.CommandContext(t.Context(), "./bundle").CombinedOutput(); err != nil {
		t.Fatalf("bundle: %v\n%s", err, out)
	}
	t.Setenv("SHIV_ROOT", t.TempDir())
	for _, program := range []string{"./tea-plugin-greeter", "./dist/tea-plugin-greeter", "./tests/tea-plugin-probe"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			teatest.Binary(t, program)
		})
	}
	t.Run("supervised", func(t *testing.T) {
		t.Parallel()
		hosted.Supervised(t, "./tests/tea-plugin-probe")
	})
	t.Run("handover", func(t *testing.T) {
		t.Parallel()
		hosted.Handover(t, "./tests/tea-plugin-probe")
	})
	t.Run("stale", func(t *testing.T) {
		t.Parallel()
		hosted.Stale(t, hosted.Copy(t, ".venv", "src/tea_plugin/proto"), "src/actions.py")
	})
	t.Run("own tests", func(t *testing.T) {
		t.Parallel()
		if out, err := exec.CommandContext(t.Context(), ".venv/bin/pytest").CombinedOutput(); err != nil {
			t.Fatalf("pytest: %v\n%s", err, out)
		}
	})
}
