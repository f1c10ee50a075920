package memory_test

import (
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

func TestSettingsHaveDefaultsOfParameters(t *testing.T) {
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			a := openAgent(t, teatest.Linked(memory.Bundle()), embedder(), map[string]any{
				"path": t.TempDir(), "engine": engine, "blobs": t.TempDir(), "session_ttl": 86400, "project_id": "p1", "embedding_model": "longer", "max_file_lines": 2, "max_file_tokens": 10,
			})
			t.Cleanup(func() { a.close(t) })
			same(t, "lifetime", a.do(t, "session.create", nil)["ttl"], any(86400.))
			same(t, "no lifetime", a.do(t, "session.create", map[string]any{"ttl": 0})["expires_at"], nil)
			same(t, "model", a.do(t, "memory.embed", map[string]any{"text": "pump"})["model"], any("longer"))
			same(t, "another model", a.do(t, "memory.embed", map[string]any{"text": "pump", "model": "topics"})["model"], any("topics"))

			a.cloud(t, "a.md", "two\nlines\n", nil)
			a.cloud(t, "b.md", "x", map[string]any{"project_id": "own"})
			same(t, "projects", found(a.do(t, "memory.cloud_list", nil), "files", "file_path", "project_id"), []string{"a.md p1", "b.md own"})
			for text, setting := range map[string]string{"1\n2\n3": "max_file_lines", strings.Repeat("many words ", 20): "max_file_tokens"} {
				if message := a.fails(t, tea.ValidationError, "memory.cloud_store", map[string]any{"path": "c.md", "content": text}); !strings.Contains(message, setting) {
					t.Errorf("%q does not name %s", message, setting)
				}
			}
		})
	}
}

func TestDataQueryOfOneTable(t *testing.T) {
	t.Parallel()
	linkedAgents(t, noHost, func(t *testing.T, a *agent) {
		for _, name := range []string{"one", "other"} {
			a.do(t, "data.create_table", map[string]any{"name": name, "schema": map[string]any{"n": "int"}})
			a.do(t, "data.insert", map[string]any{"table": name, "rows": []any{map[string]any{"n": 1}}})
		}
		for _, params := range []map[string]any{{"table": "one"}, {"table": "one", "sql": "SELECT n FROM one"}} {
			same(t, "rows", a.do(t, "data.query", params)["rows"], any([]any{map[string]any{"n": int64(1)}}))
		}
		for _, params := range []map[string]any{{}, {"table": "one", "sql": "SELECT * FROM other"}, {"table": "one", "tables": []any{"one"}, "sql": "SELECT 1"}} {
			a.fails(t, tea.ValidationError, "data.query", params)
		}
	})
}
