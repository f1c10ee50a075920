// Package node tests the plugin written for Node.js.
package node

import (
	"errors"
	"io/fs"
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
	if _, err := os.Stat("node_modules"); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if os.Getenv("CI") != "true" {
		t.Skip("the dependencies are missing; install them with `npm ci` in examples/plugin-node")
	}
	if out, err := exec.CommandContext(t.Context(), "npm", "ci").CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
}

// A plugin in another language passes the same suite as the SDK's own.
func TestNodePlugin(t *testing.T) {
	t.Parallel()
	prepare(t)
	if out, err := exec.CommandContext(t.Context(), "npm", "run", "bundle").CombinedOutput(); err != nil {
		t.Fatalf("npm run bundle: %v\n%s", err, out)
	}
	for _, program := range []string{"./tea-plugin-greeter", "./dist/tea-plugin-greeter", "./test/tea-plugin-probe"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			teatest.Binary(t, program)
		})
	}
	t.Run("supervised", func(t *testing.T) {
		t.Parallel()
		hosted.Supervised(t, "./test/tea-plugin-probe")
	})
	t.Run("handover", func(t *testing.T) {
		t.Parallel()
		hosted.Handover(t, "./test/tea-plugin-probe")
	})
	t.Run("stale", func(t *testing.T) {
		t.Parallel()
		hosted.Stale(t, hosted.Copy(t, "node_modules"), "src/actions.js")
	})
	t.Run("own tests", func(t *testing.T) {
		t.Parallel()
		if out, err := exec.CommandContext(t.Context(), "npm", "test").CombinedOutput(); err != nil {
			t.Fatalf("npm test: %v\n%s", err, out)
		}
	})
}
