// Package rust tests the plugin written in Rust.
package rust

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/examples/internal/hosted"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// cargo runs cargo with a target directory in the user's cache, so that only
// the first build of a machine compiles the dependencies.
func cargo(t *testing.T, target string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), cargoPath(t), args...)
	cmd.Env = append(os.Environ(), "CARGO_TARGET_DIR="+target)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cargo %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// cargoPath returns the path of cargo, which rustup installs outside of PATH.
// A machine without it skips the test.
func cargoPath(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("cargo"); err == nil {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, ".cargo/bin/cargo")
	if _, err := os.Stat(path); err != nil {
		t.Skip("cargo is missing; install Rust with the system's package manager or rustup")
	}
	return path
}

// A plugin in another language passes the same suite as the SDK's own.
func TestRustPlugin(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "starts compilers of another language")
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(cache, "tea", "cargo")
	cargo(t, target, "build", "--locked", "--bins", "--examples")
	hosted.Suite(t, filepath.Join(target, "debug/examples/probe"), filepath.Join(target, "debug/tea-plugin-greeter"))
	t.Run("own tests", func(t *testing.T) {
		t.Parallel()
		cargo(t, target, "test", "--locked", "--quiet")
	})
}
