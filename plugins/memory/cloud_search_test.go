package memory_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

func (a *agent) cloud(t *testing.T, path, content string, metadata map[string]any) {
	t.Helper()
	a.do(t, "memory.cloud_store", map[string]any{"path": path, "content": content, "metadata": metadata})
}

// found returns the members of each result of a search.
func found(result map[string]any, list string, members ...string) []string {
	all := []string{}
	for _, one := range result[list].([]any) {
		object := one.(map[string]any)
		if object["source"] == nil {
			object["source"] = "file"
		}
		all = append(all, strings.TrimSpace(fmt.Sprintln(pick(object, members...)...)))
	}
	return all
}

// Files of memory.cloud_store were not found by memory.grep, search_content,
// context.assemble, backfill_embeddings and sql_query.
func TestFilesInTheSharedStorageAreFound(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			a := openAgent(t, teatest.Linked(memory.Bundle()), embedder(), map[string]any{"path": t.TempDir(), "engine": engine, "blobs": t.TempDir()})
			t.Cleanup(func() { a.close(t) })
			a.file(t, "firm/acme/b.md", "the pump\nin the hall\n")
			a.cloud(t, "firm/acme/a.md", "a pump\nand a valve\n", map[string]any{"anchors": []any{"pumps"}})
			a.cloud(t, "firm/acme/b.md", "another pump", nil)
			a.cloud(t, "firm/acme/unit.json", `{"unit": {"name": "pump", "site": "north"}}`, nil)
			a.cloud(t, "firm/acme/old.md", "an old pump", map[string]any{"status": "archived"})
			a.do(t, "memory.cloud_store", map[string]any{"path": "firm/acme/c.bin", "content_base64": "AHB1bXA="})

			grep := func(more map[string]any) []string {
				t.Helper()
				return found(a.do(t, "memory.grep", with(map[string]any{"pattern": "pump"}, more)), "matches", "source", "path", "line")
			}
			all := []string{"cloud firm/acme/a.md 1", "file firm/acme/b.md 1", "cloud firm/acme/b.md 1", "cloud firm/acme/unit.json 1"}
			same(t, "grep", grep(nil), all)
			same(t, "grep with archived ones", grep(map[string]any{"include_archived": true}), slices.Insert(slices.Clone(all), 3, "cloud firm/acme/old.md 1"))
			same(t, "a pattern", grep(map[string]any{"path": "a.*"}), all[:1])
			same(t, "the list of files", found(a.do(t, "memory.file_list", nil), "files", "path"), []string{"firm/acme/b.md"})

			documents := a.do(t, "memory.search_content", map[string]any{"fields": map[string]any{"$.unit.site": "north"}})
			same(t, "documents", found(documents, "results", "source", "path"), []string{"cloud firm/acme/unit.json"})

			context := map[string]any{"query": "pump valve", "config": with(layers(map[string]any{"scope": "firm", "entity_id": "acme"}), map[string]any{"threshold": 0, "similarity": "bm25"})}
			ranked := found(a.do(t, "context.assemble", context), "sources", "source", "path")
			slices.Sort(ranked)
			same(t, "context", ranked, []string{"cloud firm/acme/a.md", "cloud firm/acme/b.md", "cloud firm/acme/unit.json", "file firm/acme/b.md"})

			same(t, "embedded", a.do(t, "memory.backfill_embeddings", nil)["embedded"], any(int64(4)))
			near := a.do(t, "memory.vector_search", map[string]any{"query": "valve pump", "k": 1})
			same(t, "vectors", found(near, "results", "source", "key", "id"), []string{"cloud firm/acme/a.md cloud:firm/acme/a.md"})
			same(t, "a filter", len(a.do(t, "memory.vector_search", map[string]any{"query": "pump", "filter": map[string]any{"anchors": map[string]any{"contains": "pumps"}}})["results"].([]any)), 1)
			context["config"].(map[string]any)["similarity"] = "cosine"
			same(t, "context by vectors", found(a.do(t, "context.assemble", context), "sources", "source", "path")[0], "cloud firm/acme/a.md")

			same(t, "sql", a.ask(t, "SELECT file_path, status, content_type, line_count FROM agent_memory WHERE status = 'active' AND content_type = 'md' ORDER BY file_path", nil),
				`[{"content_type":"md","file_path":"firm/acme/a.md","line_count":2,"status":"active"},{"content_type":"md","file_path":"firm/acme/b.md","line_count":1,"status":"active"}]`)

			// Every change is seen.
			a.cloud(t, "firm/acme/a.md", "a hose", nil)
			a.cloud(t, "firm/acme/d.md", "pump", nil)
			a.do(t, "memory.manifest_update", map[string]any{"path": "firm/acme/old.md", "status": "active"})
			same(t, "grep after changes", grep(nil), []string{"file firm/acme/b.md 1", "cloud firm/acme/b.md 1", "cloud firm/acme/d.md 1", "cloud firm/acme/old.md 1", "cloud firm/acme/unit.json 1"})
			context["config"].(map[string]any)["similarity"] = "bm25"
			ranked = found(a.do(t, "context.assemble", context), "sources", "source", "path")
			same(t, "context after changes", []bool{slices.Contains(ranked, "cloud firm/acme/d.md"), slices.Contains(ranked, "cloud firm/acme/old.md")}, []bool{true, true})
		})
	}
}

// A session that had ended left its files of memory.cloud_store where they were.
func TestFilesInTheSharedStorageMoveWithTheirSession(t *testing.T) {
	t.Parallel()
	cloudAgents(t, func(t *testing.T, a *agent, _ string) {
		a.do(t, "session.create", map[string]any{"session_id": "s", "user_id": "ann"})
		a.do(t, "memory.file_store", map[string]any{"session_id": "s", "path": "a.md", "content": "pump"})
		a.cloud(t, "sessions/s/b.md", "pump", map[string]any{"status": "draft"})
		a.cloud(t, "sessions/none/c.md", "pump", nil) // of no session
		grep := func(more map[string]any) []string {
			t.Helper()
			return found(a.do(t, "memory.grep", with(map[string]any{"pattern": "pump"}, more)), "matches", "source", "path")
		}
		same(t, "active", grep(nil), []string{"cloud sessions/none/c.md", "file sessions/s/a.md", "cloud sessions/s/b.md"})
		same(t, "of the session", grep(map[string]any{"session_id": "s"}), []string{"file sessions/s/a.md", "cloud sessions/s/b.md"})
		same(t, "of another user", grep(map[string]any{"user_id": "bob"}), []string{})
		a.do(t, "session.end", map[string]any{"session_id": "s"})
		same(t, "ended", grep(nil), []string{"cloud sessions/none/c.md"})
		same(t, "in the archive", grep(map[string]any{"session_id": "s"}), []string{"file archive/sessions/s/a.md", "cloud archive/sessions/s/b.md"})
		same(t, "context", found(a.do(t, "context.assemble", map[string]any{"query": "pump", "config": map[string]any{"threshold": 0}}), "sources", "path"), []string{"sessions/none/c.md"})
		same(t, "records", found(a.do(t, "memory.cloud_list", nil), "files", "file_path", "status"), []string{"archive/sessions/s/b.md draft", "sessions/none/c.md active"})
		for _, path := range []string{"sessions/s/b.md", "archive/sessions/s/b.md"} {
			same(t, path, a.do(t, "memory.cloud_retrieve", map[string]any{"path": path})["content"], any("pump"))
			a.fails(t, tea.ValidationError, "memory.cloud_store", map[string]any{"path": path, "content": "x"})
		}
		a.do(t, "session.restore", map[string]any{"session_id": "s"})
		same(t, "restored", grep(map[string]any{"session_id": "s"}), []string{"file sessions/s/a.md", "cloud sessions/s/b.md"})
		a.cloud(t, "sessions/s/b.md", "a new pump", nil)
		got := a.do(t, "memory.cloud_retrieve", map[string]any{"path": "sessions/s/b.md"})
		same(t, "changed", []any{got["content"], got["metadata"].(map[string]any)["status"]}, []any{"a new pump", "draft"})
	})
}

// A missing content in the shared storage is reported, not left out in silence.
func TestADamagedFileInTheSharedStorageIsReported(t *testing.T) {
	t.Parallel()
	cloudAgents(t, func(t *testing.T, a *agent, blobs string) {
		a.cloud(t, "a.md", "pump", nil)
		a.cloud(t, "b.md", "pump", nil)
		uri := a.do(t, "memory.cloud_list", nil)["files"].([]any)[0].(map[string]any)["storage_uri"].(string)
		if err := os.Remove(uri); err != nil {
			t.Fatal(err)
		}
		got := a.do(t, "memory.grep", map[string]any{"pattern": "pump"})
		same(t, "damaged", []any{got["damaged"], got["count"]}, []any{[]any{"a.md"}, int64(1)})
	})
}

func TestGrepFindsEntries(t *testing.T) {
	t.Parallel()
	linkedAgents(t, noHost, func(t *testing.T, a *agent) {
		a.do(t, "session.create", map[string]any{"session_id": "s", "user_id": "ann"})
		a.file(t, "b.md", "a pump")
		a.entry(t, "notes/a", "first line\nthe Pump\nlast line")
		a.entry(t, "notes/b", map[string]any{"unit": map[string]any{"name": "pump"}, "n": 5})
		a.entry(t, "session/s/c", "pump of ann")
		a.do(t, "ltm.store", map[string]any{"namespace": "acme", "key": "d", "value": "pump"})
		grep := func(more map[string]any) []string {
			t.Helper()
			return found(a.do(t, "memory.grep", with(map[string]any{"pattern": "pump", "ignore_case": true}, more)), "matches", "source", "path", "line", "text")
		}
		entries := []string{"ltm notes/a 2 the Pump", "ltm notes/b 2 unit.name: pump", "ltm session/s/c 1 pump of ann"}
		same(t, "files by default", grep(nil), []string{"file b.md 1 a pump"})
		same(t, "entries", grep(map[string]any{"in": []any{"ltm"}}), entries)
		same(t, "both", grep(map[string]any{"in": []any{"files", "ltm"}}), append([]string{"file b.md 1 a pump"}, entries...))
		same(t, "a pattern of keys", grep(map[string]any{"in": []any{"ltm"}, "path": "notes/*"}), entries[:2])
		same(t, "a namespace", grep(map[string]any{"in": []any{"ltm"}, "namespace": "acme"}), []string{"ltm d 1 pump"})
		same(t, "another user", grep(map[string]any{"in": []any{"ltm"}, "user_id": "bob"}), entries[:2])
		limited := a.do(t, "memory.grep", map[string]any{"pattern": "pump", "in": []any{"files", "ltm"}, "limit": 1})
		same(t, "a limit", []any{limited["count"], limited["truncated"]}, []any{int64(1), true})
		a.do(t, "session.end", map[string]any{"session_id": "s"})
		same(t, "an archived session", grep(map[string]any{"in": []any{"ltm"}}), entries[:2])
		same(t, "include_archived", grep(map[string]any{"in": []any{"ltm"}, "include_archived": true}), entries)
		a.fails(t, tea.ValidationError, "memory.grep", map[string]any{"pattern": "pump", "in": []any{"everywhere"}})
	})
}
