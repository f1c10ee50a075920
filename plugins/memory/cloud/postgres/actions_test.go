package postgres

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"

	"github.com/the-edge-agent/tea/plugins/memory"
)

// device is a memory in PostgreSQL, as one of several devices has it.
type device struct {
	t        *testing.T
	instance teatest.Instance
}

func newDevice(t *testing.T) device {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"url": server.URL(t), "path": t.TempDir(), "archives": t.TempDir(), "options": map[string]any{"schema": server.Schema(t)}})
	if err != nil {
		t.Fatal(err)
	}
	instance, err := teatest.Linked(memory.Bundle(Option())).Open(t.Context(), tea.Settings{"memory": raw, "ltm_backend": json.RawMessage(`"postgres"`)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := instance.Close(); err != nil {
			t.Error(err)
		}
	})
	return device{t, instance}
}

func (d device) call(action string, params map[string]any) (map[string]any, error) {
	d.t.Helper()
	resp, err := d.instance.Invoke(d.t.Context(), &tea.Request{Action: action, Params: tea.ValuePayload(params), Call: tea.Call{Attempt: 1}, Host: &teatest.Host{}})
	if err != nil {
		return nil, err
	}
	v, err := resp.Result.Value()
	if err != nil {
		return nil, err
	}
	return v.(map[string]any), nil
}

func (d device) do(action string, params map[string]any) map[string]any {
	d.t.Helper()
	result, err := d.call(action, params)
	if err != nil {
		d.t.Fatalf("%s: %v", action, err)
	}
	return result
}

// TestDevicesShareAMemory stores with every family of actions on one device and
// reads on another one.
func TestDevicesShareAMemory(t *testing.T) {
	t.Parallel()
	one, other := newDevice(t), newDevice(t)
	one.do("ltm.store", map[string]any{"key": "harbor/1", "value": "Die Lichter im Hafen", "metadata": map[string]any{"n": 1}})
	same(t, "value", other.do("ltm.retrieve", map[string]any{"key": "harbor/1"})["value"], any("Die Lichter im Hafen"))
	same(t, "found", other.do("ltm.search", map[string]any{"query": "hafen", "metadata_filter": map[string]any{"n": 1}})["count"], any(int64(1)))
	one.do("vector.store", map[string]any{"ids": []any{"v"}, "texts": []any{"near"}, "embeddings": []any{[]any{1.0, 0.0}}})
	same(t, "near", other.do("vector.query", map[string]any{"embedding": []any{1.0, 0.1}})["count"], any(int64(1)))
	one.do("vector.store", map[string]any{"ids": []any{"w"}, "texts": []any{"later"}, "embeddings": []any{[]any{0.0, 1.0}}})
	same(t, "what was stored since", other.do("vector.query", map[string]any{"embedding": []any{0.0, 1.0}, "k": 1})["count"], any(int64(1)))

	session := one.do("session.create", map[string]any{"user_id": "ann"})["session_id"]
	one.do("memory.file_store", map[string]any{"path": "notes.md", "session_id": session, "content": "# Lights\nThe lighthouse is on."})
	read := other.do("memory.file_retrieve", map[string]any{"path": "notes.md", "session_id": session})
	same(t, "content", strings.Contains(read["content"].(string), "lighthouse"), true)
	context := other.do("context.assemble", map[string]any{"query": "lighthouse", "user_id": "ann"})["context"].(string)
	same(t, "context", strings.Contains(context, "lighthouse"), true)
	one.do("session.end", map[string]any{"session_id": session})
	same(t, "status", other.do("session.get", map[string]any{"session_id": session})["status"], any("archived"))

	one.do("catalog.register_table", map[string]any{"name": "sensors"})
	same(t, "tables", other.do("catalog.list_tables", map[string]any{})["count"], any(int64(1)))
	inspected := other.do("memory.inspect", map[string]any{})
	same(t, "entries", inspected["entries"].(map[string]any)["vectors"], any(int64(2)))
	other.do("memory.reset", map[string]any{"confirm": true})
	same(t, "after a reset", one.do("ltm.list", map[string]any{})["count"], any(int64(0)))
}

// TestTablesOfDevices changes tables on one device and reads them on another one,
// also from an archive.
func TestTablesOfDevices(t *testing.T) {
	t.Parallel()
	one, other := newDevice(t), newDevice(t)
	schema := []any{map[string]any{"name": "id", "type": "int"}, map[string]any{"name": "price", "type": "decimal(10,2)"}, map[string]any{"name": "at", "type": "timestamp"}}
	one.do("data.create_table", map[string]any{"name": "Orders", "schema": schema, "primary_key": "id"})
	inserted := other.do("data.insert", map[string]any{"table": "orders", "rows": []any{map[string]any{"id": 1, "price": 1.1}, map[string]any{"id": 2, "at": "2026-03-01T12:00:00Z"}}})
	same(t, "inserted", []any{inserted["inserted"], inserted["stored"], inserted["version"]}, []any{int64(2), "rows", int64(2)})
	const all = "SELECT * FROM orders ORDER BY id"
	rows := []any{map[string]any{"id": int64(1), "price": 1.1, "at": nil}, map[string]any{"id": int64(2), "price": nil, "at": "2026-03-01T12:00:00Z"}}
	same(t, "rows", one.do("data.query", map[string]any{"sql": all})["rows"], any(rows))
	same(t, "the same table in quotes", one.do("data.query", map[string]any{"sql": `SELECT count(*) AS n FROM "Orders"`})["rows"], any([]any{map[string]any{"n": int64(2)}}))
	same(t, "in the catalog", one.do("memory.sql_query", map[string]any{"sql": "SELECT name FROM catalog_tables"})["rows"], any([]any{map[string]any{"name": "Orders"}}))
	for _, sql := range []string{"SELECT * FROM memories", "SELECT * FROM tea_rows", "SELECT * FROM " + server.Schema(t) + ".tea_rows"} {
		_, err := one.call("data.query", map[string]any{"sql": sql})
		if e := tea.AsError(err); e == nil || e.Type != tea.ValidationError {
			t.Errorf("%s: %v", sql, err)
		}
	}
	context := other.do("context.assemble", map[string]any{"config": map[string]any{"tabular": []any{map[string]any{"table": "orders"}}}})["context"]
	same(t, "context", strings.Contains(context.(string), "1.1"), true)
	same(t, "exported", one.do("memory.export", map[string]any{"path": "all"})["rows"], any(map[string]any{"Orders": int64(2)}))
	one.do("memory.reset", map[string]any{"confirm": true})
	_, err := other.call("data.query", map[string]any{"sql": all, "tables": []any{"orders"}})
	same(t, "after a reset", tea.AsError(err).Type, tea.NotFound)
	one.do("memory.restore", map[string]any{"path": "all"})
	same(t, "restored", other.do("data.query", map[string]any{"sql": all})["rows"], any(rows))
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Files in a shared storage are searched and archived on each device.
func TestDevicesSearchTheSharedStorage(t *testing.T) {
	t.Parallel()
	blobs := t.TempDir()
	open := func() device {
		raw, err := json.Marshal(map[string]any{"url": server.URL(t), "path": t.TempDir(), "blobs": blobs, "options": map[string]any{"schema": server.Schema(t)}})
		if err != nil {
			t.Fatal(err)
		}
		instance, err := teatest.Linked(memory.Bundle(Option())).Open(t.Context(), tea.Settings{"memory": raw, "ltm_backend": json.RawMessage(`"postgres"`)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := instance.Close(); err != nil {
				t.Error(err)
			}
		})
		return device{t, instance}
	}
	one, other := open(), open()
	one.do("session.create", map[string]any{"session_id": "s"})
	one.do("memory.cloud_store", map[string]any{"path": "notes/a.yaml", "content": "pump: {site: north}\n", "metadata": map[string]any{"anchors": []any{"x"}}})
	one.do("memory.cloud_store", map[string]any{"path": "sessions/s/b.md", "content": "The pump"})
	count := func(action string, params map[string]any) any {
		t.Helper()
		return other.do(action, params)["count"]
	}
	same(t, "grep", count("memory.grep", map[string]any{"pattern": "pump"}), any(int64(2)))
	same(t, "search_content", count("memory.search_content", map[string]any{"fields": map[string]any{"$.pump.site": "north"}}), any(int64(1)))
	same(t, "context", len(other.do("context.assemble", map[string]any{"query": "pump", "config": map[string]any{"threshold": 0}})["sources"].([]any)), 2)
	same(t, "sql", other.do("memory.sql_query", map[string]any{"sql": "SELECT file_path, line_count, anchors FROM agent_memory WHERE content_type = 'yaml'"})["rows"],
		any([]any{map[string]any{"file_path": "notes/a.yaml", "line_count": int64(1), "anchors": []any{"x"}}}))
	other.do("session.end", map[string]any{"session_id": "s"})
	same(t, "after the end", count("memory.grep", map[string]any{"pattern": "pump"}), any(int64(1)))
	same(t, "archived", one.do("memory.cloud_retrieve", map[string]any{"path": "sessions/s/b.md"})["content"], any("The pump"))
	same(t, "context after the end", len(one.do("context.assemble", map[string]any{"query": "pump", "config": map[string]any{"threshold": 0}})["sources"].([]any)), 1)
}
