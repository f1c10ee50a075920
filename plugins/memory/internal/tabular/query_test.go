package tabular

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func (d *device) ask(t *testing.T, query string, args ...any) store.TableAnswer {
	t.Helper()
	a, err := d.Query(t.Context(), store.TableQuery{SQL: query, Args: args, MaxRows: 1000, MaxBytes: 1 << 20, Timeout: time.Minute})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return a
}

func TestQueryGivesValuesAsTheyWereInserted(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.make(t, "v", `{"id": "int", "s": "string", "f": "float", "b": "bool", "ts": "timestamp", "day": "date", "j": "json"}`, "id")
		row := `{"id": 9007199254740993, "s": "世界 '\"", "f": 2.0, "b": true, "ts": "2026-03-01T12:00:00.25Z", "day": "2024-02-29", "j": {"big": 12345678901234567890123, "list": [1, 2.0, null]}}`
		for _, when := range []string{"rows", "files", "consolidated"} {
			switch when {
			case "rows":
				d.insert(t, "v", "["+row+"]", store.RowFail)
			case "files":
				d.insert(t, "v", "["+row+", "+strings.Replace(row, "993", "994", 1)+`, {"id": 3, "s": "`+strings.Repeat("x", 2000)+`", "j": "text"}]`, store.RowReplace)
			case "consolidated":
				if _, err := d.Consolidate(t.Context(), "v"); err != nil {
					t.Fatal(err)
				}
			}
			decoded, err := value.Decode([]byte(row))
			if err != nil {
				t.Fatal(err)
			}
			a := d.ask(t, "SELECT * FROM v WHERE id = ?", int64(9007199254740993))
			want(t, when, a.Rows, []map[string]any{decoded.(map[string]any)})
			want(t, "columns", a.Columns, []string{"id", "s", "f", "b", "ts", "day", "j"})
		}
		a := d.ask(t, "SELECT j, b, ts FROM v WHERE id = 3")
		want(t, "null and text", a.Rows, []map[string]any{{"j": "text", "b": nil, "ts": nil}})
		want(t, "joined", d.ask(t, `WITH w AS (SELECT id FROM V) SELECT count(*) AS n FROM w JOIN "v" USING (id)`).Rows, []map[string]any{{"n": int64(3)}})
	})
}

func TestInstantsCompareInEveryForm(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.make(t, "seen", `{"id": "int", "ts": "timestamp", "note": "string"}`, "id")
		d.insert(t, "seen", `[{"id": 1, "ts": "2026-03-01T06:29:59.9Z"}, {"id": 2, "ts": "2026-03-01T06:30:00Z", "note": "2026-03-01T06:30:00Z"},
			{"id": 3, "ts": "2026-03-01T06:30:00.25Z"}, {"id": 4, "ts": "2026-03-02T00:00:00Z"}]`, store.RowFail)
		for _, test := range []struct {
			where string
			args  []any
			want  []int64
		}{
			{"ts >= ?", []any{"2026-03-01T06:30:00Z"}, []int64{2, 3, 4}},
			{"ts = ?", []any{"2026-03-01T06:30:00Z"}, []int64{2}},
			{"ts = ?", []any{"2026-03-01 06:30:00.250"}, []int64{3}},
			{"? > ts", []any{"2026-03-01T06:30:00.25Z"}, []int64{1, 2}},
			{"ts IN (?, ?)", []any{"2026-03-02", "2026-03-01T06:30:00Z"}, []int64{2, 4}},
			{"ts BETWEEN '2026-03-01T06:30:00Z' AND '2026-03-01T06:30:00.3Z'", nil, []int64{2, 3}},
			{"ts = (SELECT max(ts) FROM seen WHERE ts < '2026-03-02')", nil, []int64{3}},
			{"note = ?", []any{"2026-03-01T06:30:00Z"}, []int64{2}},
			{"note = ?", []any{"2026-03-01T06:30:00.0Z"}, nil},
		} {
			var got []int64
			for _, row := range d.ask(t, "SELECT id FROM seen WHERE "+test.where+" ORDER BY ts", test.args...).Rows {
				got = append(got, row["id"].(int64))
			}
			want(t, test.where, got, test.want)
		}
	})
}

func TestQueryReadsTheTablesAlone(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.make(t, "a", `{"id": "int"}`, "id")
		d.make(t, "b", `{"id": "int"}`, "id")
		d.insert(t, "a", `[{"id": 1}, {"id": 2}]`, store.RowFail)
		for query, kind := range map[string]tea.ErrorType{
			"SELECT * FROM tea_rows_a":                      tea.PermissionDenied,
			"SELECT * FROM tea_live_a":                      tea.PermissionDenied,
			"SELECT * FROM documents":                       tea.PermissionDenied,
			"SELECT * FROM b":                               tea.PermissionDenied,
			"DELETE FROM a":                                 tea.PermissionDenied,
			"SELECT * FROM read_parquet('/tmp/x')":          tea.PermissionDenied,
			"SELECT _tea_seq FROM a":                        tea.ValidationError,
			"SELEC 1":                                       tea.ValidationError,
			"SELECT 1; SELECT 2":                            tea.PermissionDenied,
			"WITH tea_rows_b AS (SELECT 1) SELECT * FROM b": tea.PermissionDenied,
		} {
			_, err := d.Query(t.Context(), store.TableQuery{SQL: query, Tables: []string{"a"}, MaxRows: 10, MaxBytes: 1000, Timeout: time.Minute})
			if err == nil {
				t.Errorf("%s: no error", query)
			} else if got := tea.AsError(err).Type; got != kind && got != tea.ValidationError && got != tea.PermissionDenied {
				t.Errorf("%s: %v", query, err)
			}
		}
		_, err := d.Query(t.Context(), store.TableQuery{SQL: "SELECT 1", Tables: []string{"aa"}})
		fails(t, "no such table", err, tea.NotFound, "aa")
		a, err := d.Query(t.Context(), store.TableQuery{SQL: "SELECT * FROM a ORDER BY id", MaxRows: 1})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "truncated", a, store.TableAnswer{Columns: []string{"id"}, Rows: []map[string]any{{"id": int64(1)}}, Truncated: true})
	})
}

func TestAReaderKeepsItsFiles(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.make(t, "sensors", sensors, "id")
		d.insert(t, "sensors", many(0, 300), store.RowFail)
		d.insert(t, "sensors", many(300, 300), store.RowFail)
		before := d.files(t)
		end := d.readers.begin()
		if _, err := d.Consolidate(t.Context(), "sensors"); err != nil {
			t.Fatal(err)
		}
		later := d.readers.begin()
		if _, err := d.Update(t.Context(), "sensors", store.RowSelection{All: true}, store.TableRow{"value": json.RawMessage("1")}, store.TableCall{}); err != nil {
			t.Fatal(err)
		}
		if before > 0 {
			want(t, "files while somebody reads", d.files(t), before+2)
		}
		end()
		if before > 0 {
			want(t, "files at its end", d.files(t), 2)
		}
		later()
		want(t, "rows", d.ask(t, "SELECT count(*) AS n, max(value) AS v FROM sensors").Rows, []map[string]any{{"n": int64(600), "v": 1.0}})
	})
}
