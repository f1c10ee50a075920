package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// TableStore runs the suite of [store.TableStore]. The first call of open in a
// test returns the tables of an empty memory; each later call reopens the same
// tables.
func TableStore(t *testing.T, open func(t *testing.T) store.TableStore) {
	t.Helper()
	start := func(t *testing.T) *tables {
		t.Helper()
		return &tables{open(t), open}
	}
	run(t, start, map[string]func(t *testing.T, s *tables){
		"insert, update, delete": tableChanges,
		"values":                 tableValues,
		"wrong values":           tableWrongValues,
		"wrong selections":       tableWrongSelections,
		"definitions":            tableDefinitions,
		"names":                  tableNames,
		"without a key":          tableWithoutKey,
		"decimals":               tableDecimals,
		"repeated calls":         tableRepeatedCalls,
		"queries":                tableQueries,
		"all or none":            tableAllOrNone,
		"many rows":              tableManyRows,
		"concurrent":             tableConcurrent,
		"all rows":               tableAllRows,
	})
}

// tables is a store with its tests' calls.
type tables struct {
	store.TableStore
	open func(t *testing.T) store.TableStore
}

const sensorColumns = `[{"name": "id", "type": "int"}, {"name": "site", "type": "string"}, {"name": "value", "type": "float"}]`

func (s *tables) create(t *testing.T, name, schema string, key ...string) {
	t.Helper()
	if created, err := s.Create(t.Context(), store.NewTable{Name: name, Schema: json.RawMessage(schema), PrimaryKey: key}); err != nil || !created {
		t.Fatalf("create %s: %v, %v", name, created, err)
	}
}

func rowsOf(t *testing.T, text string) (rows []store.TableRow) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

func (s *tables) insert(t *testing.T, table, rows string, conflict store.RowConflict) store.TableResult {
	t.Helper()
	r, err := s.Insert(t.Context(), table, rowsOf(t, rows), conflict, store.TableCall{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (s *tables) ask(t *testing.T, query string, args ...any) []map[string]any {
	t.Helper()
	a, err := s.Query(t.Context(), store.TableQuery{SQL: query, Args: args, MaxRows: 10_000, Timeout: time.Minute})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return a.Rows
}

func jsons(t *testing.T, rows ...string) []map[string]any {
	t.Helper()
	all := make([]map[string]any, len(rows))
	for i, row := range rows {
		v, err := value.Decode([]byte(row))
		if err != nil {
			t.Fatal(err)
		}
		all[i], _ = v.(map[string]any)
	}
	return all
}

func refusedAs(t *testing.T, what string, err error, kind tea.ErrorType, text string) {
	t.Helper()
	if e := tea.AsError(err); e == nil || e.Type != kind || !strings.Contains(e.Message, text) {
		t.Errorf("%s: %v; want a %s with %q", what, err, kind, text)
	}
}

func raws(texts ...string) []json.RawMessage {
	all := make([]json.RawMessage, len(texts))
	for i, text := range texts {
		all[i] = json.RawMessage(text)
	}
	return all
}

func tableChanges(t *testing.T, s *tables) {
	s.create(t, "sensors", sensorColumns, "id")
	want(t, "insert", s.insert(t, "sensors", `[{"id": 1, "site": "a", "value": 1}, {"id": 2, "site": "b"}, {"id": 3, "site": "a"}]`, store.RowFail).Inserted, int64(3))
	_, err := s.Insert(t.Context(), "sensors", rowsOf(t, `[{"id": 4}, {"id": 2}]`), store.RowFail, store.TableCall{})
	refusedAs(t, "a key that exists", err, tea.ValidationError, "already has a row with the key [2]")
	want(t, "ignored", s.insert(t, "sensors", `[{"id": 4}, {"id": 2}]`, store.RowIgnore).Ignored, int64(1))
	r := s.insert(t, "sensors", `[{"id": 2, "site": "c"}, {"id": 5, "site": "a"}]`, store.RowReplace)
	want(t, "replaced", []int64{r.Inserted, r.Updated}, []int64{1, 1})
	r, err = s.Update(t.Context(), "SENSORS", store.RowSelection{Where: store.TableRow{"site": json.RawMessage(`["a", null]`)}}, store.TableRow{"value": json.RawMessage("7.25")}, store.TableCall{})
	want(t, "update", []any{r.Updated, err}, []any{int64(4), error(nil)})
	version := r.Version
	r, err = s.UpdateRows(t.Context(), "sensors", rowsOf(t, `[{"id": 1, "value": null}, {"id": 77, "value": 1}]`), store.TableCall{})
	want(t, "update rows", []any{r.Updated, r.Missing, err, r.Version > version}, []any{int64(1), int64(1), error(nil), true})
	r, err = s.Delete(t.Context(), "sensors", store.RowSelection{Keys: raws("3", `{"id": 4}`, "[99]")}, store.TableCall{})
	want(t, "delete", []any{r.Deleted, r.Missing, err}, []any{int64(2), int64(1), error(nil)})
	left := jsons(t, `{"id": 1, "site": "a", "value": null}`, `{"id": 2, "site": "c", "value": null}`, `{"id": 5, "site": "a", "value": 7.25}`)
	want(t, "rows", s.ask(t, "SELECT * FROM sensors ORDER BY id"), left)
	s.TableStore = s.open(t)
	want(t, "rows after it was opened again", s.ask(t, "SELECT * FROM Sensors ORDER BY id"), left)
	c, err := s.Consolidate(t.Context(), "sensors")
	want(t, "consolidate", []any{c.Rows, c.Snapshot, err}, []any{int64(3), "sensors@000001", error(nil)})
	want(t, "rows afterwards", s.ask(t, "SELECT * FROM sensors ORDER BY id"), left)
	version = r.Version
	r = s.insert(t, "sensors", `[{"id": 3, "site": "again"}]`, store.RowFail)
	want(t, "a removed key is free", []any{r.Inserted, r.Version > version}, []any{int64(1), true})
	r, err = s.Delete(t.Context(), "sensors", store.RowSelection{All: true}, store.TableCall{})
	want(t, "delete all", []any{r.Deleted, err}, []any{int64(4), error(nil)})
	want(t, "no rows", s.ask(t, "SELECT * FROM sensors"), []map[string]any{})
}

func tableValues(t *testing.T, s *tables) {
	s.create(t, "v", `{"id": "int", "s": "string", "f": "float", "b": "bool", "ts": "timestamp", "day": "date", "j": "json"}`, "id")
	rows := []string{
		`{"id": 9007199254740993, "s": "世界 '\"\\ 👍🏽 é", "f": 2.5, "b": true, "ts": "2026-03-01T12:00:00.25Z", "day": "2024-02-29", "j": {"big": 12345678901234567890123, "list": [1, 2.5, null]}}`,
		`{"id": -9223372036854775808, "s": "", "f": 1e308, "b": false, "ts": "0001-01-01T00:00:00Z", "day": "9999-12-31", "j": "text"}`,
		`{"id": 9223372036854775807, "s": "null", "f": 5e-324, "b": null, "ts": "9999-12-31T23:59:59.999999Z", "day": null, "j": [[]]}`,
		`{"id": 0, "s": null, "f": null, "b": null, "ts": null, "day": null, "j": null}`,
	}
	s.insert(t, "v", "["+strings.Join(rows, ",")+"]", store.RowFail)
	for i, id := range []int64{9007199254740993, -9223372036854775808, 9223372036854775807, 0} {
		want(t, "row", s.ask(t, "SELECT * FROM v WHERE id = ?", id), jsons(t, rows[i]))
	}
	for column, v := range map[string]string{
		"id": "9007199254740993", "s": `"世界 '\"\\ 👍🏽 é"`, "f": "25e-1", "b": "true", "ts": `"2026-03-01 14:00:00.25+02:00"`, "day": `"2024-02-29"`,
	} {
		r, err := s.Update(t.Context(), "v", store.RowSelection{Where: store.TableRow{column: json.RawMessage(v)}}, store.TableRow{"j": json.RawMessage(rows[0][strings.Index(rows[0], `{"big`) : len(rows[0])-1])}, store.TableCall{})
		want(t, "found by "+column, []any{r.Updated, err}, []any{int64(1), error(nil)})
	}
	want(t, "after the updates", s.ask(t, "SELECT * FROM v WHERE id = 9007199254740993"), jsons(t, rows[0]))
	want(t, "typed", s.ask(t, "SELECT count(*) AS n FROM v WHERE f > 2 AND b AND s <> ''"), jsons(t, `{"n": 1}`))
	for where, n := range map[string]string{
		"ts >= '2026-03-01T12:00:00Z' AND ts < '2026-03-01T12:00:01Z'": `{"n": 1}`, "ts = '2026-03-01 12:00:00.250'": `{"n": 1}`, "ts > '2026-03-01T12:00:00.25Z'": `{"n": 1}`,
	} {
		want(t, where, s.ask(t, "SELECT count(*) AS n FROM v WHERE "+where), jsons(t, n))
	}
	// A store that cannot store a NUL refuses it.
	if _, err := s.Insert(t.Context(), "v", rowsOf(t, `[{"id": 1, "s": "a\u0000b", "j": {"a\u0000": 1}}]`), store.RowFail, store.TableCall{}); err != nil {
		refusedAs(t, "NUL", err, tea.ValidationError, "U+0000")
		return
	}
	want(t, "NUL", s.ask(t, "SELECT s, j FROM v WHERE id = 1"), jsons(t, `{"s": "a\u0000b", "j": {"a\u0000": 1}}`))
}

func tableWrongValues(t *testing.T, s *tables) {
	s.create(t, "v", `[{"name": "id", "type": "int"}, {"name": "s", "type": "string", "nullable": false}, {"name": "ts", "type": "timestamp"}, {"name": "flag", "type": "bool"}]`, "id")
	for rows, text := range map[string]string{
		`[{"id": "1", "s": ""}]`:                          `row 0: column "id" takes a whole number of 64 bits, not "1"`,
		`[{"id": 9223372036854775808, "s": ""}]`:          "not 9223372036854775808",
		`[{"s": ""}]`:                                     `column "id" must have a value`,
		`[{"id": 1, "s": "x"}, {"id": 2}]`:                `row 1: column "s" must have a value`,
		`[{"id": 1, "s": "", "ts": "yesterday"}]`:         "a time like",
		`[{"id": 1, "s": "", "flagg": true}]`:             `no column "flagg"; did you mean "flag"?`,
		`[{"id": 1, "s": ""}, {"id": 1.0, "s": "again"}]`: "the key [1] appears in an earlier row",
	} {
		_, err := s.Insert(t.Context(), "v", rowsOf(t, rows), store.RowFail, store.TableCall{})
		refusedAs(t, rows, err, tea.ValidationError, text)
	}
	_, err := s.Insert(t.Context(), "w", nil, store.RowFail, store.TableCall{})
	refusedAs(t, "no such table", err, tea.NotFound, `no table of data.create_table "w"`)
	want(t, "rows", s.ask(t, "SELECT * FROM v"), []map[string]any{})
}

func tableWrongSelections(t *testing.T, s *tables) {
	s.create(t, "v", `{"id": "int", "s": {"type": "string", "nullable": false}}`, "id")
	s.insert(t, "v", `[{"id": 5e0, "s": ""}, {"id": 6.0, "s": ""}]`, store.RowFail)
	key := store.RowSelection{Keys: raws("5")}
	for text, c := range map[string]struct {
		which store.RowSelection
		set   string
	}{
		"select rows with keys":             {store.RowSelection{}, `{"s": "x"}`},
		"primary key":                       {key, `{"id": 7}`},
		`column "s" must`:                   {key, `{"s": null}`},
		"set has no column":                 {key, `{}`},
		`has no column "q"`:                 {store.RowSelection{Where: store.TableRow{"q": nil}}, `{"s": "x"}`},
		"key 0: the primary key has":        {store.RowSelection{Keys: raws("[1, 2]")}, `{"s": "x"}`},
		`key 0: column "id" takes`:          {store.RowSelection{Keys: raws(`"x"`)}, `{"s": "x"}`},
		"is not a column of the primary ke": {store.RowSelection{Keys: raws(`{"id": 1, "s": 2}`)}, `{"s": "x"}`},
	} {
		_, err := s.Update(t.Context(), "v", c.which, rowsOf(t, "["+c.set+"]")[0], store.TableCall{})
		refusedAs(t, text, err, tea.ValidationError, text)
	}
	r, err := s.Update(t.Context(), "v", store.RowSelection{Keys: raws("5", "6"), Where: store.TableRow{"s": json.RawMessage(`[]`)}}, rowsOf(t, `[{"s": "x"}]`)[0], store.TableCall{})
	want(t, "any of no values", []any{r.Updated, err}, []any{int64(0), error(nil)})
	r, err = s.Update(t.Context(), "v", store.RowSelection{Where: store.TableRow{"id": json.RawMessage(`5`), "s": json.RawMessage(`["", "x"]`)}}, rowsOf(t, `[{"s": "x"}]`)[0], store.TableCall{})
	want(t, "key and value", []any{r.Updated, err}, []any{int64(1), error(nil)})
	want(t, "rows", s.ask(t, "SELECT * FROM v ORDER BY id"), jsons(t, `{"id": 5, "s": "x"}`, `{"id": 6, "s": ""}`))
}

func tableDefinitions(t *testing.T, s *tables) {
	s.create(t, "sensors", sensorColumns, "id")
	created, err := s.Create(t.Context(), store.NewTable{Name: "SENSORS", Schema: json.RawMessage(`{"value": "number", "site": "text", "id": "int"}`), PrimaryKey: []string{"id"}})
	want(t, "the same table", []any{created, err}, []any{false, error(nil)})
	_, err = s.Create(t.Context(), store.NewTable{Name: "sensors", Schema: json.RawMessage(`{"id": "string"}`), PrimaryKey: []string{"id"}})
	refusedAs(t, "another definition", err, tea.ValidationError, `already exists with another definition: column "id" is int not null, not string not null; it also has a column "site"`)
	var made atomic.Int64
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			created, err := s.Create(t.Context(), store.NewTable{Name: "x", Schema: json.RawMessage(`{"a": "int"}`)})
			if err != nil {
				t.Error(err)
			}
			if created {
				made.Add(1)
			}
		})
	}
	group.Wait()
	want(t, "created", made.Load(), int64(1))
}

func tableNames(t *testing.T, s *tables) {
	for _, name := range []string{"", "a b", `a"b`, "a;DROP TABLE ltm", "a'", "1a", "é", "tea_rows_x", "TEA_schema", "sqlite_x", "pg_class", "information_schema", strings.Repeat("a", 64), "../x", "a\x00"} {
		_, err := s.Create(t.Context(), store.NewTable{Name: name, Schema: json.RawMessage(`{"a": "int"}`)})
		refusedAs(t, "table "+name, err, tea.ValidationError, "")
	}
	for _, schema := range []string{`[]`, `{}`, `null`, `5`, `["a"]`, `{"a b": "int"}`, `{"a\"": "int"}`, `{"a": "integer64"}`, `{"_tea_seq": "int"}`, `{"true": "int"}`, `{"a": "int", "A": "int"}`, `[{"name": "a", "type": "int); DROP TABLE ltm"}]`} {
		_, err := s.Create(t.Context(), store.NewTable{Name: "x", Schema: json.RawMessage(schema)})
		refusedAs(t, schema, err, tea.ValidationError, "")
	}
	// SQL keywords are valid names, and values are not interpreted.
	s.create(t, "select", `{"from": "string", "order": "int", "rowid": "int", "group": "json"}`, "from", "order")
	s.insert(t, "select", `[{"from": "'); DROP TABLE \"select\"; --", "order": 1, "rowid": 5, "group": {"$.x": "'"}}, {"from": "b", "order": 2}]`, store.RowFail)
	r, err := s.Update(t.Context(), "Select", store.RowSelection{Keys: raws(`["'); DROP TABLE \"select\"; --", 1]`)}, store.TableRow{"rowid": json.RawMessage("6")}, store.TableCall{})
	want(t, "updated", []any{r.Updated, err}, []any{int64(1), error(nil)})
	want(t, "rows", s.ask(t, `SELECT * FROM "select" WHERE "order" = 1`), jsons(t, `{"from": "'); DROP TABLE \"select\"; --", "order": 1, "rowid": 6, "group": {"$.x": "'"}}`))
	s.create(t, "Mixed", `{"a": "int"}`)
	s.insert(t, "mIXED", `[{"a": 1}]`, store.RowFail)
	want(t, "without quotes", s.ask(t, "SELECT a FROM mixed"), jsons(t, `{"a": 1}`))
	want(t, "with quotes", s.ask(t, `SELECT a FROM "Mixed"`), jsons(t, `{"a": 1}`))
}

func tableWithoutKey(t *testing.T, s *tables) {
	s.create(t, "events", `{"text": "string"}`)
	s.insert(t, "events", `[{"text": "a"}, {"text": "a"}, {"text": "b"}]`, store.RowFail)
	s.insert(t, "events", `[{"text": "a"}]`, store.RowFail)
	r, err := s.Delete(t.Context(), "events", store.RowSelection{Where: store.TableRow{"text": json.RawMessage(`"b"`)}}, store.TableCall{})
	want(t, "deleted", []any{r.Deleted, err}, []any{int64(1), error(nil)})
	want(t, "rows", s.ask(t, "SELECT text FROM events"), jsons(t, `{"text": "a"}`, `{"text": "a"}`, `{"text": "a"}`))
	_, err = s.Delete(t.Context(), "events", store.RowSelection{Keys: raws("1")}, store.TableCall{})
	refusedAs(t, "a key", err, tea.ValidationError, "has no primary key")
}

func tableDecimals(t *testing.T, s *tables) {
	s.create(t, "prices", `{"id": "int", "price": "decimal(12,2)"}`, "price", "id")
	s.insert(t, "prices", `[{"id": 1, "price": 0.10}, {"id": 2, "price": 1234567890.12}, {"id": 3, "price": -3}]`, store.RowFail)
	_, err := s.Insert(t.Context(), "prices", rowsOf(t, `[{"id": 4, "price": 0.001}]`), store.RowFail, store.TableCall{})
	refusedAs(t, "three digits", err, tea.ValidationError, "at most 10 digits before and 2 after the point")
	r, err := s.Delete(t.Context(), "prices", store.RowSelection{Keys: raws(`[-3.00, 3]`), Where: store.TableRow{"price": json.RawMessage("-3.0")}}, store.TableCall{})
	want(t, "deleted", []any{r.Deleted, err}, []any{int64(1), error(nil)})
	want(t, "ordered", s.ask(t, "SELECT id, price FROM prices ORDER BY price DESC"), jsons(t, `{"id": 2, "price": 1234567890.12}`, `{"id": 1, "price": 0.1}`))
}

func tableRepeatedCalls(t *testing.T, s *tables) {
	s.create(t, "sensors", sensorColumns, "id")
	call := store.TableCall{Key: "run 1/step 2", Hash: "h1"}
	first, err := s.Insert(t.Context(), "sensors", rowsOf(t, `[{"id": 1}]`), store.RowFail, call)
	if err != nil {
		t.Fatal(err)
	}
	s.TableStore = s.open(t)
	second, err := s.Insert(t.Context(), "sensors", rowsOf(t, `[{"id": 1}]`), store.RowFail, call)
	want(t, "the same call", []any{second, err}, []any{first, error(nil)})
	call.Hash = "h2"
	_, err = s.Insert(t.Context(), "sensors", rowsOf(t, `[{"id": 1}]`), store.RowFail, call)
	refusedAs(t, "another call with the key", err, tea.ValidationError, "already has a row")
	call.Key = "run 1/step 3"
	var group sync.WaitGroup
	var results [4]store.TableResult
	for i := range results {
		group.Go(func() {
			var err error
			if results[i], err = s.UpdateRows(t.Context(), "sensors", rowsOf(t, `[{"id": 1, "value": 5}]`), call); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, r := range results {
		want(t, "calls at the same time", []any{r, r.Updated, r.Version > first.Version}, []any{results[0], int64(1), true})
	}
}

func tableQueries(t *testing.T, s *tables) {
	s.create(t, "a", `{"id": "int", "name": "string"}`, "id")
	s.create(t, "b", `{"id": "int"}`, "id")
	s.insert(t, "a", `[{"id": 1, "name": "x"}, {"id": 2}]`, store.RowFail)
	s.insert(t, "b", `[{"id": 2}, {"id": 3}]`, store.RowFail)
	want(t, "joined", s.ask(t, `WITH w AS (SELECT id FROM A) SELECT count(*) AS n FROM w JOIN "b" ON w.id = "b".id`), jsons(t, `{"n": 1}`))
	want(t, "aggregate", s.ask(t, "SELECT name, count(*) AS n FROM a WHERE name IS NOT NULL GROUP BY name"), jsons(t, `{"name": "x", "n": 1}`))
	for _, query := range []string{
		"SELECT * FROM tea_rows_a", "SELECT * FROM tea_rows", "SELECT * FROM documents", "SELECT * FROM ltm", "SELECT * FROM b", "DELETE FROM a", "UPDATE a SET id = 1", "SELECT _tea_seq FROM a", "SELEC 1",
		"SELECT 1; SELECT 2", "WITH tea_rows_b AS (SELECT 1) SELECT * FROM b",
	} {
		_, err := s.Query(t.Context(), store.TableQuery{SQL: query, Tables: []string{"a"}, MaxRows: 10, MaxBytes: 1000, Timeout: time.Minute})
		if e := tea.AsError(err); e == nil || e.Type != tea.ValidationError && e.Type != tea.PermissionDenied {
			t.Errorf("%s: %v", query, err)
		}
	}
	_, err := s.Query(t.Context(), store.TableQuery{SQL: "SELECT 1", Tables: []string{"aa"}})
	refusedAs(t, "no such table", err, tea.NotFound, "aa")
	a, err := s.Query(t.Context(), store.TableQuery{SQL: "SELECT * FROM b ORDER BY id", MaxRows: 1})
	want(t, "truncated", []any{a, err}, []any{store.TableAnswer{Columns: []string{"id"}, Rows: jsons(t, `{"id": 2}`), Truncated: true}, error(nil)})
}

func tableAllOrNone(t *testing.T, s *tables) {
	s.create(t, "sensors", sensorColumns, "id")
	s.insert(t, "sensors", `[{"id": 7}]`, store.RowFail)
	_, err := s.Insert(t.Context(), "sensors", rowsOf(t, `[{"id": 5}, {"id": 6}, {"id": 7}]`), store.RowFail, store.TableCall{})
	refusedAs(t, "the last row", err, tea.ValidationError, "row 2")
	want(t, "rows", s.ask(t, "SELECT id FROM sensors"), jsons(t, `{"id": 7}`))
}

func tableManyRows(t *testing.T, s *tables) {
	s.create(t, "sensors", sensorColumns, "id")
	for from := 0; from < 3000; from += 1000 {
		rows := make([]store.TableRow, 1200)
		for i := range rows {
			rows[i] = store.TableRow{"id": json.RawMessage(fmt.Sprint(from + i)), "site": json.RawMessage(fmt.Sprintf(`"site %d"`, i%10)), "value": json.RawMessage("0.5")}
		}
		if _, err := s.Insert(t.Context(), "sensors", rows, store.RowReplace, store.TableCall{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Update(t.Context(), "sensors", store.RowSelection{Where: store.TableRow{"site": json.RawMessage(`"site 3"`)}}, store.TableRow{"value": json.RawMessage("2")}, store.TableCall{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), "sensors", store.RowSelection{Where: store.TableRow{"site": json.RawMessage(`"site 4"`)}}, store.TableCall{}); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		want(t, when, s.ask(t, "SELECT count(*) AS n, max(id) AS last, sum(value) AS total FROM sensors"), jsons(t, `{"n": 2880, "last": 3199, "total": 1920.0}`))
	}
	check("before")
	if _, err := s.Consolidate(t.Context(), "sensors"); err != nil {
		t.Fatal(err)
	}
	check("after the consolidation")
}

// tableConcurrent changes the rows of one table from several callers: no change may be lost.
func tableConcurrent(t *testing.T, s *tables) {
	s.create(t, "sensors", sensorColumns, "id")
	var group sync.WaitGroup
	for caller := range 4 {
		group.Go(func() {
			for i := range 5 {
				row := fmt.Sprintf(`[{"id": %d, "site": "s"}, {"id": 1000, "value": %d}]`, 10*caller+i, caller)
				if _, err := s.Insert(t.Context(), "sensors", rowsOf(t, row), store.RowReplace, store.TableCall{}); err != nil {
					t.Error(err)
				}
				_, err := s.Update(t.Context(), "sensors", store.RowSelection{Where: store.TableRow{"site": json.RawMessage(`"s"`)}}, store.TableRow{"site": json.RawMessage(`"s"`), "value": json.RawMessage("1")}, store.TableCall{})
				if err != nil && !errors.Is(err, t.Context().Err()) {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	want(t, "rows", s.ask(t, "SELECT count(*) AS n, sum(value) AS total FROM sensors WHERE site = 's'"), jsons(t, `{"n": 20, "total": 20.0}`))
}

// tableAllRows reads all rows during writes: each row that exists throughout must appear exactly once.
func tableAllRows(t *testing.T, s *tables) {
	const schema = `{"id": "int", "name": "string", "f": "float", "b": "bool", "at": "timestamp", "on": "date", "price": "decimal(12,2)", "j": "json"}`
	for _, key := range [][]string{{"id"}, nil} {
		name := fmt.Sprint("rows", len(key))
		s.create(t, name, schema, key...)
		s.create(t, name+"_copy", schema, key...)
		var rows []string
		for i := range 50 {
			rows = append(rows, fmt.Sprintf(`{"id": %d, "name": "row %[1]d", "f": 0.1, "b": %t, "at": "2026-03-01T12:00:00.5Z", "on": "2026-03-01", "price": 1.%02[1]d, "j": {"a": [1.5, null]}}`, i*10, i%2 == 0))
		}
		s.insert(t, name, "["+strings.Join(rows, ",")+"]", store.RowFail)
		seen := map[int64]int{}
		for after, n := "", 0; ; n++ {
			page, next, err := s.Rows(t.Context(), name, after, 7)
			if err != nil || len(page) > 7 {
				t.Fatal(len(page), err)
			}
			for _, row := range page {
				var one struct{ ID int64 }
				if err := json.Unmarshal(row, &one); err != nil {
					t.Fatal(err)
				}
				if seen[one.ID]++; seen[one.ID] > 1 {
					t.Errorf("%s: row %d comes twice", name, one.ID)
				}
			}
			copied := make([]store.TableRow, len(page))
			for i, row := range page {
				if err := json.Unmarshal(row, &copied[i]); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Insert(t.Context(), name+"_copy", copied, store.RowFail, store.TableCall{}); err != nil {
				t.Fatal(err)
			}
			if after = next; after == "" {
				break
			}
			s.insert(t, name, fmt.Sprintf(`[{"id": %d, "name": "new"}, {"id": %d, "name": "new"}]`, -n-1, n*70+5), store.RowFail)
			which := store.RowSelection{Where: store.TableRow{"name": json.RawMessage(`"row 1"`)}}
			if _, err := s.Delete(t.Context(), name, which, store.TableCall{}); err != nil {
				t.Fatal(err)
			}
			which = store.RowSelection{Where: store.TableRow{"name": json.RawMessage(`["row 2", "row 48"]`)}}
			if _, err := s.Update(t.Context(), name, which, store.TableRow{"f": json.RawMessage("7")}, store.TableCall{}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range int64(50) {
			if i != 1 && seen[i*10] != 1 {
				t.Errorf("%s: row %d comes %d times", name, i*10, seen[i*10])
			}
		}
		sql := `SELECT b, "at", "on", price, j FROM %s WHERE name = 'row 7'`
		if d := cmp.Diff(s.ask(t, fmt.Sprintf(sql, name)), s.ask(t, fmt.Sprintf(sql, name+"_copy"))); d != "" {
			t.Error(d)
		}
	}
	if _, _, err := s.Rows(t.Context(), "absent", "", 1); tea.AsError(err) == nil || tea.AsError(err).Type != tea.NotFound {
		t.Errorf("a table that does not exist: %v", err)
	}
}
