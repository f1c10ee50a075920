package develop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// startFake runs a loop whose compiler writes the number of the build, and
// returns the outcomes. tick looks at the project once, and returns when the loop
// waits for the next look. It is called in a bubble of synctest.
func startFake(t *testing.T, dir, into string, during func(build int)) (outcomes <-chan Outcome, tick func()) {
	t.Helper()
	built := 0
	project := &Project{Dir: dir, Name: "mine", compile: func(_ context.Context, file string) error {
		built++
		during(built)
		return os.WriteFile(file, fmt.Append(nil, built), 0o700)
	}}
	check := func(_ context.Context, program string) (tea.Manifest, error) {
		version, err := os.ReadFile(program)
		return tea.Manifest{Name: "mine", Version: string(version)}, err
	}
	all, ticks := make(chan Outcome, 1000), make(chan time.Time)
	loop := &Loop{Project: project, Into: into, Check: check, Report: func(o Outcome) { all <- o }}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- loop.run(ctx, ticks) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return all, func() {
		ticks <- time.Time{}
		synctest.Wait()
	}
}

// A program that is put next to the sources is not a change of them, nor is what
// each build writes.
func TestBuildsAreNotChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		outcomes, tick := startFake(t, dir, dir, func(build int) {
			write(t, filepath.Join(dir, "debug.log"), fmt.Sprint("build ", build))
		})
		wantVersion(t, outcomes, "1")
		for range 40 {
			tick()
		}
		if n := len(outcomes); n > echoes {
			t.Errorf("the project was built %d more times without a change", n)
		}
		for range len(outcomes) {
			<-outcomes
		}
		write(t, filepath.Join(dir, "source"), "changed")
		for range 3 {
			tick()
		}
		if len(outcomes) != 1 {
			t.Errorf("the project was built %d times after a change, want once", len(outcomes))
		}
		write(t, filepath.Join(dir, "debug.log"), "written by hand")
		for range 3 {
			tick()
		}
		if len(outcomes) != 2 {
			t.Errorf("the project was built %d times after a change between builds, want once more", len(outcomes)-1)
		}
	})
}

// A project in which some file changes all the time is built nevertheless.
func TestProjectThatChangesAllTheTimeIsBuilt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		outcomes, tick := startFake(t, dir, t.TempDir(), func(int) {})
		wantVersion(t, outcomes, "1")
		for i := range 4 * mostLooks {
			write(t, filepath.Join(dir, "storm"), strings.Repeat("x", i+1))
			if i == 2 {
				write(t, filepath.Join(dir, "source"), "changed")
			}
			tick()
		}
		if len(outcomes) == 0 {
			t.Error("the project was not built")
		}
	})
}

// Editors write another file and rename it, with the times that the old one had.
func TestRenamedFileIsAChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		source := filepath.Join(dir, "source")
		write(t, source, "old")
		outcomes, tick := startFake(t, dir, t.TempDir(), func(int) {})
		wantVersion(t, outcomes, "1")
		info, err := os.Stat(source)
		if err != nil {
			t.Fatal(err)
		}
		next := filepath.Join(dir, ".source.swp")
		write(t, next, "new")
		if err := os.Chtimes(next, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, source); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			tick()
		}
		wantVersion(t, outcomes, "2")
	})
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
}

// A build without a difference, as of a comment, does not make hosts swap.
func TestEqualProgramStaysInPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	into := filepath.Join(dir, "bin")
	project := &Project{Dir: dir, Name: "mine", compile: func(_ context.Context, file string) error {
		source, err := os.ReadFile(filepath.Join(dir, "source"))
		return errors.Join(err, os.WriteFile(file, source, 0o700))
	}}
	loop := &Loop{Project: project, Into: into, Check: func(context.Context, string) (tea.Manifest, error) { return tea.Manifest{Name: "mine"}, nil }}
	var outcomes []Outcome
	loop.Report = func(o Outcome) { outcomes = append(outcomes, o) }
	var inPlace []os.FileInfo
	if err := os.Mkdir(into, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{"1", "1", "2"} {
		write(t, filepath.Join(dir, "source"), source)
		loop.build(t.Context())
		info, err := os.Stat(filepath.Join(into, "tea-plugin-mine"))
		if err != nil {
			t.Fatal(err)
		}
		inPlace = append(inPlace, info)
	}
	if !os.SameFile(inPlace[0], inPlace[1]) || !outcomes[1].Unchanged {
		t.Errorf("the equal program has replaced the present one: %+v", outcomes[1])
	}
	if os.SameFile(inPlace[1], inPlace[2]) || outcomes[2].Unchanged {
		t.Errorf("another program has not: %+v", outcomes[2])
	}
}
