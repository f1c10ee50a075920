// Package node tests the plugin written for Node.js.
package node

import (
	"errors"
	"io/fs"
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
	if _, err := os.Stat("node_modules"); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if os.Getenv("CI") != "true" {
		t.Skip("the dependencies are missing; install them with `npm ci` in examples/plugin-node")
	}
	hosted.Run(t, "npm", "ci")
}

// A plugin in another language passes the same suite as the SDK's own.
func TestNodePlugin(t *testing.T) {
	t.Parallel()
	prepare(t)
	hosted.Run(t, "npm", "run", "bundle")
	hosted.Suite(t, "./test/tea-plugin-probe", "./tea-plugin-greeter", "./dist/tea-plugin-greeter")
	t.Run("stale", func(t *testing.T) {
		t.Parallel()
		hosted.Stale(t, hosted.Copy(t, "node_modules"), "src/actions.js")
	})
	t.Run("own tests", func(t *testing.T) {
		t.Parallel()
		hosted.Run(t, "npm", "test")
	})
}
