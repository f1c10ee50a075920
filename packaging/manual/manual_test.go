// Package manual_test checks the manual pages of a release with groff.
package manual_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// programs are the commands that tea runs as separate programs. The tests replace them with stubs.
var programs = []string{"eval", "lsp", "mcp", "migrate", "serve", "temporal"}

// pages returns the folder of the manual pages, and the program tea.
func pages(t *testing.T) (dir, tea string) {
	t.Helper()
	peertest.Long(t, "builds tea and asks it for the help of each command")
	bin := t.TempDir()
	tea = filepath.Join(bin, "tea")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", tea, "../../cmd/tea").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range programs {
		stub := "#!/bin/sh\nprintf 'Usage: tea %s [flags]\\n\\nDo it.\\n\\nFlags:\\n  -h, --help    Show it.\\n'\n"
		if err := os.WriteFile(filepath.Join(bin, "tea-"+name), []byte(stub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	dir = filepath.Join(bin, "man1")
	cmd := exec.CommandContext(t.Context(), "../../scripts/manual", tea, dir)
	cmd.Env, cmd.WaitDelay = append(os.Environ(), "VERSION=0.1.0", "SOURCE_DATE_EPOCH=1764000000"), 10*time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir, tea
}

var flag = regexp.MustCompile(`(?m)^  (?:-\w, |    )(--[a-z-]+)`)

func TestPages(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("groff"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("groff is not installed; run `scripts/packaging install`")
		}
		t.Skip("groff is not installed; `scripts/packaging install` installs it")
	}
	dir, tea := pages(t)
	files, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(files) < 40 {
		t.Fatalf("%d pages, %v", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".1")
		var warnings strings.Builder
		cmd := exec.CommandContext(t.Context(), "groff", "-man", "-ww", "-Tascii", "-P-c", "-rLL=200n", file)
		cmd.Stderr = &warnings
		out, err := cmd.Output()
		if err != nil || warnings.Len() > 0 {
			t.Errorf("%s: %v\n%s", name, err, &warnings)
		}
		text := regexp.MustCompile(`.\x08`).ReplaceAllString(string(out), "") // bold letters are printed twice
		for _, part := range []string{"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"} {
			if !strings.Contains(text, "\n"+part+"\n") {
				t.Errorf("%s: no %s in\n%s", name, part, text)
			}
		}
		words := strings.Split(name, "-")[1:]
		if len(words) > 0 && slices.Contains(append(programs, "worker"), words[0]) {
			continue
		}
		help, err := exec.CommandContext(t.Context(), tea, append(words, "--help")...).Output()
		if err != nil {
			t.Fatalf("%v: %v", words, err)
		}
		for _, m := range flag.FindAllStringSubmatch(string(help), -1) {
			if !regexp.MustCompile(`(?m)^ +(-\w, )?` + m[1] + `\b`).MatchString(text) {
				t.Errorf("%s: no %s in\n%s", name, m[1], text)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "tea.1"))
	for _, want := range []string{".BR tea\\-run (1)\nRun a workflow.\n", ".SH EXIT STATUS\n.TP\n.B 0\ndone\n", ".TH TEA 1 2025-11-24 \"tea 0.1.0\""} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%v: no %q in\n%s", err, want, text)
		}
	}
}
