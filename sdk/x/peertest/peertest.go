// Package peertest is for tests that need the programs that a script of this
// repository installs.
package peertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Dir returns the directory of what `scripts/NAME install` installs, which has the
// file complete; root is that of the repository. If it is not installed, the test is
// skipped, or fails where CI is true.
func Dir(t testing.TB, root, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "scripts", name), "path").Output()
	dir := strings.TrimSpace(string(out))
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "complete"))
	}
	if err == nil {
		return dir
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("a program for tests is not installed: %v; run `scripts/%s install`", err, name)
	}
	t.Skipf("a program for tests is not installed; run `scripts/%s install`", name)
	return ""
}
