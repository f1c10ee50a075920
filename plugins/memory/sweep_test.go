package memory

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/store"
	tea "github.com/the-edge-agent/tea/sdk"
)

// fakeSweep counts sweeps.
type fakeSweep struct {
	swept chan error // the error of each sweep's context, when it began
	fail  error
	wait  bool // until the context ends
}

func (f *fakeSweep) run(ctx context.Context) error {
	f.swept <- ctx.Err()
	if f.wait {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.fail
}

// newSweeper starts a sweeper of a folder.
func newSweeper(t *testing.T, dir string, f *fakeSweep, every, delay time.Duration) (s *sweeper, opened chan struct{}) {
	t.Helper()
	opened = make(chan struct{})
	f.swept = make(chan error, 1000)
	s = &sweeper{dir: dir, opened: opened, sweep: f.run, every: every, delay: delay, logger: slog.New(slog.DiscardHandler)}
	s.start()
	return s, opened
}

func TestSweepsArePeriodicAfterTheFirstUse(t *testing.T) {
	t.Parallel()
	f := &fakeSweep{}
	s, opened := newSweeper(t, t.TempDir(), f, time.Millisecond, time.Millisecond)
	close(opened)
	for range 3 {
		<-f.swept
	}
	s.end()
}

func TestAFolderThatIsNotUsedIsNotSwept(t *testing.T) {
	t.Parallel()
	f := &fakeSweep{}
	s, _ := newSweeper(t, t.TempDir(), f, time.Hour, 0)
	s.end()
	if len(f.swept) > 0 {
		t.Error("it was swept")
	}
}

func TestARunningSweepIsEnded(t *testing.T) {
	t.Parallel()
	f := &fakeSweep{wait: true}
	s, opened := newSweeper(t, t.TempDir(), f, time.Hour, 0)
	close(opened)
	<-f.swept
	s.end()
	if _, err := os.Stat(filepath.Join(s.dir, lastSweepFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half a sweep is noted as one: %v", err)
	}
}

// Where every process ends before its first sweep, its end is the time for one,
// once in a while.
func TestShortRunsSweepAtTheirEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	short := func(fail error) int {
		f := &fakeSweep{fail: fail}
		s, opened := newSweeper(t, dir, f, time.Hour, time.Hour)
		close(opened)
		s.end()
		return len(f.swept)
	}
	for i, step := range []struct {
		fail error
		want int
	}{{errors.New("no"), 1}, {nil, 1}, {nil, 0}} {
		if n := short(step.fail); n != step.want {
			t.Errorf("run %d sweeps %d times, want %d", i, n, step.want)
		}
	}
	long := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(filepath.Join(dir, lastSweepFile), long, long); err != nil {
		t.Fatal(err)
	}
	if n := short(nil); n != 1 {
		t.Errorf("a run hours later sweeps %d times, want once", n)
	}
}

func TestSweepRemovesOldEntriesAndLeftoversOfACrash(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "duckdb"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			raw, err := json.Marshal(map[string]any{"path": t.TempDir(), "engine": engine})
			if err != nil {
				t.Fatal(err)
			}
			m, err := newFolders(nil, nil).open(t.Context(), tea.Settings{memoryKey: raw})
			if e := tea.AsError(err); e != nil && e.Type == tea.DependencyMissing {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := m.Close(); err != nil {
					t.Error(err)
				}
			}()
			sweepFolder(t, m.folder)
		})
	}
}

func sweepFolder(t *testing.T, f *folder) {
	t.Helper()
	half := filepath.Join(f.dir, "blobs", ".writing-HALF")
	if err := errors.Join(os.MkdirAll(filepath.Dir(half), 0o700), os.WriteFile(half, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := f.sweep(t.Context(), sweepGrace); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an unfinished blob is there: %v", err)
	}
	large := json.RawMessage(`"` + strings.Repeat("large ", 500) + `"`)
	if _, err := f.longterm.Store(t.Context(), store.Entry{Key: "old", Value: large, TTL: time.Microsecond}, store.Entry{Key: "kept", Value: json.RawMessage(`1`)}); err != nil {
		t.Fatal(err)
	}
	for _, orphan := range []string{"ltm/00/00", "files/00/00", "other/00"} {
		if _, err := f.blobs.Put(t.Context(), orphan, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	blobs := func() string {
		var names []string
		for info, err := range f.blobs.List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, info.Name[:strings.IndexByte(info.Name, '/')])
		}
		return strings.Join(names, " ")
	}
	if err := f.sweep(t.Context(), sweepGrace); err != nil {
		t.Fatal(err)
	}
	if got := blobs(); got != "ltm other" {
		t.Errorf("within the grace there are the blobs %q", got)
	}
	if err := f.sweep(t.Context(), -time.Second); err != nil {
		t.Fatal(err)
	}
	if got := blobs(); got != "other" {
		t.Errorf("after the grace there are the blobs %q", got)
	}
	if _, err := f.longterm.Retrieve(t.Context(), "", "kept"); err != nil {
		t.Error(err)
	}
}
