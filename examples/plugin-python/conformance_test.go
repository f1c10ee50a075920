// Package python tests the plugin written in Python.
package python

import (
	"os"
	"testing"

	"github.com/the-edge-agent/tea/examples/internal/hosted"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// prepare installs the dependencies in CI; elsewhere a machine without them
// skips the test.
func prepare(t *testing.T) {
	t.Helper()
	peertest.Long(t, "starts compilers of another language")
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
	hosted.Run(t, "./setup")
}

// A plugin in another language passes the same suite as the SDK's own.
func TestPythonPlugin(t *testing.T) {
	prepare(t)
	hosted.Run(t, "./bundle")
	t.Setenv("SHIV_ROOT", t.TempDir())
	hosted.Suite(t, "./tests/tea-plugin-probe", "./tea-plugin-greeter", "./dist/tea-plugin-greeter")
	t.Run("stale", func(t *testing.T) {
		t.Parallel()
		hosted.Stale(t, hosted.Copy(t, ".venv", "src/tea_plugin/proto"), "src/actions.py")
	})
	t.Run("own tests", func(t *testing.T) {
		t.Parallel()
		hosted.Run(t, ".venv/bin/pytest")
	})
}
