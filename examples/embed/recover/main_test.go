package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

var clock = regexp.MustCompile(`\d\d:\d\d`)

func TestNothingIsFilledTwice(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "recover")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := filepath.Join(t.TempDir(), "runs")
	out, err := exec.CommandContext(t.Context(), program, "-runs", dir, "-lose-power").CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 3 || string(out) != "filled tank 1\n" {
		t.Fatalf("got %v\n%s", err, out)
	}
	for i, want := range []string{
		"continue the run of TIME\nfilled tank 2\nfilled tank 3\n",
		"filled tank 1\nfilled tank 2\nfilled tank 3\n", // nothing is unfinished: a new run
	} {
		out, err := exec.CommandContext(t.Context(), program, "-runs", dir).CombinedOutput()
		if got := clock.ReplaceAllString(string(out), "TIME"); err != nil || got != want {
			t.Errorf("start %d: got %v\n%s", i+2, err, out)
		}
	}
}
