package memory_test

import (
	"os"
	"path/filepath"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

func TestInspectAndReset(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		dir := t.TempDir()
		settings := map[string]any{"path": dir, "engine": engine}
		inspect := func(state string, ltm int64) map[string]any {
			t.Helper()
			o := mustOpen(t, settings)
			defer o.close()
			r := o.must("memory.inspect", nil)
			entries, _ := r["entries"].(map[string]any)
			n, _ := entries["ltm"].(int64)
			same(t, "inspect", []any{r["path"], r["engine"], r["state"], n}, []any{dir, engine, state, ltm})
			return r
		}
		inspect("new", 0)
		if _, err := os.Stat(filepath.Join(dir, "memory."+engine)); err == nil {
			t.Error("memory.inspect makes a database")
		}
		o := mustOpen(t, settings)
		o.must("ltm.store", map[string]any{"key": "a", "value": 1})
		o.must("memory.file_store", map[string]any{"path": "f", "content": "text"})
		if _, err := o.call("memory.reset", map[string]any{"confirm": true}); typeOf(err) != tea.ValidationError {
			t.Errorf("reset while it is in use: %v", err)
		}
		o.close()
		if r := inspect("ok", 1); r["total_bytes"].(int64) == 0 || r["bytes"].(map[string]any)["blobs"] != int64(4) {
			t.Errorf("bytes: %v of %v", r["bytes"], r["total_bytes"])
		}

		// A lost database can be described, and be let go.
		if err := os.WriteFile(filepath.Join(dir, "memory."+engine), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := inspect("broken", 0); !contains(tea.Errorf(tea.InternalError, "%v", r["problem"]), "is empty") {
			t.Errorf("problem: %v", r["problem"])
		}
		mine := filepath.Join(dir, "notes.txt")
		if err := os.WriteFile(mine, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		o = mustOpen(t, settings)
		if _, err := o.call("memory.reset", map[string]any{"confirm": false}); typeOf(err) != tea.ValidationError {
			t.Errorf("reset without confirmation: %v", err)
		}
		o.must("memory.reset", map[string]any{"confirm": true})
		o.close()
		if _, err := os.Stat(mine); err != nil {
			t.Errorf("reset removed a file that is not the memory's: %v", err)
		}
		inspect("new", 0)
		o = mustOpen(t, settings)
		defer o.close()
		same(t, "entries", o.must("ltm.list", nil)["count"], any(int64(0)))
	})
}
