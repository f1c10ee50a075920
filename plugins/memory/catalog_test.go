package memory_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

// without takes fields out of results that are known by the time only.
func without(result any, fields ...string) any {
	switch r := result.(type) {
	case map[string]any:
		for _, f := range fields {
			delete(r, f)
		}
		for _, v := range r {
			without(v, fields...)
		}
	case []any:
		for _, v := range r {
			without(v, fields...)
		}
	}
	return result
}

func TestCatalog(t *testing.T) {
	dataAgents(t, func(t *testing.T, a *agent, _ string) {
		do := func(action string, params map[string]any) any {
			t.Helper()
			return without(a.do(t, "catalog."+action, params), "created_at", "updated_at", "tracked_at")
		}
		readings := map[string]any{
			"table": "plant.readings", "description": "", "format": "csv", "location": "/data", "schema": []any{"ts", "value"}, "primary_key": []any{"ts"}, "partition_by": []any{"day"},
			"metadata": map[string]any{"owner": "ann"}, "managed": false,
		}
		given := map[string]any{
			"name": "plant.readings", "format": "csv", "location": "/data", "schema": []any{"ts", "value"}, "primary_key": "ts", "partition_by": "day", "metadata": map[string]any{"owner": "ann"},
		}
		with := func(m map[string]any, key string, value any) map[string]any {
			all := map[string]any{key: value}
			for k, v := range m {
				all[k] = v
			}
			return all
		}
		same(t, "register", do("register_table", given), any(with(readings, "created", true)))
		same(t, "register again", do("register_table", given), any(with(readings, "created", false)))
		same(t, "get", do("get_table", map[string]any{"table": "plant.readings"}), any(readings))
		do("register_table", map[string]any{"name": "plant.alarms"})
		do("register_table", map[string]any{"name": "other"})
		page := do("list_tables", map[string]any{"prefix": "plant.", "limit": 1}).(map[string]any)
		same(t, "page", []any{page["count"], page["total"], page["next_cursor"]}, []any{int64(1), int64(2), "plant.alarms"})
		same(t, "next page", do("list_tables", map[string]any{"prefix": "plant.", "limit": 1, "cursor": "plant.alarms"}),
			any(map[string]any{"tables": []any{readings}, "count": int64(1), "total": int64(2), "next_cursor": ""}))

		table := map[string]any{"table": "plant.readings"}
		same(t, "track", do("track_file", with(with(table, "path", "a.csv"), "content_hash", "1")), any(map[string]any{
			"table": "plant.readings", "files": []any{map[string]any{"path": "a.csv", "status": "added"}}, "count": int64(1), "added": int64(1), "changed": int64(0), "unchanged": int64(0),
		}))
		files := []any{
			map[string]any{"path": "a.csv", "content_hash": "1"}, map[string]any{"path": "b.csv", "size": 5, "row_count": 2, "format": "csv", "partition": map[string]any{"day": "x"}},
		}
		tracked := do("track_file", with(table, "files", files)).(map[string]any)
		same(t, "track files", []any{tracked["added"], tracked["unchanged"]}, []any{int64(1), int64(1)})
		b := map[string]any{
			"table": "plant.readings", "path": "b.csv", "content_hash": "", "size": int64(5), "row_count": int64(2), "format": "csv", "schema": nil,
			"partition": map[string]any{"day": "x"}, "metadata": nil,
		}
		same(t, "get file", do("get_file", with(table, "path", "b.csv")), any(b))
		same(t, "list files", do("list_files", with(table, "partition", map[string]any{"day": "x"})),
			any(map[string]any{"table": "plant.readings", "files": []any{b}, "count": int64(1), "total": int64(1), "next_cursor": ""}))

		do("track_file", with(with(table, "path", "c.csv"), "partition", map[string]any{"year": 2026, "part": 1.5}))
		for _, partition := range []map[string]any{{"year": 2026}, {"year": 2026, "part": 1.5}} {
			same(t, "by numbers", do("list_files", with(table, "partition", partition)).(map[string]any)["count"], any(int64(1)))
		}
		do("untrack_file", with(table, "path", "c.csv"))

		first := map[string]any{
			"snapshot_id": "plant.readings@000001", "table": "plant.readings", "number": int64(1), "parent_id": "", "description": "first", "file_count": int64(2), "size": int64(5),
			"row_count": int64(2), "metadata": nil,
		}
		then := []any{
			map[string]any{"path": "a.csv", "content_hash": "1", "size": int64(0), "row_count": int64(0)}, map[string]any{"path": "b.csv", "content_hash": "", "size": int64(5), "row_count": int64(2)},
		}
		same(t, "snapshot", do("create_snapshot", with(table, "description", "first")), any(with(first, "files", then)))
		same(t, "latest", do("get_latest_snapshot", table), any(with(first, "files", then)))
		do("create_snapshot", table)
		listed := do("list_snapshots", with(table, "limit", 1)).(map[string]any)
		same(t, "snapshots", []any{listed["count"], listed["total"], listed["next_cursor"]}, []any{int64(1), int64(2), "plant.readings@000002"})
		same(t, "first snapshot", do("list_snapshots", with(table, "cursor", "plant.readings@000002")),
			any(map[string]any{"table": "plant.readings", "snapshots": []any{first}, "count": int64(1), "total": int64(2), "next_cursor": ""}))

		do("track_file", with(with(table, "path", "a.csv"), "content_hash", "2"))
		same(t, "untrack", do("untrack_file", with(table, "path", "b.csv")), any(map[string]any{"removed": true, "table": "plant.readings", "path": "b.csv"}))
		a2 := map[string]any{"path": "a.csv", "content_hash": "2", "size": int64(0), "row_count": int64(0)}
		same(t, "changed files", do("get_changed_files", table), any(map[string]any{
			"table": "plant.readings", "since": "plant.readings@000002", "until": "", "added": []any{}, "changed": []any{a2}, "removed": then[1:], "unchanged_count": int64(0), "has_changes": true,
		}))
		same(t, "found files", do("get_changed_files", with(table, "files", []any{map[string]any{"path": "a.csv", "content_hash": "2"}})).(map[string]any)["has_changes"], false)
	})
}

func TestCatalogSaysWhatIsWrong(t *testing.T) {
	dataAgents(t, func(t *testing.T, a *agent, _ string) {
		a.do(t, "catalog.register_table", map[string]any{"name": "readings"})
		for _, c := range []struct {
			action string
			params map[string]any
			kind   tea.ErrorType
		}{
			{"register_table", map[string]any{"name": "a b"}, tea.ValidationError},
			{"register_table", map[string]any{"name": "a", "metadata": []any{}}, tea.ValidationError},
			{"get_table", map[string]any{"table": "reading"}, tea.NotFound},
			{"list_tables", map[string]any{"limit": 0}, tea.ValidationError},
			{"track_file", map[string]any{"table": "readings"}, tea.ValidationError},
			{"track_file", map[string]any{"table": "readings", "path": "a", "files": []any{}}, tea.ValidationError},
			{"track_file", map[string]any{"table": "readings", "files": []any{map[string]any{"size": 1}}}, tea.ValidationError},
			{"track_file", map[string]any{"table": "none", "path": "a"}, tea.NotFound},
			{"get_file", map[string]any{"table": "readings", "path": "a"}, tea.NotFound},
			{"list_files", map[string]any{"table": "none"}, tea.NotFound},
			{"get_latest_snapshot", map[string]any{"table": "readings"}, tea.NotFound},
			{"list_snapshots", map[string]any{"table": "readings", "cursor": "x"}, tea.ValidationError},
			{"create_snapshot", map[string]any{"table": "readings", "paths": []any{"a"}}, tea.NotFound},
			{"get_changed_files", map[string]any{"table": "readings", "since": "readings@000007"}, tea.NotFound},
		} {
			a.fails(t, c.kind, "catalog."+c.action, c.params)
		}
	})
}

// TestADamagedRowOfTheCatalogDoesNotHideOthers changes rows behind the memory's back.
func TestADamagedRowOfTheCatalogDoesNotHideOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := map[string]any{"path": dir, "engine": "sqlite"}
	o := mustOpen(t, settings)
	for _, name := range []string{"b", "a"} {
		o.must("catalog.register_table", map[string]any{"name": name})
		o.must("catalog.track_file", map[string]any{"table": "b", "path": name + ".csv"})
	}
	o.close()
	db, err := sql.Open("sqlite", filepath.Join(dir, "memory.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE documents SET body = replace(body, '{', 'X') WHERE id IN ('a', 'b/a.csv')`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	o = mustOpen(t, settings)
	defer o.close()
	seen := func(list any, name string) (all []string) {
		for _, item := range list.([]any) {
			item := item.(map[string]any)
			all = append(all, fmt.Sprint(item[name], item["damaged"]))
		}
		return all
	}
	same(t, "tables", seen(o.must("catalog.list_tables", nil)["tables"], "table"), []string{"atrue", "b<nil>"})
	same(t, "files", seen(o.must("catalog.list_files", map[string]any{"table": "b"})["files"], "path"), []string{"a.csvtrue", "b.csv<nil>"})
	for action, params := range map[string]map[string]any{"catalog.get_table": {"table": "a"}, "catalog.get_file": {"table": "b", "path": "a.csv"}} {
		if _, err := o.call(action, params); typeOf(err) != tea.InternalError || !contains(err, "damaged") {
			t.Errorf("%s: %v", action, err)
		}
	}
}
