package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// block is a block of Go or text of a page; a Go block begins with its file's name.
var block = regexp.MustCompile("(?ms)^```(?:go\n// (\\S+\\.go)|text)\n(.*?)^```$")

// TestLibraryPage runs the programs of the guide's page, and the commands of the block of
// text after each.
func TestLibraryPage(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs five programs and a test")
	}
	page, err := os.ReadFile("../../docs/guide/library.md")
	if err != nil {
		t.Fatal(err)
	}
	// ./... skips the name.
	root, err := os.MkdirTemp(".", "_page") //nolint:usetesting // the programs need the go.mod here
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	var dir string
	commands := 0
	for _, b := range block.FindAllStringSubmatch(string(page), -1) {
		if file := filepath.Join(root, b[1]); b[1] != "" {
			dir = filepath.Dir(file)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(b[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for step := range strings.SplitSeq(strings.TrimPrefix(b[2], "$ "), "\n$ ") {
			command, want, _ := strings.Cut(strings.TrimSuffix(step, "\n"), "\n")
			cmd := exec.CommandContext(t.Context(), "go", strings.Fields(command)[1:]...)
			cmd.Dir = dir
			out, _ := cmd.CombinedOutput() // go run prints the exit status of the program
			got := strings.TrimSuffix(string(out), "\n")
			if strings.HasPrefix(command, "go test") {
				got, _, _ = strings.Cut(got, "\t") // the package's path and the time follow
			}
			if strings.TrimSpace(got) != want {
				t.Errorf("%s: %s: got\n%s\nwant\n%s", dir, command, got, want)
			}
			commands++
		}
	}
	if commands != 7 {
		t.Errorf("ran %d commands", commands)
	}
}
