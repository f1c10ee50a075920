//go:build linux

package swap_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/subproc"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// full selects the numbers that tea promises, by TEA_SWAPS=full.
var full = os.Getenv("TEA_SWAPS") == "full"

// build compiles the memory plugin.
func build(t *testing.T) string {
	t.Helper()
	peertest.Long(t, "it builds the memory plugin")
	binary := filepath.Join(t.TempDir(), "memory")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../plugins/memory/cmd/tea-plugin-memory").CombinedOutput()
	if err != nil {
		t.Fatalf("build the memory plugin: %v\n%s", err, out)
	}
	return binary
}

// put replaces the plugin atomically by a script that starts the binary. Every
// number is another version to the host.
func put(t *testing.T, dir, binary string, number int) {
	t.Helper()
	script := fmt.Sprintf("#!/bin/sh\n# %d\nexec %s\n", number, binary)
	file := filepath.Join(dir, "new")
	if err := errors.Join(os.WriteFile(file, []byte(script), 0o700), os.Rename(file, filepath.Join(dir, "tea-plugin-memory"))); err != nil {
		t.Fatal(err)
	}
}

// memory calls the memory plugin.
type memory struct{ host.Invoker }

func (m memory) ask(ctx context.Context, action string, params map[string]any) (map[string]any, error) {
	resp, err := m.Invoke(ctx, &tea.Request{Action: action, Params: tea.ValuePayload(params), Host: &teatest.Host{}})
	if err != nil {
		return nil, err
	}
	var result map[string]any
	return result, resp.Result.Decode(&result)
}

func (m memory) must(t *testing.T, action string, params map[string]any) map[string]any {
	t.Helper()
	result, err := m.ask(t.Context(), action, params)
	if err != nil {
		t.Fatalf("%s: %v", action, err)
	}
	return result
}

// work is the calls of one number; each has a separate effect.
func (m memory) work(ctx context.Context, n int) error {
	key := fmt.Sprint(n)
	var err error
	switch n % 4 {
	case 0:
		_, err = m.ask(ctx, "data.insert", map[string]any{"table": "calls", "rows": []any{map[string]any{"n": int64(n)}}})
	case 1:
		_, err = m.ask(ctx, "memory.store", map[string]any{"key": key, "value": int64(n)})
	case 2:
		_, err = m.ask(ctx, "ltm.store", map[string]any{"key": key, "value": int64(n)})
	case 3:
		_, err = m.ask(ctx, "ltm.retrieve", map[string]any{"key": "absent", "default": int64(n)})
	}
	return err
}

// check looks for the effect of each call.
func (m memory) check(t *testing.T, calls int) {
	t.Helper()
	rows := m.must(t, "data.query", map[string]any{"sql": "SELECT count(*) AS n, count(DISTINCT n) AS each FROM calls"})["rows"].([]any)[0].(map[string]any)
	want := fmt.Sprint((calls + 3) / 4)
	if got := fmt.Sprint(rows["n"], " ", rows["each"]); got != want+" "+want {
		t.Errorf("the table has %s rows and distinct rows, want %s of each", got, want)
	}
	for n := range calls {
		action := map[int]string{1: "memory.retrieve", 2: "ltm.retrieve"}[n%4]
		if action == "" {
			continue
		}
		if got := m.must(t, action, map[string]any{"key": fmt.Sprint(n)})["value"]; fmt.Sprint(got) != fmt.Sprint(n) {
			t.Errorf("%s returns %v for %d", action, got, n)
		}
	}
}

func TestNoCallOfADatabaseIsLostDuringSwaps(t *testing.T) {
	t.Parallel()
	calls, swaps := 1000, 5
	if full {
		calls, swaps = 10_000, 100
	}
	binary, dir := build(t), t.TempDir()
	put(t, dir, binary, 0)
	plugins, _, err := subproc.Discover(t.Context(), subproc.Options{
		Dirs: []string{dir}, CacheDir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plugins.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := plugins.Learn(t.Context()); err != nil {
		t.Fatal(err)
	}
	inst, err := plugins.Open(t.Context(), "memory", tea.Settings{"memory": fmt.Appendf(nil, `{"path": %q, "memory_mb": 64}`, t.TempDir())})
	if err != nil {
		t.Fatal(err)
	}
	m := memory{inst}
	m.must(t, "data.create_table", map[string]any{"name": "calls", "schema": map[string]any{"n": "int"}})

	left := make(chan int)
	var calling sync.WaitGroup
	for range 8 {
		calling.Go(func() {
			for n := range left {
				if err := m.work(t.Context(), n); err != nil {
					t.Errorf("call %d: %v", n, err)
				}
			}
		})
	}
	begun := 0
	for number := range swaps {
		put(t, dir, binary, number+1)
		swapped := make(chan struct{})
		go func() {
			defer close(swapped)
			replaced, err := plugins.Reload(t.Context())
			if err != nil || len(replaced) != 1 || replaced[0].Err != nil {
				t.Errorf("swap %d: %v, %v", number, replaced, err)
			}
		}()
		// Calls begin during the whole swap, and after it.
		for during := true; during || begun < (number+1)*calls/swaps; {
			select {
			case left <- begun:
				begun++
			case <-swapped:
				during, swapped = false, nil
			}
		}
	}
	close(left)
	t.Logf("%d calls during %d swaps", begun, swaps)
	calling.Wait()
	m.check(t, begun)
}
