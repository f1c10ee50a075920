package develop

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/cmd/internal/scaffold"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/conform"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// start runs a loop and returns its outcomes.
func start(t *testing.T, dir, into string) <-chan Outcome {
	t.Helper()
	project, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := make(chan Outcome, 10)
	check := func(ctx context.Context, program string) (tea.Manifest, error) {
		process, err := conform.Start(ctx, exec.CommandContext(context.WithoutCancel(ctx), program), t.Output())
		if err != nil {
			return tea.Manifest{}, err
		}
		defer process.Close()
		return process.Manifest(), nil
	}
	loop := &Loop{Project: project, Into: into, Check: check, Every: 20 * time.Millisecond, Report: func(o Outcome) { outcomes <- o }}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- loop.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("the loop continues after its context has ended")
		}
	})
	return outcomes
}

func edit(t *testing.T, file, from, to string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), from, to, 1)
	if text == string(data) {
		t.Fatalf("%s does not contain %q", file, from)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantVersion waits for a build that succeeds.
func wantVersion(t *testing.T, outcomes <-chan Outcome, version string) {
	t.Helper()
	if o := <-outcomes; o.Err != nil || o.Manifest.Version != version {
		t.Fatalf("%+v, want version %s", o, version)
	}
}

func TestGoProjectIsRebuilt(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it compiles a project")
	dir := filepath.Join(t.TempDir(), "weather")
	files, err := scaffold.Read("../../..", "../../../sdk")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.Write(files, dir, "weather", "go"); err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(dir, "bin")
	outcomes := start(t, dir, into)
	wantVersion(t, outcomes, "0.1.0")
	source := filepath.Join(dir, "weather.go")
	edit(t, source, `"0.1.0"`, `"0.2.0"`)
	wantVersion(t, outcomes, "0.2.0")
	program := filepath.Join(into, "tea-plugin-weather")
	good, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, want string }{
		{`"0.2.0"`, `0.3.0"`, "weather.go:"}, // does not compile
		{`0.3.0"`, `"v0.3"`, "ended without a handshake"},
	} {
		edit(t, source, c.from, c.to)
		if o := <-outcomes; o.Err == nil || !strings.Contains(o.Err.Error(), c.want) {
			t.Fatalf("err = %v, want %q", o.Err, c.want)
		}
	}
	still, err := os.Stat(program)
	if err != nil || !os.SameFile(good, still) {
		t.Errorf("a program that does not work replaced the good one: %v", err)
	}
	if entries, err := os.ReadDir(into); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: want only the program", entries, err)
	}
}

// A project without a build has its program itself: it is linked once it
// works.
func TestProgramIsLinked(t *testing.T) {
	t.Parallel()
	dir, into := t.TempDir(), t.TempDir()
	program := filepath.Join(dir, "tea-plugin-mine")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	outcomes := start(t, dir, into)
	if o := <-outcomes; o.Err == nil {
		t.Fatalf("%+v, want an error", o)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, []byte("#!/bin/sh\nTEA_DEVELOP_PLUGIN=mine exec "+self+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	wantVersion(t, outcomes, "1.2.3")
	edit(t, program, "PLUGIN=mine", "PLUGIN=other")
	if o := <-outcomes; o.Err == nil || !strings.Contains(o.Err.Error(), `the bundle is called "other"`) {
		t.Fatalf("err = %v, want another name", o.Err)
	}
	target, err := filepath.EvalSymlinks(filepath.Join(into, "tea-plugin-mine"))
	if err != nil || target != program {
		t.Errorf("the link leads to %s, %v; want %s", target, err, program)
	}
}

func TestNotAProject(t *testing.T) {
	t.Parallel()
	for name, files := range map[string][]string{
		"has no tea-plugin-NAME":          {"main.txt"},
		"has no cmd/tea-plugin-NAME":      {"go.mod", "main.go"},
		"has more than one tea-plugin-":   {"tea-plugin-a", "tea-plugin-b"},
		"Cargo.toml names no tea-plugin-": {"Cargo.toml"},
	} {
		dir := t.TempDir()
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("err = %v, want %q", err, name)
		}
	}
}
