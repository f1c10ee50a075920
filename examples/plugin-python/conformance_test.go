// Package python tests the plugin written in Python.
package python

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"testing"

	"github.com/the-edge-agent/tea/sdk/teatest"
)

// The plugin in another language passes the same suite as the SDK's own.
func TestPythonPluginConforms(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("gen/go_plugin_broker_pb2.py"); errors.Is(err, fs.ErrNotExist) {
		if os.Getenv("CI") != "true" {
			t.Skip("no Python environment; make it with examples/plugin-python/setup")
		}
		if out, err := exec.Command("./setup").CombinedOutput(); err != nil {
			t.Fatalf("setup: %v\n%s", err, out)
		}
	}
	teatest.Binary(t, "./tea-plugin-pyprobe")
}
