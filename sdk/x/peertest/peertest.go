// Package peertest is for tests that need more than the tested code: other programs, or
// minutes. [Long] marks them.
package peertest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Long skips a test with -short. Call it in a test that starts a server, a browser or a
// compiler, that repeatedly kills processes, or that takes more than a second without the race
// detector. If a function starts the program, call it in that function.
func Long(t testing.TB, reason string) {
	t.Helper()
	if testing.Short() {
		t.Skip("not with -short: " + reason)
	}
}

// LongPackage is [Long] for all tests of a package; its TestMain begins with it.
func LongPackage(reason string) {
	flag.Parse()
	if testing.Short() {
		fmt.Fprintln(os.Stderr, "not with -short: "+reason)
		os.Exit(0)
	}
}

// Dir returns the directory that `scripts/NAME install` fills, which contains the file
// complete; root is the root of the repository. If it is not installed, the test is skipped,
// or fails if CI is true.
func Dir(t testing.TB, root, name string) string {
	t.Helper()
	Long(t, "needs what `scripts/"+name+" install` installs")
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
