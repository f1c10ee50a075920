package memory_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/smalldisktest"

	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
)

// fillMemory stores something of each kind.
func fillMemory(t *testing.T, a *agent) {
	t.Helper()
	for _, call := range []struct {
		action string
		params map[string]any
	}{
		{"ltm.store", map[string]any{"key": "pump/7", "value": "The pump leaks.", "metadata": map[string]any{"unit": 7}}},
		{"ltm.store", map[string]any{"key": "pump/8", "value": map[string]any{"state": "the valve is shut"}}},
		{"ltm.store", map[string]any{"key": "large", "value": strings.Repeat("A large pump. ", 500)}},
		{"ltm.store", map[string]any{"key": "other", "namespace": "acme", "value": "a pump of acme"}},
		{"ltm.store", map[string]any{"key": "gone", "value": "pump"}},
		{"ltm.delete", map[string]any{"key": "gone"}},
		{"session.create", map[string]any{"session_id": "s", "user_id": "ann"}},
		{"memory.file_store", map[string]any{"path": "notes.md", "session_id": "s", "content": "pump notes"}},
		{"memory.file_store", map[string]any{"path": "docs/a.md", "content": "# Pump\n\nThe pump is red.\n"}},
		{"memory.file_store", map[string]any{"path": "docs/b.json", "content": `{"unit": {"name": "valve"}}`}},
		{"vector.store", map[string]any{"collection": "own", "ids": []any{"a", "b"}, "texts": []any{"pump", "valve"}, "embeddings": []any{[]any{1, 0}, []any{0, 1}}}},
		{"data.create_table", map[string]any{"name": "readings", "schema": map[string]any{"id": "int", "bar": "float"}, "primary_key": []any{"id"}}},
		{"data.insert", map[string]any{"table": "readings", "rows": []any{map[string]any{"id": 1, "bar": 1.5}, map[string]any{"id": 2, "bar": 2.5}}}},
		{"data.consolidate", map[string]any{"table": "readings"}},
		{"data.insert", map[string]any{"table": "readings", "rows": []any{map[string]any{"id": 3, "bar": 3.5}}}},
		{"memory.backfill_embeddings", nil},
	} {
		a.do(t, call.action, call.params)
	}
}

// reads are calls that change nothing.
var reads = []struct {
	action string
	params map[string]any
}{
	{"ltm.retrieve", map[string]any{"key": "pump/7"}},
	{"ltm.retrieve", map[string]any{"key": "large"}},
	{"ltm.retrieve", map[string]any{"key": "other", "namespace": "acme"}},
	{"ltm.list", map[string]any{}},
	{"ltm.search", map[string]any{"query": "pumps"}},
	{"ltm.search", map[string]any{"query": "pump", "mode": "vector"}},
	{"ltm.search", map[string]any{"query": "pump", "mode": "hybrid", "metadata_filter": map[string]any{"unit": 7}}},
	{"vector.query", map[string]any{"collection": "own", "embedding": []any{1, 0.1}, "k": 2}},
	{"vector.list", map[string]any{"collection": "own"}},
	{"memory.vector_search", map[string]any{"query": "valve"}},
	{"memory.sql_query", map[string]any{"sql": "SELECT key FROM memories ORDER BY key"}},
	{"memory.sql_query", map[string]any{"sql": "SELECT session_id, status FROM sessions ORDER BY session_id"}},
	{"data.query", map[string]any{"sql": "SELECT id, bar FROM readings ORDER BY id"}},
	{"memory.file_retrieve", map[string]any{"path": "docs/a.md"}},
	{"memory.file_list", map[string]any{}},
	{"memory.grep", map[string]any{"pattern": "%pump%"}},
	{"memory.search_content", map[string]any{"source": "all", "fields": map[string]any{"$.unit.name": "valve"}}},
	{"session.get", map[string]any{"session_id": "s"}},
	{"session.list", map[string]any{"user_id": "ann"}},
	{"catalog.list_tables", map[string]any{}},
	{"context.assemble", map[string]any{"query": "pump", "config": map[string]any{"threshold": 0}}},
}

func readMemory(t *testing.T, a *agent) map[string]any {
	t.Helper()
	got := map[string]any{}
	for i, r := range reads {
		got[r.action+" "+string(rune('a'+i))] = a.do(t, r.action, r.params)
	}
	return got
}

// checkReadOnly checks that a memory is read and not written.
func checkReadOnly(t *testing.T, a *agent, want map[string]any) {
	t.Helper()
	if diff := cmp.Diff(want, readMemory(t, a)); diff != "" {
		t.Errorf("the memory (-written +read):\n%s", diff)
	}
	for range 7 { // more often than a circuit breaker lets pass
		for action, params := range map[string]map[string]any{
			"ltm.store": {"key": "new", "value": strings.Repeat("x", 5000)}, "ltm.delete": {"key": "pump/7"}, "vector.store": {"texts": []any{"x"}},
			"memory.file_store": {"path": "new", "content": "x"}, "session.create": {}, "data.insert": {"table": "readings", "rows": []any{map[string]any{"id": 9}}},
			"memory.backfill_embeddings": nil, "memory.embed": {"key": "pump/7"}, "memory.reset": {"confirm": true}, "catalog.register_table": {"name": "x"},
		} {
			_, err := a.try(t.Context(), action, params)
			if e := tea.AsError(err); e == nil || e.Type != tea.PermissionDenied || e.Retryable || !strings.Contains(e.Message, "is read-only: ") {
				t.Errorf("%s: %v, want a permission_denied error", action, err)
			}
		}
	}
	a.do(t, "memory.store", map[string]any{"key": "k", "value": 1})
	same(t, "afterwards", a.do(t, "ltm.retrieve", map[string]any{"key": "pump/7"})["value"], "The pump leaks.")
	same(t, "inspect", a.do(t, "memory.inspect", nil)["state"], "ok")
}

// tree describes all files of a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() == "owner.lock" {
			return err
		}
		if entry.IsDir() {
			files[path] = "folder"
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		files[path] = info.ModTime().String() + string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestAMemoryOnAReadOnlyFileSystemIsRead(t *testing.T) {
	if !devicetest.OwnMounts(t) {
		return
	}
	eachEngine(t, func(t *testing.T, engine string) {
		disk := smalldisktest.New(t, "64m")
		settings := map[string]any{"path": disk.Dir + "/memory", "engine": engine}
		a := openAgent(t, teatest.Linked(memory.Bundle()), embedder(), settings)
		fillMemory(t, a)
		want := readMemory(t, a)
		a.close(t)
		for _, when := range []string{"with its indexes", "without its indexes"} {
			t.Run(when, func(t *testing.T) {
				disk.Protect(t, true)
				defer disk.Protect(t, false)
				first := openAgent(t, teatest.Linked(memory.Bundle()), embedder(), settings)
				defer first.close(t)
				second := openAgent(t, startPlugin(t), embedder(), settings)
				defer second.close(t)
				checkReadOnly(t, first, want)
				checkReadOnly(t, second, want)
			})
			for _, name := range []string{"index", "files-index", "vectors", "owner.lock"} {
				if err := os.RemoveAll(filepath.Join(disk.Dir, "memory", name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func TestAMemoryIsOnlyReadOnRequest(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		settings := map[string]any{"path": t.TempDir(), "engine": engine}
		a := openAgent(t, teatest.Linked(memory.Bundle()), embedder(), settings)
		fillMemory(t, a)
		want := readMemory(t, a)
		a.close(t)
		before := tree(t, settings["path"].(string))
		reading := map[string]any{"path": settings["path"], "read_only": true, "lock_timeout": 0}
		first := openAgent(t, teatest.Linked(memory.Bundle()), embedder(), reading)
		second := openAgent(t, startPlugin(t), embedder(), reading)
		checkReadOnly(t, first, want)
		checkReadOnly(t, second, want)
		settings["lock_timeout"] = 0
		writer := openAgent(t, startPlugin(t), embedder(), settings)
		if message := writer.fails(t, tea.ConnectionError, "ltm.store", map[string]any{"key": "a", "value": 1}); !strings.Contains(message, "is in use by processes that read it") {
			t.Error(message)
		}
		writer.close(t)
		first.close(t)
		second.close(t)
		if diff := cmp.Diff(before, tree(t, settings["path"].(string))); diff != "" {
			t.Errorf("reading has changed the folder (-before +after):\n%.2000s", diff)
		}

		_, err := openBundle(t, map[string]any{"path": t.TempDir(), "read_only": true})
		if typeOf(err) != tea.NotFound {
			t.Errorf("an empty folder: %v, want a not_found error", err)
		}
	})
}

// What expires while a memory is only read is not returned, although nothing
// can be removed.
func TestWhatHasExpiredIsNotReturnedByAMemoryThatIsOnlyRead(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, engine string) {
		dir := t.TempDir()
		a := openAgent(t, teatest.Linked(memory.Bundle()), embedder(), map[string]any{"path": dir, "engine": engine})
		a.do(t, "ltm.store", map[string]any{"key": "stays", "value": "pump"})
		a.file(t, "stays.md", "pump")
		a.do(t, "ltm.store", map[string]any{"key": "session/x/a", "value": "pump"})
		a.do(t, "session.create", map[string]any{"session_id": "x", "ttl": 1})
		a.do(t, "memory.file_store", map[string]any{"path": "a.md", "session_id": "x", "content": "pump"})
		a.do(t, "ltm.store", map[string]any{"key": "expires", "value": "pump", "ttl": 1})
		a.do(t, "memory.backfill_embeddings", nil)
		a.close(t)
		r := openAgent(t, teatest.Linked(memory.Bundle()), embedder(), map[string]any{"path": dir, "read_only": true})
		defer r.close(t)
		late := time.Now().Add(5 * time.Minute)
		for r.do(t, "ltm.retrieve", map[string]any{"key": "expires"})["found"] == true || r.do(t, "session.get", map[string]any{"session_id": "x"})["status"] == "active" {
			if time.Now().After(late) {
				t.Fatal("nothing expires")
			}
		}
		keys := func(result map[string]any, list, name string) (all []any) {
			for _, f := range result[list].([]any) {
				all = append(all, f.(map[string]any)[name])
			}
			return all
		}
		both := []any{"session/x/a", "stays"}
		same(t, "ltm.list", keys(r.do(t, "ltm.list", nil), "entries", "key"), both)
		same(t, "ltm.search", len(keys(r.do(t, "ltm.search", map[string]any{"query": "pump"}), "results", "key")), 2)
		same(t, "file_list", keys(r.do(t, "memory.file_list", nil), "files", "path"), []any{"stays.md"})
		same(t, "grep", keys(r.do(t, "memory.grep", map[string]any{"pattern": "%pump%"}), "matches", "path"), []any{"stays.md"})
		same(t, "active", keys(r.do(t, "session.list", map[string]any{"status": "active"}), "sessions", "session_id"), []any(nil))
		same(t, "archived", keys(r.do(t, "session.list", map[string]any{"status": "archived", "reason": "expired"}), "sessions", "session_id"), []any{"x"})
		for _, similarity := range []string{"bm25", "cosine"} {
			same(t, "context by "+similarity, keys(r.do(t, "context.assemble", map[string]any{"query": "pump", "config": map[string]any{"similarity": similarity, "threshold": 0}}), "sources", "path"), []any{"stays", "stays.md"})
		}
		for _, key := range keys(r.do(t, "memory.vector_search", map[string]any{"query": "pump", "k": 10}), "results", "key") {
			if key == "expires" || key == "sessions/x/a.md" {
				t.Errorf("memory.vector_search finds %s", key)
			}
		}
	})
}

// A process that was killed leaves commits in a log. They are read, or opening
// fails: the memory never looks as it did before them.
func TestAMemoryThatWasNotClosedIsNeverReadWithoutItsLastChanges(t *testing.T) {
	if !devicetest.OwnMounts(t) {
		return
	}
	eachEngine(t, func(t *testing.T, engine string) {
		for _, lost := range []string{"nothing", "-shm"} {
			disk := smalldisktest.New(t, "64m")
			a := openAgent(t, teatest.Linked(memory.Bundle()), nil, map[string]any{"path": disk.Dir + "/open", "engine": engine})
			a.entry(t, "k", "old")
			a.close(t)
			a = openAgent(t, teatest.Linked(memory.Bundle()), nil, map[string]any{"path": disk.Dir + "/open", "engine": engine})
			a.entry(t, "k", "new")
			// The copy is what a power cut would leave at this moment.
			if err := os.CopyFS(disk.Dir+"/copy", os.DirFS(disk.Dir+"/open")); err != nil {
				t.Fatal(err)
			}
			a.close(t)
			if err := os.Remove(disk.Dir + "/copy/memory." + engine + lost); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			disk.Protect(t, true)
			r := openAgent(t, teatest.Linked(memory.Bundle()), nil, map[string]any{"path": disk.Dir + "/copy", "engine": engine})
			got, err := r.try(t.Context(), "ltm.retrieve", map[string]any{"key": "k"})
			t.Logf("without %s: %v, %v", lost, got["value"], err)
			if err != nil && (typeOf(err) != tea.PermissionDenied || !strings.Contains(err.Error(), "open it once for writing")) || err == nil && got["value"] != "new" {
				t.Errorf("without %s: %v, %v", lost, got["value"], err)
			}
			r.close(t)
			disk.Protect(t, false)
			w := openAgent(t, teatest.Linked(memory.Bundle()), nil, map[string]any{"path": disk.Dir + "/copy", "engine": engine})
			same(t, "opened for writing", w.do(t, "ltm.retrieve", map[string]any{"key": "k"})["value"], "new")
			w.close(t)
		}
	})
}
