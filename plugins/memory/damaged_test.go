package memory_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

// TestOneDamagedEntryKeepsNoOtherFromBeingSeen is about a disk that has lost
// some bytes of a large value.
func TestOneDamagedEntryKeepsNoOtherFromBeingSeen(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		dir := t.TempDir()
		o := mustOpen(t, map[string]any{"path": dir, "engine": engine})
		defer o.close()
		var hash string
		for _, key := range []string{"a", "b", "c"} {
			stored := o.must("ltm.store", map[string]any{"key": "d/" + key, "value": map[string]any{"pump": key + strings.Repeat(" alarm", 500)}})
			if key == "b" {
				hash = stored["content_hash"].(string)
			}
		}
		o.must("ltm.search", map[string]any{"query": "pump"}) // the index has them
		if err := os.WriteFile(filepath.Join(dir, "blobs", "ltm", hash[:2], hash), []byte("something else"), 0o600); err != nil {
			t.Fatal(err)
		}

		if _, err := o.call("ltm.retrieve", map[string]any{"key": "d/b"}); typeOf(err) != tea.InternalError || !contains(err, "damaged") {
			t.Errorf("retrieve: %v", err)
		}
		seen := func(entries any) (all string) {
			for _, e := range entries.([]any) {
				entry := e.(map[string]any)
				all += fmt.Sprintf("%s %t %v, ", entry["key"], entry["value"] == nil, entry["damaged"])
			}
			return all
		}
		same(t, "list", seen(o.must("ltm.list", nil)["entries"]), "d/a false <nil>, d/b true true, d/c false <nil>, ")
		same(t, "search", seen(o.must("ltm.search", map[string]any{"query": "alarm"})["results"]), "d/a false <nil>, d/b true true, d/c false <nil>, ")
		found := o.must("memory.search_content", map[string]any{"source": "ltm", "conditions": []any{map[string]any{"path": "$.pump", "op": "exists", "value": true}}})
		same(t, "search_content", []any{found["count"], found["files_skipped"]}, []any{int64(2), int64(1)})
		config := map[string]any{"layers": []any{map[string]any{"scope": "directory", "directory": "d"}}, "threshold": 0}
		same(t, "assemble", len(sources(o.must("context.assemble", map[string]any{"config": config}))), 2)
	})
}

// TestFilesOfALostDatabaseAreKept is about somebody who removes the database,
// or puts the files back before it.
func TestFilesOfALostDatabaseAreKept(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		dir := t.TempDir()
		settings := map[string]any{"path": dir, "engine": engine}
		run := func(key string) {
			o := mustOpen(t, settings)
			defer o.close() // a short run sweeps at its end
			o.must("ltm.store", map[string]any{"key": key, "value": key + strings.Repeat(" large", 500)})
			o.must("memory.file_store", map[string]any{"path": key + ".txt", "content": key})
			o.must("data.create_table", map[string]any{"name": key, "schema": map[string]any{"a": "str"}})
			o.must("data.insert", map[string]any{"table": key, "rows": []any{map[string]any{"a": strings.Repeat(key, 5000)}}})
		}
		files := func() (names []string) {
			for _, part := range []string{"blobs", "tables"} {
				err := filepath.WalkDir(filepath.Join(dir, part), func(path string, d fs.DirEntry, err error) error {
					if err == nil && d.Type().IsRegular() {
						names = append(names, path)
					}
					return err
				})
				if err != nil && engine == "duckdb" {
					t.Fatal(err)
				}
			}
			return names
		}
		run("first")
		before := files()
		databases, err := filepath.Glob(filepath.Join(dir, "memory.*"))
		if err != nil || len(databases) == 0 {
			t.Fatal(databases, err)
		}
		for _, path := range append(databases, filepath.Join(dir, "swept")) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		run("second")
		run("third")
		now := strings.Join(files(), "\n")
		for _, path := range before {
			if !strings.Contains(now, path) {
				t.Errorf("%s is gone", path)
			}
		}

		// Who says so lets them go.
		if err := os.Remove(filepath.Join(dir, "database.id")); err != nil {
			t.Fatal(err)
		}
		run("fourth")
		now = strings.Join(files(), "\n")
		for _, path := range before {
			if strings.Contains(now, path) {
				t.Errorf("%s is still there", path)
			}
		}
	})
}
