package killtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// A reset that is killed while it removes the contents leaves no entry without its value.
func TestKilledResetLeavesNoEntryWithoutItsValue(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it removes thousands of files")
	for _, engine := range []string{"sqlite", "duckdb"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			if engine == "duckdb" && !duckdb.Available {
				t.Skip("this build has no DuckDB")
			}
			dir := t.TempDir()
			memory, err := json.Marshal(map[string]any{"path": dir, "engine": engine})
			if err != nil {
				t.Fatal(err)
			}
			settings, acks := tea.Settings{"memory": memory}, &atomic.Int64{}
			use := func(fn func(p *plugin)) {
				t.Helper()
				p := startPlugin(t, settings, acks)
				defer p.process.Close()
				fn(p)
				if err := p.instance.Close(); err != nil {
					t.Errorf("%v\n%s", err, p.output)
				}
			}
			use(func(p *plugin) {
				for i := range 3 {
					if err := p.call(t.Context(), "ltm.store", map[string]any{"key": fmt.Sprint(i), "value": strings.Repeat(fmt.Sprint(i), 5000)}, nil); err != nil {
						t.Fatal(err)
					}
				}
			})
			values := filepath.Join(dir, "blobs", "ltm")
			before, err := os.ReadDir(values)
			if err != nil || len(before) != 3 {
				t.Fatal(before, err)
			}
			// They are removed after the values, and keep the reset from ending.
			more := filepath.Join(dir, "blobs", "more")
			if err := os.Mkdir(more, 0o700); err != nil {
				t.Fatal(err)
			}
			for i := range 5000 {
				if err := os.WriteFile(filepath.Join(more, fmt.Sprint(i)), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := startPlugin(t, settings, acks)
			defer p.process.Close()
			ended := make(chan error, 1)
			go func() { ended <- p.call(t.Context(), "memory.reset", map[string]any{"confirm": true}, nil) }()
			for {
				now, err := os.ReadDir(values)
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
				if len(now) < len(before) {
					break
				}
				select {
				case err := <-ended:
					t.Fatal("the reset ended and removed nothing: ", err)
				default:
					runtime.Gosched()
				}
			}
			p.kill()
			if err := <-ended; err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			use(func(*plugin) {})
			use(func(p *plugin) {
				for i := range 3 {
					err := p.call(t.Context(), "ltm.retrieve", map[string]any{"key": fmt.Sprint(i)}, nil)
					if err == nil || !strings.Contains(err.Error(), "is missing; restore it") {
						t.Errorf("key %d: %v", i, err)
					}
				}
			})
			use(func(p *plugin) {
				if err := p.call(t.Context(), "memory.reset", map[string]any{"confirm": true}, nil); err != nil {
					t.Error(err)
				}
			})
			use(func(p *plugin) {
				if err := p.call(t.Context(), "ltm.store", map[string]any{"key": "a", "value": 1}, nil); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
