package memory_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	tea "github.com/the-edge-agent/tea/sdk"
)

// parquetRows returns the rows of a Parquet file, as JSON, by path.
func parquetRows(t *testing.T, file string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	err := duckdb.Texts(t.Context(), filepath.Dir(file), "SELECT CAST(to_json(r) AS VARCHAR) FROM read_parquet('"+file+"') AS r", func(text string) {
		var row map[string]any
		if err := json.Unmarshal([]byte(text), &row); err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		all[row["file_path"].(string)] = row
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSyncParquet(t *testing.T) {
	t.Parallel()
	cloudAgents(t, func(t *testing.T, a *agent, blobs string) {
		if !duckdb.Available {
			a.fails(t, tea.DependencyMissing, "memory.sync_parquet", nil)
			return
		}
		empty := a.do(t, "memory.sync_parquet", nil)
		same(t, "empty", pick(empty, "row_count", "changed"), []any{int64(0), int64(0)})
		store := func(path, content string, metadata map[string]any) {
			a.do(t, "memory.cloud_store", map[string]any{"path": path, "content": content, "metadata": metadata})
		}
		store("users/1/ä'.md", "intro\n## Das Ü\nTODO: x\n", map[string]any{"anchors": []any{"a", "b"}, "embedding": []any{0.5, 1.0}, "project_id": "p"})
		store("b.json", `{"n": 9007199254740993, "t": "x"}`, nil)
		a.do(t, "memory.cloud_store", map[string]any{"path": "bytes.bin", "content_base64": "/wA="})
		store("one.yaml", "pump: 60 # C\nlist: [a, ~]\n", nil)
		store("several.yaml", "a: 1\n---\nb\n", nil)
		store("broken.yaml", "a: [1", nil)
		first := a.do(t, "memory.sync_parquet", nil)
		same(t, "first", pick(first, "row_count", "changed", "table"), []any{int64(6), int64(6), "agent_memory"})
		rows := parquetRows(t, filepath.Join(blobs, first["path"].(string)))
		same(t, "Markdown", pick(rows["users/1/ä'.md"], "file_name", "project_id", "content", "content_type", "anchors", "status", "embedding", "line_count", "content_lower", "first_heading", "has_todo", "has_fixme", "content_parsed"),
			[]any{"ä'.md", "p", "intro\n## Das Ü\nTODO: x\n", "md", []any{"a", "b"}, "active", []any{0.5, 1.0}, 3.0, "intro\n## das ü\ntodo: x\n", "Das Ü", true, false, nil})
		same(t, "bytes", pick(rows["bytes.bin"], "content", "byte_size", "content_type"), []any{nil, 2.0, "bin"})
		if parsed, _ := rows["b.json"]["content_parsed"].(map[string]any); parsed["t"] != "x" {
			t.Errorf("the parsed content: %v", rows["b.json"])
		}
		for name, want := range map[string]any{"one.yaml": map[string]any{"pump": 60.0, "list": []any{"a", nil}}, "several.yaml": []any{map[string]any{"a": 1.0}, "b"}, "broken.yaml": nil} {
			same(t, name, rows[name]["content_parsed"], want)
		}

		again := a.do(t, "memory.sync_parquet", nil)
		same(t, "again", pick(again, "row_count", "changed", "snapshot_id", "path"), []any{int64(6), int64(0), first["snapshot_id"], first["path"]})

		store("b.json", `{}`, nil)
		a.do(t, "memory.manifest_update", map[string]any{"path": "bytes.bin", "status": "archived"})
		second := a.do(t, "memory.sync_parquet", nil)
		same(t, "second", pick(second, "row_count", "changed"), []any{int64(6), int64(2)})
		rows = parquetRows(t, filepath.Join(blobs, second["path"].(string)))
		same(t, "changed", []any{rows["b.json"]["content"], rows["bytes.bin"]["status"], rows["users/1/ä'.md"]["first_heading"]}, []any{"{}", "archived", "Das Ü"})
		snapshots := a.do(t, "catalog.list_snapshots", map[string]any{"table": "agent_memory"})
		same(t, "snapshots", len(snapshots["snapshots"].([]any)), 3)

		// A file that is lost is written again.
		if err := os.Remove(filepath.Join(blobs, second["path"].(string))); err != nil {
			t.Fatal(err)
		}
		third := a.do(t, "memory.sync_parquet", nil)
		same(t, "third", pick(third, "row_count", "changed"), []any{int64(6), int64(6)})
		same(t, "rows", len(parquetRows(t, filepath.Join(blobs, third["path"].(string)))), 6)
		if _, err := os.Stat(filepath.Join(blobs, first["path"].(string))); err == nil {
			t.Error("the file of an old snapshot is left")
		}
		a.fails(t, tea.ValidationError, "memory.sync_parquet", map[string]any{"table": "other"})
	})
}
