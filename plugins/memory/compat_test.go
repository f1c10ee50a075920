package memory_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "make the files of the newest version in testdata again")

// newest is the version of the schema whose files -update makes. Those of the
// versions before are never made again.
const newest = "v2"

// versions are the ones whose files are in testdata.
var versions = []string{"v1", "v2"}

// TestOldMemoriesAreRead opens what released versions have written.
func TestOldMemoriesAreRead(t *testing.T) {
	eachEngine(t, func(t *testing.T, engine string) {
		for _, version := range versions {
			t.Run(version, func(t *testing.T) {
				kept := filepath.Join("testdata", version, engine)
				if *update && version == newest {
					makeMemory(t, engine, kept)
				}
				dir := filepath.Join(t.TempDir(), "memory")
				if err := os.CopyFS(dir, os.DirFS(kept)); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					o := mustOpen(t, map[string]any{"path": dir, "engine": engine})
					checkOldMemory(t, o)
					o.must("ltm.store", map[string]any{"key": "new", "value": "new harbor"})
					o.equal("what was stored now", o.must("ltm.search", map[string]any{"query": "new harbor", "limit": 1})["results"].([]any)[0].(map[string]any)["key"], "new")
					o.equal("removed again", o.must("ltm.delete", map[string]any{"key": "new"})["deleted"], true)
					o.close()
				}
			})
		}
	})
}

func oldText() string { return "quartz " + strings.Repeat("lantern ", 300) }

// makeMemory fills a folder with something of everything that lasts.
func makeMemory(t *testing.T, engine, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	o := mustOpen(t, map[string]any{"path": dir, "engine": engine})
	o.must("ltm.store", map[string]any{"items": []any{
		map[string]any{"key": "small", "value": map[string]any{"note": "the turbines stopped", "big": json.Number("12345678901234567890")}, "metadata": map[string]any{"site": "north"}},
		map[string]any{"key": "large", "value": oldText()},
		map[string]any{"key": "gone", "value": "turbine"},
		map[string]any{"key": "Grüße/日本", "value": nil},
		map[string]any{"key": "late", "value": "turbine", "ttl": 1e9},
		map[string]any{"key": "past", "value": "turbine", "ttl": 1e-6},
	}})
	o.must("ltm.delete", map[string]any{"key": "gone"})
	o.must("ltm.search", map[string]any{"query": "turbine"})
	o.must("vector.store", map[string]any{"ids": []string{"a", "b"}, "texts": []string{"first", "second"}, "embeddings": [][]float64{{1, 0, 0}, {0.5, 0.5, 0}}, "metadata": []any{map[string]any{"n": 1}, map[string]any{"n": 2}}})
	o.must("session.create", map[string]any{"session_id": "open", "user_id": "kim"})
	o.must("session.create", map[string]any{"session_id": "shut", "user_id": "kim", "metadata": map[string]any{"n": 1}})
	for _, id := range []string{"open", "shut"} {
		o.must("memory.file_store", map[string]any{"path": "note.md", "session_id": id, "content": "# " + id})
	}
	o.must("session.end", map[string]any{"session_id": "shut"})
	o.must("memory.file_store", map[string]any{"path": "notes/plan.md", "content": oldText(), "metadata": map[string]any{"n": 1}})
	o.must("data.create_table", map[string]any{"name": "readings", "schema": map[string]any{"id": "int", "site": "string", "at": "timestamp"}, "primary_key": "id"})
	var rows []any
	for i := range 60 {
		rows = append(rows, map[string]any{"id": i, "site": fmt.Sprint("site ", i%3), "at": "2026-03-01T12:00:00Z"})
	}
	o.must("data.insert", map[string]any{"table": "readings", "rows": rows})
	o.must("data.consolidate", map[string]any{"table": "readings"})
	o.must("data.insert", map[string]any{"table": "readings", "rows": rows[:40], "on_conflict": "replace"})
	o.must("data.delete", map[string]any{"table": "readings", "keys": []any{7}})
	o.must("catalog.register_table", map[string]any{"name": "elsewhere", "format": "csv"})
	o.must("catalog.track_file", map[string]any{"table": "elsewhere", "path": "a.csv", "size": 5, "content_hash": "x"})
	o.must("catalog.create_snapshot", map[string]any{"table": "elsewhere"})
	o.close()
	for _, name := range []string{"owner.lock", "swept", "reserve"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

// checkOldMemory finds what makeMemory has stored.
func checkOldMemory(t *testing.T, o *opened) {
	t.Helper()
	fields := func(list any, name string) string {
		var all []string
		for _, item := range list.([]any) {
			all = append(all, fmt.Sprint(item.(map[string]any)[name]))
		}
		return strings.Join(all, " ")
	}
	o.equal("entries", fields(o.must("ltm.list", nil)["entries"], "key"), "Grüße/日本 large late small")
	small := o.must("ltm.retrieve", map[string]any{"key": "small"})
	o.equal("a value", fmt.Sprint(small["value"], small["metadata"]), "map[big:12345678901234567890 note:the turbines stopped] map[site:north]")
	o.equal("a large value", o.must("ltm.retrieve", map[string]any{"key": "large"})["value"], oldText())
	found := strings.Fields(fields(o.must("ltm.search", map[string]any{"query": "turbine"})["results"], "key"))
	o.equal("found", len(found), 2)
	near := o.must("vector.query", map[string]any{"embedding": []float64{1, 0.1, 0}})["results"]
	o.equal("vectors", fields(near, "id")+" "+fields(near, "text"), "a b first second")
	o.equal("active sessions", fields(o.must("session.list", map[string]any{"status": "active"})["sessions"], "session_id"), "open")
	o.equal("archived sessions", fields(o.must("session.list", map[string]any{"status": "archived", "reason": "ended"})["sessions"], "session_id"), "shut")
	o.equal("files", fields(o.must("memory.file_list", map[string]any{"include_archived": true})["files"], "path"), "archive/sessions/shut/note.md notes/plan.md sessions/open/note.md")
	o.equal("a file", o.must("memory.file_retrieve", map[string]any{"path": "notes/plan.md"})["content"], oldText())
	o.equal("an archived file", o.must("memory.file_retrieve", map[string]any{"path": "note.md", "session_id": "shut"})["content"], "# shut")
	rows := o.must("data.query", map[string]any{"sql": "SELECT count(*) AS n, sum(id) AS total, max(site) AS site FROM readings"})["rows"]
	want := []any{map[string]any{"n": int64(59), "total": int64(60*59/2 - 7), "site": "site 2"}}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
	o.equal("tracked files", fields(o.must("catalog.list_files", map[string]any{"table": "elsewhere"})["files"], "path"), "a.csv")
	o.equal("a snapshot", o.must("catalog.get_latest_snapshot", map[string]any{"table": "elsewhere"})["success"], true)
}

func (o *opened) equal(what string, got, want any) {
	o.t.Helper()
	if got != want {
		o.t.Errorf("%s: %v, want %v", what, got, want)
	}
}
