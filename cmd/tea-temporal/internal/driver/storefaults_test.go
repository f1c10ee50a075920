package driver

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	sdkworker "go.temporal.io/sdk/worker"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

const makeBig = "nodes:\n  - {name: make, uses: big.make, output: big}\n"

// bigHost has an action with a large result, which calls then at its first call.
func bigHost(t *testing.T, first func()) (h *host.Host, calls *atomic.Int32) {
	t.Helper()
	calls = new(atomic.Int32)
	h, err := host.New(host.Options{Actions: []tea.Action{host.Func("big.make", "Makes a text.", func(context.Context, map[string]any) (any, error) {
		if calls.Add(1) == 1 {
			first()
		}
		return map[string]any{"text": strings.Repeat("x", 1<<20)}, nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h, calls
}

// A call whose result cannot be stored, as the disk is full or read-only, is not
// made again: its result waits for the store.
func TestResultWaitsForTheStore(t *testing.T) {
	t.Parallel()
	var place string
	h, calls := bigHost(t, func() {
		if err := os.WriteFile(place, nil, 0o600); err != nil {
			t.Error(err)
		}
	})
	s := newClient(t, h, nil)
	place = filepath.Join(s.flags.Blobs, s.namespace)
	s.start(s.worker)
	res := s.warned(makeBig, host.RunOptions{}, func(warning string) {
		if !strings.Contains(warning, "node make") || !strings.Contains(warning, "--blobs") {
			t.Errorf("the warning is %q", warning)
		}
		if err := os.Remove(place); err != nil {
			t.Error(err)
		}
	})
	if res == nil || res.Status != flow.Done || calls.Load() != 1 {
		t.Errorf("got %v after %d calls", res, calls.Load())
	}
}

// A value that is written below the place where a file system was mounted would be
// missing later.
func TestStoreWithoutItsIdentityIsNotWritten(t *testing.T) {
	t.Parallel()
	var dir string
	h, calls := bigHost(t, func() {
		if err := os.Rename(dir, dir+"-away"); err != nil {
			t.Error(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Error(err)
		}
	})
	s := newClient(t, h, nil)
	dir = s.flags.Blobs
	s.start(s.worker)
	res := s.warned(makeBig, host.RunOptions{}, func(warning string) {
		if !strings.Contains(warning, "mounted") {
			t.Errorf("the warning is %q", warning)
		}
		if err := os.Remove(dir); err != nil { // it is empty
			t.Error(err)
		}
		if err := os.Rename(dir+"-away", dir); err != nil {
			t.Error(err)
		}
	})
	if res == nil || res.Status != flow.Done || calls.Load() != 1 {
		t.Errorf("got %v after %d calls", res, calls.Load())
	}
}

func TestDamagedValuesStopTheRunUntilTheyAreRestored(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(file string) error{
		"truncated": func(file string) error { return os.Truncate(file, 1000) },
		"empty":     func(file string) error { return os.Truncate(file, 0) },
		"missing":   os.Remove,
		"changed": func(file string) error {
			raw, err := os.ReadFile(file)
			if err == nil {
				raw[len(raw)/2] ^= 1
				err = os.WriteFile(file, raw, 0o600)
			}
			return err
		},
		"a directory": func(file string) error {
			if err := os.Remove(file); err != nil {
				return err
			}
			return os.Mkdir(file, 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, calls := bigHost(t, func() {})
			s := newClient(t, h, nil)
			stop := s.start(s.worker)
			const ask = makeBig + "  - {name: ask, uses: human.ask, with: {question: 'go?'}, output: answer}\n"
			res := s.run(t.Context(), ask, host.RunOptions{})
			if res.Status != flow.Waiting {
				t.Fatalf("got %v", res)
			}
			stop()
			sdkworker.PurgeStickyWorkflowCache()
			files, err := filepath.Glob(filepath.Join(s.flags.Blobs, runPlace(s.namespace, res.RunID), "*"))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			kept := map[string][]byte{}
			for _, file := range files {
				if kept[file], err = os.ReadFile(file); err == nil {
					err = damage(file)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			fresh := s.on(h)
			s.start(fresh)
			got := s.resumed(res, ask, func(warning string) {
				if !strings.Contains(warning, "read a value") {
					t.Errorf("the warning is %q", warning)
				}
				for file, raw := range kept {
					if err := os.RemoveAll(file); err != nil {
						t.Error(err)
					}
					if err := os.WriteFile(file, raw, 0o600); err != nil {
						t.Error(err)
					}
				}
			})
			if got == nil || got.Status != flow.Done || calls.Load() != 1 {
				t.Errorf("got %v after %d calls", got, calls.Load())
			}
		})
	}
}
