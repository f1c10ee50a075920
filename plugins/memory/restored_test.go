package memory_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

// copied copies the files of a folder over the files of another, except some.
func copied(t *testing.T, to, from string, without ...string) {
	t.Helper()
	whole := killed(t, from)
	for _, name := range without {
		if err := os.RemoveAll(filepath.Join(whole, name)); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(whole, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(whole, path)
		if err != nil {
			return err
		}
		if target := filepath.Join(to, name); d.IsDir() {
			return os.MkdirAll(target, 0o700)
		} else if data, err := os.ReadFile(path); err != nil {
			return err
		} else {
			return os.WriteFile(target, data, 0o600)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The indexes that stay in the folder are of changes with the same numbers.
func TestIndexesOfAReplacedMemoryAreNotUsed(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		for _, closed := range []bool{true, false} {
			t.Run(fmt.Sprintf("closed %t", closed), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				settings := map[string]any{"path": dir, "engine": engine}
				stores := func(o *opened, name string, x, y float64) {
					for i := range 3 {
						id := fmt.Sprintf("%s%d", name, i)
						o.must("ltm.store", map[string]any{"key": id, "value": "pump of " + name})
						o.must("vector.store", map[string]any{"texts": []any{name}, "ids": []any{id}, "embeddings": []any{[]any{x, y + float64(i)/100}}})
					}
				}
				found := func(o *opened, name string, x, y float64) (texts, vectors string) {
					for _, hit := range o.must("ltm.search", map[string]any{"query": name})["results"].([]any) {
						texts += fmt.Sprint(hit.(map[string]any)["key"], " ")
					}
					for _, hit := range o.must("vector.query", map[string]any{"embedding": []any{x, y}, "k": 3})["results"].([]any) {
						vectors += fmt.Sprint(hit.(map[string]any)["id"], " ")
					}
					return texts, vectors
				}
				o := mustOpen(t, settings)
				stores(o, "early", 1, 0)
				found(o, "early", 1, 0)
				o.close()
				older := killed(t, dir)
				o = mustOpen(t, settings)
				stores(o, "lost", 0, 1)
				found(o, "lost", 0, 1)
				o.close()

				copied(t, dir, older, "index", "files-index", "vectors")
				mustOpen(t, settings).close()
				o = mustOpen(t, settings)
				stores(o, "later", 1, 1)
				if !closed {
					left := killed(t, dir)
					o.close()
					settings = map[string]any{"path": left, "engine": engine}
				} else {
					o.close()
				}
				for range 2 {
					o = mustOpen(t, settings)
					for name, at := range map[string][2]float64{"early": {1, 0}, "later": {1, 1}, "lost": {0, 1}} {
						texts, vectors := found(o, name, at[0], at[1])
						want := map[string][2]string{
							"early": {"early0 early1 early2 ", "early0 early1 early2 "},
							"later": {"later0 later1 later2 ", "later0 later1 later2 "},
							"lost":  {"", "later2 later1 later0 "},
						}[name]
						same(t, "texts of "+name, texts, want[0])
						same(t, "vectors of "+name, vectors, want[1])
					}
					o.close()
				}
			})
		}
	})
}

// A copy of a closed memory has no log, so the log of the other memory stays in the folder.
func TestCopyOverAMemoryThatWasNotClosedIsRefused(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		dir := t.TempDir()
		settings := map[string]any{"path": dir, "engine": engine}
		o := mustOpen(t, settings)
		for i := range 20 {
			o.must("ltm.store", map[string]any{"key": fmt.Sprint("early", i), "value": i})
		}
		o.close()
		older := killed(t, dir)
		for range 2 {
			o = mustOpen(t, settings)
			for i := range 20 {
				o.must("ltm.store", map[string]any{"key": fmt.Sprint("early", i), "value": "changed"})
				o.must("ltm.store", map[string]any{"key": fmt.Sprint("late", i), "value": i})
			}
			o.close()
		}
		o = mustOpen(t, settings)
		o.must("ltm.delete", map[string]any{"key": "late1"})
		o.must("ltm.store", map[string]any{"key": "last", "value": 1})
		left := killed(t, dir)
		o.close()
		log := map[string]string{"duckdb": "memory.duckdb.wal", "sqlite": "memory.sqlite-wal"}[engine]
		whole, err := os.ReadFile(filepath.Join(left, log))
		if err != nil || len(whole) == 0 {
			t.Fatal("the log is empty", err)
		}

		settings = map[string]any{"path": left, "engine": engine}
		mustOpen(t, settings).close() // what a kill left can be opened as often as one likes
		copied(t, left, dir)
		if err := os.WriteFile(filepath.Join(left, log), whole, 0o600); err != nil {
			t.Fatal(err)
		}
		copied(t, left, older)
		for _, readOnly := range []bool{false, true, false} {
			o = mustOpen(t, map[string]any{"path": left, "engine": engine, "read_only": readOnly})
			same(t, "state", o.must("memory.inspect", nil)["state"], any("broken"))
			for _, action := range []string{"ltm.list", "session.list"} {
				if _, err := o.call(action, nil); typeOf(err) != tea.InternalError || tea.AsError(err).Retryable || !contains(err, log) || !contains(err, "move the log away") {
					t.Errorf("%s: %v", action, err)
				}
			}
			o.close()
		}
		now, err := os.ReadFile(filepath.Join(left, log))
		if err != nil || string(now) != string(whole) {
			t.Error("the log has changed", err)
		}

		if err := os.Rename(filepath.Join(left, log), filepath.Join(left, "away")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			o = mustOpen(t, settings)
			same(t, "entries", o.must("ltm.list", nil)["count"], any(int64(20)))
			same(t, "value", o.must("ltm.retrieve", map[string]any{"key": "early1"})["value"], any(int64(1)))
			o.must("ltm.store", map[string]any{"key": "early2", "value": 2})
			o.close()
		}
	})
}
