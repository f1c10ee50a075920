package firestore_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/cloud/firestore"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// device returns a function that calls the actions of a device.
func device(t *testing.T, settings map[string]any) func(action string, params map[string]any) (map[string]any, error) {
	t.Helper()
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := teatest.Linked(memory.Bundle(firestore.Option())).Open(t.Context(), tea.Settings{"memory": raw})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := instance.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(action string, params map[string]any) (map[string]any, error) {
		raw, err := json.Marshal(params)
		if err != nil {
			return nil, err
		}
		answer, err := instance.Invoke(t.Context(), &tea.Request{Action: action, Params: tea.RawPayload(raw), Call: tea.Call{Attempt: 1}, Host: &teatest.Host{}})
		if err != nil {
			return nil, err
		}
		result, err := answer.Result.Value()
		object, _ := result.(map[string]any)
		return object, err
	}
}

// What one device stores, another one finds, by all actions.
func TestDevicesShareAMemory(t *testing.T) {
	t.Parallel()
	server := firestore.StartServer(t)
	t.Cleanup(server.Stop)
	url, blobs := server.Create(), t.TempDir()
	settings := func() map[string]any {
		return map[string]any{
			"engine": "firestore", "url": url, "path": t.TempDir(), "blobs": blobs,
			"options": map[string]any{"endpoint": "http://" + server.Address, "prefix": "fleet-"},
		}
	}
	one, other := device(t, settings()), device(t, settings())
	for _, c := range []struct {
		action string
		params map[string]any
		field  string
		want   any
	}{
		{"ltm.store", map[string]any{"key": "a/b", "value": map[string]any{"n": 1}, "metadata": map[string]any{"kind": "x"}}, "created", true},
		{"ltm.retrieve", map[string]any{"key": "a/b"}, "found", true},
		{"ltm.list", map[string]any{"prefix": "a/"}, "count", int64(1)},
		{"ltm.search", map[string]any{"metadata_filter": map[string]any{"kind": "x"}}, "count", int64(1)},
		{"vector.store", map[string]any{"ids": []any{"v"}, "embeddings": []any{[]any{1.0, 0.0}}}, "stored", int64(1)},
		{"vector.query", map[string]any{"embedding": []any{1.0, 0.1}}, "count", int64(1)},
		{"session.create", map[string]any{"session_id": "s1", "user_id": "ann"}, "status", "active"},
		{"session.get", map[string]any{"session_id": "s1"}, "status", "active"},
		{"session.end", map[string]any{"session_id": "s1"}, "status", "archived"},
		{"catalog.register_table", map[string]any{"name": "readings"}, "success", true},
		{"catalog.list_tables", nil, "count", int64(1)},
		{"data.create_table", map[string]any{"name": "Sensors", "schema": map[string]any{"id": "int", "value": "float"}, "primary_key": []any{"id"}}, "created", true},
		{"data.insert", map[string]any{"table": "sensors", "rows": []any{map[string]any{"id": 1, "value": 0.5}, map[string]any{"id": 2}}}, "inserted", int64(2)},
		{"data.query", map[string]any{"sql": "SELECT id FROM Sensors WHERE value > ?", "args": []any{0.1}}, "row_count", int64(1)},
		{"data.delete", map[string]any{"table": "sensors", "where": map[string]any{"value": nil}}, "affected", int64(1)},
		{"data.query", map[string]any{"sql": "SELECT * FROM sensors"}, "row_count", int64(1)},
		{"data.consolidate", map[string]any{"table": "sensors"}, "rows", int64(1)},
		{"memory.cloud_store", map[string]any{"path": "notes/a.md", "content": "# A", "metadata": map[string]any{"anchors": []any{"x"}}}, "file_path", "notes/a.md"},
		{"memory.cloud_retrieve", map[string]any{"path": "notes/a.md"}, "content", "# A"},
		{"memory.manifest_search", map[string]any{"anchors": []any{"x"}}, "count", int64(1)},
		{"memory.grep", map[string]any{"pattern": "# A"}, "count", int64(1)},
		{"memory.file_store", map[string]any{"path": "b.md", "content": "# Harbor"}, "success", true},
		{"memory.file_retrieve", map[string]any{"path": "b.md"}, "content", "# Harbor"},
		{"context.assemble", map[string]any{"query": "harbor"}, "context", "## app: b.md\n\n# Harbor"},
		{"memory.inspect", nil, "state", "ok"},
		{"memory.reset", map[string]any{"confirm": true}, "success", true},
		{"ltm.list", nil, "count", int64(0)},
	} {
		got, err := one(c.action, c.params)
		if err != nil || got[c.field] != c.want {
			t.Errorf("%s: %v, %v; want %s %v", c.action, got, err, c.field, c.want)
		}
		one, other = other, one // the next call is that of the other device
	}
	for action, params := range map[string]map[string]any{
		"ltm.search":       {"query": "harbor"},
		"memory.sql_query": {"sql": "SELECT 1"},
	} {
		_, err := one(action, params)
		if e := tea.AsError(err); e == nil || e.Type != tea.DependencyMissing || !strings.Contains(e.Message, "firestore") {
			t.Errorf("%s: %v, want a dependency_missing that names the engine", action, err)
		}
	}
}
