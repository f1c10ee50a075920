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

// TestADamagedEntryDoesNotHideOthers is about a disk that has lost
// some bytes of a large value.
func TestADamagedEntryDoesNotHideOthers(t *testing.T) {
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

// A database that was removed, emptied or replaced is not taken for a new
// memory: nothing is answered, and none of its files are removed.
func TestALostDatabaseIsAnError(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		dir := t.TempDir()
		settings := map[string]any{"path": dir, "engine": engine}
		database := filepath.Join(dir, "memory."+engine)
		use := func(key string) {
			o := mustOpen(t, settings)
			defer o.close() // a short run sweeps at its end
			o.must("ltm.store", map[string]any{"key": key, "value": key + strings.Repeat(" large", 500)})
			o.must("memory.file_store", map[string]any{"path": key + ".txt", "content": key})
		}
		refused := func(when, want string) {
			t.Helper()
			o := mustOpen(t, settings)
			defer o.close()
			for _, action := range []string{"ltm.list", "memory.file_list"} {
				_, err := o.call(action, nil)
				if typeOf(err) != tea.InternalError || tea.AsError(err).Retryable || !contains(err, want) || !contains(err, "tea memory reset") {
					t.Errorf("%s, %s: %v; want an error that is not retryable and says that it %s", when, action, err, want)
				}
			}
		}
		blobs := func() (names []string) {
			err := filepath.WalkDir(filepath.Join(dir, "blobs"), func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.Type().IsRegular() {
					names = append(names, path)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return names
		}
		use("first")
		kept := blobs()
		whole, err := os.ReadFile(database)
		if err != nil {
			t.Fatal(err)
		}
		wals, err := filepath.Glob(database + "?*")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range append(wals, database) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		refused("removed", "is missing")
		if err := os.Mkdir(database, 0o700); err != nil {
			t.Fatal(err)
		}
		refused("replaced by a folder", "is not a file")
		if err := os.Remove(database); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(database, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		refused("truncated to nothing", "is empty")
		if err := os.WriteFile(database, whole[:len(whole)/2], 0o600); err != nil {
			t.Fatal(err)
		}
		refused("truncated to half", "damaged")
		if err := os.WriteFile(database, []byte(strings.Repeat("rubbish ", 4096)), 0o600); err != nil {
			t.Fatal(err)
		}
		refused("overwritten", "damaged")

		elsewhere := t.TempDir() // a memory removes contents that it does not name
		other := mustOpen(t, map[string]any{"path": elsewhere, "engine": engine})
		other.must("memory.file_list", nil)
		other.close()
		another, err := os.ReadFile(filepath.Join(elsewhere, "memory."+engine))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(database, another, 0o600); err != nil {
			t.Fatal(err)
		}
		refused("replaced", "was replaced")
		if got := strings.Join(blobs(), "\n"); got != strings.Join(kept, "\n") {
			t.Errorf("the files are now %s, want %s", got, kept)
		}

		// Put back, it is as it was.
		if err := os.WriteFile(database, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		o := mustOpen(t, settings)
		defer o.close()
		if value, _ := o.must("ltm.retrieve", map[string]any{"key": "first"})["value"].(string); !strings.HasPrefix(value, "first large") {
			t.Errorf("the value is %.20q", value)
		}
	})
}

// A power cut can leave zeros, or nothing, in the files next to the database.
func TestRecordsAreFoundDespiteZerosInTheFilesOfTheFolder(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		t.Parallel()
		dir := t.TempDir()
		settings := map[string]any{"path": dir, "engine": engine}
		o := mustOpen(t, settings)
		o.must("ltm.store", map[string]any{"key": "a", "value": "pump"})
		o.must("ltm.search", map[string]any{"query": "pump"})
		o.must("vector.store", map[string]any{"texts": []any{"pump"}, "ids": []any{"a"}, "embeddings": []any{[]any{1, 0}}})
		o.must("vector.query", map[string]any{"embedding": []any{1, 0}})
		o.close()
		var files []string
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && d.Name() != "memory."+engine {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, left := range [][]byte{make([]byte, len(whole)), nil, whole[:len(whole)/2]} {
				if err := os.WriteFile(path, left, 0o600); err != nil {
					t.Fatal(err)
				}
				o := mustOpen(t, settings)
				same(t, path, len(o.must("ltm.search", map[string]any{"query": "pump"})["results"].([]any)), 1)
				same(t, path, len(o.must("vector.query", map[string]any{"embedding": []any{1, 0}})["results"].([]any)), 1)
				o.close()
			}
		}
	})
}
