package syncsuite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rows returns all rows of a table by their ids.
func (d Device) rows(table string) map[string]any {
	d.t.Helper()
	all := map[string]any{}
	for _, row := range d.Do("data.query", map[string]any{"sql": "SELECT * FROM " + table, "max_rows": 10_000})["rows"].([]any) { //nolint:forcetypeassert // as the schema says
		r := row.(map[string]any) //nolint:forcetypeassert // as the schema says
		all[fmt.Sprint(r["id"])] = row
	}
	return all
}

func sameRows(t *testing.T, table string, first Device, others ...Device) {
	t.Helper()
	want := first.rows(table)
	for i, d := range others {
		if diff := cmp.Diff(want, d.rows(table)); diff != "" {
			t.Errorf("%s at %d (-want +got):\n%.2000s", table, i, diff)
		}
	}
}

// tables synchronises the rows of data.* of each type, and changes and deletes them on
// a device and on the server.
func tables(t *testing.T, r Remote) {
	a, b, shared := r.Device(t, nil), r.Device(t, nil), r.Shared(t, nil)
	unchanged := func(what string) {
		t.Helper()
		for _, d := range []Device{a, b} {
			d.Same(what, d.Do("memory.sync", nil), map[string]any{"bytes": int64(0), "pulled": int64(0), "pushed": int64(0), "conflicts": int64(0), "refused": []any{}, "deleted_locally": int64(0), "deleted_remotely": int64(0)})
		}
	}
	a.Do("data.create_table", map[string]any{"name": "Types", "primary_key": []string{"id", "at"}, "schema": map[string]any{
		"id": "string", "at": "timestamp", "i": "int", "f": "float", "d": "decimal(12,2)", "b": "bool", "day": "date", "j": "json", "n": "string",
	}})
	a.Do("data.insert", map[string]any{"table": "types", "rows": []map[string]any{
		{"id": "a", "at": "2026-03-01T12:00:00.25Z", "i": 9007199254740993, "f": 0.1, "d": "1234567890.12", "b": true, "day": "2026-02-28", "j": map[string]any{"b": []any{1, 2.5, nil}, "a": "ä<&>"}, "n": nil},
		{"id": "b\u00e4'\"\n", "at": "0001-01-01T00:00:00Z", "i": -1, "f": -1e300, "d": 0, "b": false, "day": "9999-12-31", "j": "text"},
		{"id": "", "at": "2026-03-01T12:00:00Z", "f": 0, "j": []any{}},
	}})
	a.Same("the first device", a.Do("memory.sync", nil), map[string]any{"pushed": int64(3), "skipped_tables": []any{}, "refused": []any{}})
	b.Same("the second device", b.Do("memory.sync", nil), map[string]any{"pulled": int64(3), "refused": []any{}})
	unchanged("types")
	sameRows(t, "types", a, b)

	// 600 rows need two pages.
	many := make([]map[string]any, 600)
	for i := range many {
		many[i] = map[string]any{"id": i, "text": fmt.Sprint("row ", i)}
	}
	shared.Do("data.create_table", map[string]any{"name": "many", "primary_key": []string{"id"}, "schema": map[string]any{"id": "int", "text": "string"}})
	shared.Do("data.insert", map[string]any{"table": "many", "rows": many})
	a.Same("many", a.Do("memory.sync", nil), map[string]any{"pulled": int64(600)})
	b.Do("memory.sync", nil)
	set := func(d Device, text string, keys ...int) {
		d.Do("data.update", map[string]any{"table": "many", "keys": keys, "set": map[string]any{"text": text}})
	}
	remove := func(d Device, keys ...int) { d.Do("data.delete", map[string]any{"table": "many", "keys": keys}) }
	set(shared, "server", 1, 2, 3)
	remove(shared, 4, 5)
	set(a, "a", 2, 4, 6, 7)
	remove(a, 3, 8)
	set(b, "b", 9)
	// Rows 2 and 3 were changed on both sides, row 4 was deleted on one.
	a.Same("conflicts", a.Do("memory.sync", map[string]any{"conflicts": "remote"}), map[string]any{
		"conflicts": int64(3), "pulled": int64(3), "pushed": int64(2), "deleted_locally": int64(2), "deleted_remotely": int64(1),
	})
	b.Same("another device", b.Do("memory.sync", nil), map[string]any{"conflicts": int64(0), "pulled": int64(5), "pushed": int64(1), "deleted_locally": int64(3)})
	a.Same("its change", a.Do("memory.sync", nil), map[string]any{"conflicts": int64(0), "pulled": int64(1)})
	sameRows(t, "many", shared, a, b)
	unchanged("many")
	// One row was deleted on both sides; one was deleted and added again.
	remove(a, 10, 11)
	remove(shared, 10)
	a.Do("data.insert", map[string]any{"table": "many", "rows": []map[string]any{{"id": 11, "text": "again"}}})
	a.Same("both", a.Do("memory.sync", nil), map[string]any{"conflicts": int64(0), "pushed": int64(1), "deleted_remotely": int64(0), "deleted_locally": int64(0)})
	b.Do("memory.sync", nil)
	sameRows(t, "many", shared, a, b)
	unchanged("all")
}

// tooLarge synchronises and imports rows and vectors. One is larger than the memory stores: it must be refused, and the
// others stored.
func tooLarge(t *testing.T, r Remote) {
	dir := t.TempDir()
	device, shared := r.Device(t, map[string]any{}), r.Shared(t, map[string]any{"archives": dir})
	from := Open(t, r.Option, map[string]any{"engine": "sqlite", "path": t.TempDir(), "archives": dir})
	text := strings.Repeat("x", r.TooLarge)
	for _, d := range []Device{device, from} {
		d.Do("data.create_table", map[string]any{"name": "texts", "primary_key": []string{"id"}, "schema": map[string]any{"id": "string", "text": "string"}})
		d.Do("data.insert", map[string]any{"table": "texts", "rows": []map[string]any{{"id": "a", "text": "1"}, {"id": "huge", "text": text}, {"id": "z", "text": "3"}}})
		d.Do("vector.store", map[string]any{"ids": []string{"a", "huge", "z"}, "texts": []string{"1", text, "3"}, "embeddings": [][]float64{{1, 0}, {0, 1}, {1, 1}}})
	}
	refused := func(what string, result map[string]any) {
		t.Helper()
		all := fmt.Sprint(result["refused"])
		if n := len(result["refused"].([]any)); n != 2 || strings.Count(all, "huge") < 2 || strings.Count(all, "larger than the store accepts") != 2 { //nolint:forcetypeassert // as the schema says
			t.Errorf("%s refuses %d: %.2000s", what, n, all)
		}
		if diff := cmp.Diff(map[string]any{"a": "1", "z": "3"}, shared.texts()); diff != "" {
			t.Errorf("%s (-want +got):\n%.2000s", what, diff)
		}
		if n := len(shared.Do("vector.query", map[string]any{"embedding": []float64{1, 0}})["results"].([]any)); n != 2 { //nolint:forcetypeassert // as the schema says
			t.Errorf("%s stores %d vectors", what, n)
		}
	}
	synced := device.Do("memory.sync", nil)
	refused("memory.sync", synced)
	device.Same("memory.sync", synced, map[string]any{"pushed": int64(4)})
	device.Same("again", device.Do("memory.sync", nil), map[string]any{"pushed": int64(0), "deleted_locally": int64(0), "deleted_remotely": int64(0)})
	shared.Do("memory.reset", map[string]any{"confirm": true})
	from.Do("memory.export", map[string]any{"path": "a.teamem"})
	refused("memory.import", shared.Do("memory.import", map[string]any{"path": "a.teamem"}))
}

func (d Device) texts() map[string]any {
	all := map[string]any{}
	for id, row := range d.rows("texts") {
		all[id] = row.(map[string]any)["text"] //nolint:forcetypeassert // as the schema says
	}
	return all
}
