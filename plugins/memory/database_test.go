package memory_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

// TestAMemoryOfAnotherEngineIsNotChanged is about a plugin that was replaced by
// one with fewer engines, or a setting that was changed: the files of the
// memory belong to rows that the other engine does not see.
func TestAMemoryOfAnotherEngineIsNotChanged(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		dir := t.TempDir()
		large := strings.Repeat("x", 5000)
		first := mustOpen(t, map[string]any{"path": dir, "engine": engine})
		first.must("ltm.store", map[string]any{"key": "k", "value": large})
		first.close()
		other := map[string]string{"sqlite": "duckdb", "duckdb": "sqlite"}[engine]
		_, err := openBundle(t, map[string]any{"path": dir, "engine": other})
		if typeOf(err) != tea.ValidationError || !contains(err, "was created by "+engine) || !contains(err, dir) {
			t.Errorf("with engine %s: %v", other, err)
		}
		again := mustOpen(t, map[string]any{"path": dir}) // without an engine it is the memory's own
		defer again.close()
		if got := again.must("ltm.retrieve", map[string]any{"key": "k"}); got["value"] != large {
			t.Errorf("without an engine: %v", got)
		}
	})
}

func TestABuildWithoutTheEngineOfAMemorySaysSo(t *testing.T) {
	t.Parallel()
	if slices.Contains(engines(), "duckdb") {
		t.Skip("this build has all engines")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "memory.duckdb"), []byte("rows"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := openBundle(t, map[string]any{"path": dir})
	if typeOf(err) != tea.DependencyMissing || !contains(err, "was created by duckdb") || !contains(err, "CGO_ENABLED=1") {
		t.Errorf("a memory of DuckDB: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "memory.sqlite")); err == nil {
		t.Error("a second memory was made")
	}
}

func TestTwoMemoriesInOneFolderNeedAnEngine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"memory.duckdb", "memory.sqlite"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("rows"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := openBundle(t, map[string]any{"path": dir}); typeOf(err) != tea.ValidationError || !contains(err, "settings.memory.engine") {
		t.Errorf("two memories: %v", err)
	}
}

func TestFilesAreReadableByTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("files have no mode")
	}
	eachEngine(t, func(t *testing.T, engine string) {
		dir := filepath.Join(t.TempDir(), "memory")
		o := mustOpen(t, map[string]any{"path": dir, "engine": engine})
		o.must("data.create_table", map[string]any{"name": "t", "schema": []any{map[string]any{"name": "a", "type": "int"}}, "primary_key": []any{"a"}})
		many := make([]any, 500)
		for i := range many {
			many[i] = map[string]any{"a": int64(i)}
		}
		o.must("data.insert", map[string]any{"table": "t", "rows": many})
		o.must("ltm.store", map[string]any{"key": "large", "value": strings.Repeat("large ", 1000)})
		check := func(when string) {
			t.Helper()
			err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := entry.Info()
				if err == nil && info.Mode()&0o077 != 0 {
					t.Errorf("%s: %s has the mode %v", when, path, info.Mode())
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		check("open")
		o.close()
		o = mustOpen(t, map[string]any{"path": dir, "engine": engine})
		o.must("ltm.store", map[string]any{"key": "small", "value": "small"})
		check("open again")
		o.close()
		check("closed")
	})
}

// A process that is killed while it creates the database leaves a part of it,
// which DuckDB refuses as damaged.
func TestAnUnfinishedDatabaseIsCreatedAgain(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		dir := t.TempDir()
		unfinished := filepath.Join(dir, "memory."+engine+".new")
		if err := os.WriteFile(unfinished, []byte("a part"), 0o600); err != nil {
			t.Fatal(err)
		}
		o := mustOpen(t, map[string]any{"path": dir, "engine": engine})
		o.must("ltm.store", map[string]any{"key": "k", "value": "v"})
		o.close()
		if _, err := os.Stat(unfinished); engine == "duckdb" && err == nil {
			t.Error("the unfinished file is still there")
		}
	})
}

// A process that is killed while it creates the database leaves other files of it.
func TestInspectOfAnUnfinishedMemoryCreatesNoneOfAnotherEngine(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		for _, name := range map[string][]string{"sqlite": {"memory.sqlite-new", "memory.sqlite-wal"}, "duckdb": {"memory.duckdb.new", "memory.duckdb.wal"}}[engine] {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, name), []byte("a part"), 0o600); err != nil {
				t.Fatal(err)
			}
			settings := map[string]any{"path": dir}
			for range 2 {
				o := mustOpen(t, settings) // without an engine
				r := o.must("memory.inspect", nil)
				same(t, name, []any{r["state"], r["engine"]}, []any{"new", engine})
				o.close()
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if strings.HasPrefix(e.Name(), "memory.") && e.Name() != name {
					t.Errorf("%s: memory.inspect has created %s", name, e.Name())
				}
			}
			o := mustOpen(t, map[string]any{"path": dir, "engine": engine})
			o.must("ltm.store", map[string]any{"key": "k", "value": "v"})
			o.close()
			o = mustOpen(t, settings)
			same(t, name, o.must("ltm.retrieve", map[string]any{"key": "k"})["value"], any("v"))
			o.close()
		}
	})
}
