package memory_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"

	"github.com/the-edge-agent/tea/plugins/memory"
)

// dataAgents runs a test on every database of this build.
func dataAgents(t *testing.T, test func(t *testing.T, a *agent, engine string)) {
	t.Helper()
	t.Parallel()
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			a := openAgent(t, teatest.Linked(memory.Bundle()), nil, map[string]any{"path": t.TempDir(), "engine": engine})
			t.Cleanup(func() { a.close(t) })
			test(t, a, engine)
		})
	}
}

// readings are n rows of the table sensors.
func readings(from, n int) []any {
	rows := make([]any, n)
	for i := range rows {
		rows[i] = map[string]any{"id": from + i, "site": fmt.Sprint("site ", (from+i)%10), "value": float64(from+i) + 0.5}
	}
	return rows
}

var sensorSchema = []any{
	map[string]any{"name": "id", "type": "int"}, map[string]any{"name": "site", "type": "string"}, map[string]any{"name": "value", "type": "float"},
}

func TestData(t *testing.T) {
	dataAgents(t, func(t *testing.T, a *agent, engine string) {
		table := map[string]any{"name": "sensors", "schema": sensorSchema, "primary_key": "id"}
		columns := []any{
			map[string]any{"name": "id", "type": "int", "nullable": false},
			map[string]any{"name": "site", "type": "string", "nullable": true},
			map[string]any{"name": "value", "type": "float", "nullable": true},
		}
		made := map[string]any{"table": "sensors", "created": true, "columns": columns, "primary_key": []any{"id"}}
		same(t, "create", a.do(t, "data.create_table", table), made)
		made["created"] = false
		same(t, "create again", a.do(t, "data.create_table", table), made)

		same(t, "a few rows", a.do(t, "data.insert", map[string]any{"table": "sensors", "rows": readings(0, 3)}), map[string]any{
			"table": "sensors", "row_count": int64(3), "inserted": int64(3), "replaced": int64(0), "ignored": int64(0), "version": int64(3), "stored": "rows",
		})
		large := a.do(t, "data.insert", map[string]any{"table": "sensors", "rows": readings(2, 500), "on_conflict": "replace"})
		same(t, "replaced", []any{large["row_count"], large["inserted"], large["replaced"], large["version"]}, []any{int64(500), int64(499), int64(1), int64(503)})
		files := 0
		if engine == "duckdb" {
			files = 1
			same(t, "stored", large["stored"], "file")
			if path, _ := large["path"].(string); !strings.HasPrefix(path, "sensors/") || filepath.Ext(path) != ".parquet" || large["bytes"].(int64) < 100 {
				t.Errorf("the file is %v", large)
			}
		} else {
			same(t, "stored", []any{large["stored"], large["path"]}, []any{"rows", nil})
		}
		same(t, "ignored", a.do(t, "data.insert", map[string]any{"table": "sensors", "rows": readings(0, 2), "on_conflict": "ignore"}), map[string]any{
			"table": "sensors", "row_count": int64(0), "inserted": int64(0), "replaced": int64(0), "ignored": int64(2), "version": int64(503), "stored": "none",
		})
		same(t, "update", a.do(t, "data.update", map[string]any{"table": "sensors", "set": map[string]any{"value": -1}, "keys": []any{1, []any{2}, map[string]any{"id": 9999}}}),
			map[string]any{"table": "sensors", "affected": int64(2), "missing": int64(1), "version": int64(505), "stored": "rows"})
		same(t, "update rows", a.do(t, "data.update", map[string]any{"table": "sensors", "rows": []any{map[string]any{"id": 3, "value": nil}, map[string]any{"id": 7777, "value": 1}}}),
			map[string]any{"table": "sensors", "affected": int64(1), "missing": int64(1), "version": int64(506), "stored": "rows"})
		removed := a.do(t, "data.delete", map[string]any{"table": "sensors", "where": map[string]any{"site": []any{"site 4", "site 5"}}})
		same(t, "delete", []any{removed["affected"], removed["missing"]}, []any{int64(100), int64(0)})

		query := map[string]any{"sql": "SELECT count(*) AS n, min(value) AS least FROM sensors WHERE id < ?", "args": []any{1000}}
		answer := map[string]any{"columns": []any{"n", "least"}, "rows": []any{map[string]any{"n": int64(402), "least": -1.}}, "row_count": int64(1), "truncated": false}
		same(t, "query", a.do(t, "data.query", query), answer)
		c := a.do(t, "data.consolidate", map[string]any{"table": "sensors"})
		same(t, "consolidated", []any{c["files_before"], c["files_after"], c["rows"], c["snapshot"]}, []any{int64(files), int64(files), int64(402), "sensors@000001"})
		same(t, "query afterwards", a.do(t, "data.query", query), answer)
		same(t, "one row of many", a.do(t, "data.query", map[string]any{"sql": "SELECT * FROM sensors ORDER BY id", "max_rows": 1}), map[string]any{
			"columns": []any{"id", "site", "value"}, "rows": []any{map[string]any{"id": int64(0), "site": "site 0", "value": 0.5}}, "row_count": int64(1), "truncated": true,
		})

		snapshot := a.do(t, "catalog.get_latest_snapshot", map[string]any{"table": "sensors"})
		same(t, "snapshot", []any{snapshot["snapshot_id"], snapshot["file_count"], snapshot["number"]}, []any{"sensors@000001", int64(files), int64(1)})
		listed := a.do(t, "catalog.list_files", map[string]any{"table": "sensors"})["files"].([]any)
		same(t, "files", len(listed), files)
		if files == 1 {
			f := listed[0].(map[string]any)
			same(t, "the file", []any{f["path"], f["row_count"], f["size"], f["format"]}, []any{c["path"], int64(402), c["bytes"], "parquet"})
		}
		same(t, "in the catalog", a.do(t, "catalog.get_table", map[string]any{"table": "Sensors"})["managed"], true)
		a.fails(t, tea.ValidationError, "catalog.track_file", map[string]any{"table": "sensors", "path": "x"})
		a.fails(t, tea.ValidationError, "catalog.register_table", map[string]any{"name": "sensors"})
		a.fails(t, tea.ValidationError, "catalog.create_snapshot", map[string]any{"table": "sensors"})
	})
}

func TestDataSaysWhatIsWrong(t *testing.T) {
	dataAgents(t, func(t *testing.T, a *agent, _ string) {
		a.do(t, "data.create_table", map[string]any{"name": "sensors", "schema": sensorSchema, "primary_key": []any{"id"}})
		a.do(t, "data.insert", map[string]any{"table": "sensors", "rows": readings(0, 3)})
		for _, c := range []struct {
			action string
			params map[string]any
			kind   tea.ErrorType
			text   string
		}{
			{
				"data.create_table",
				map[string]any{"name": "sensors", "schema": map[string]any{"id": "string", "sites": "string"}, "primary_key": "id"},
				tea.ValidationError,
				`table "sensors" already exists with another definition: column "id" is int not null, not string not null; there is no column "sites"; it also has a column "site"; it also has a column "value"`,
			},
			{"data.create_table", map[string]any{"name": "sensors", "schema": sensorSchema}, tea.ValidationError, "its primary key is (id), not ()"},
			{"data.create_table", map[string]any{"name": "t", "schema": sensorSchema, "primary_key": []any{"ids"}}, tea.ValidationError, `did you mean "id"?`},
			{"data.create_table", map[string]any{"name": "t", "schema": sensorSchema, "primary_key": 5}, tea.ValidationError, "primary_key"},
			{"data.create_table", map[string]any{"name": "t", "schema": map[string]any{"a": "strng"}}, tea.ValidationError, `column "a": unknown type "strng"; did you mean "string"?`},
			{"data.create_table", map[string]any{"name": "ltm", "schema": sensorSchema}, tea.ValidationError, "choose another one"},
			{"data.insert", map[string]any{"table": "sensor", "rows": readings(0, 1)}, tea.NotFound, `did you mean "sensors"?`},
			{"data.insert", map[string]any{"table": "sensors", "rows": []any{map[string]any{"id": 8}, map[string]any{"id": 9, "valeu": 1}}}, tea.ValidationError, `row 1: table "sensors" has no column "valeu"; did you mean "value"?`},
			{"data.insert", map[string]any{"table": "sensors", "rows": []any{map[string]any{"id": 8}, map[string]any{"id": "x"}}}, tea.ValidationError, `row 1: column "id" takes a whole number of 64 bits, not "x"`},
			{"data.insert", map[string]any{"table": "sensors", "rows": readings(2, 2)}, tea.ValidationError, `row 0: table "sensors" already has a row with the key [2]`},
			{"data.insert", map[string]any{"table": "sensors", "rows": []any{5}}, tea.ValidationError, "rows"},
			{"data.update", map[string]any{"table": "sensors", "set": map[string]any{"id": 4}, "keys": []any{1}}, tea.ValidationError, "part of the primary key, which cannot change"},
			{"data.update", map[string]any{"table": "sensors", "set": map[string]any{"value": 4}}, tea.ValidationError, "or all rows with all: true"},
			{"data.update", map[string]any{"table": "sensors", "rows": []any{map[string]any{"value": 4}}}, tea.ValidationError, `row 0: column "id" of the primary key is missing`},
			{"data.update", map[string]any{"table": "sensors", "rows": []any{map[string]any{"id": 4}}}, tea.ValidationError, "row 0: there is no column to change"},
			{"data.update", map[string]any{"table": "sensors", "rows": []any{map[string]any{"id": 4, "value": 1}, map[string]any{"id": 4.0, "value": 2}}}, tea.ValidationError, "row 1: the key [4] appears in row 0 too"},
			{"data.update", map[string]any{"table": "sensors", "rows": []any{}, "all": true}, tea.ValidationError, "takes either rows, or set"},
			{"data.delete", map[string]any{"table": "sensors", "where": map[string]any{"sit": "a"}}, tea.ValidationError, `did you mean "site"?`},
			{"data.delete", map[string]any{"table": "sensors", "keys": []any{1}, "all": true}, tea.ValidationError, "all: true cannot be combined with keys"},
			{"data.query", map[string]any{"sql": "DELETE FROM sensors"}, tea.ValidationError, "SELECT"},
			{"data.query", map[string]any{"sql": "SELECT * FROM documents"}, tea.ValidationError, "sensors"},
			{"data.query", map[string]any{"sql": "SELECT 1", "tables": []any{"nothing"}}, tea.NotFound, "nothing"},
			{"data.consolidate", map[string]any{"table": "nothing"}, tea.NotFound, "nothing"},
		} {
			message := a.fails(t, c.kind, c.action, c.params)
			if !strings.Contains(message, c.text) {
				t.Errorf("%s %v: %s; want %q in it", c.action, c.params, message, c.text)
			}
		}
		same(t, "rows", a.do(t, "data.query", map[string]any{"sql": "SELECT count(*) AS n FROM sensors"})["rows"], any([]any{map[string]any{"n": int64(3)}}))
	})
}

// repeated calls an action as a run does that repeats the call after a crash.
func (a *agent) repeated(t *testing.T, key, action string, params map[string]any) map[string]any {
	t.Helper()
	answer, err := a.Invoke(t.Context(), &tea.Request{Action: action, Params: tea.ValuePayload(params), Call: tea.Call{IdempotencyKey: key, Attempt: 1}, Host: a.host})
	if err != nil {
		t.Fatalf("%s: %v", action, err)
	}
	result, err := answer.Result.Value()
	if err != nil {
		t.Fatal(err)
	}
	return result.(map[string]any)
}

func TestARepeatedCallChangesATableOnce(t *testing.T) {
	dataAgents(t, func(t *testing.T, a *agent, _ string) {
		a.do(t, "data.create_table", map[string]any{"name": "events", "schema": map[string]any{"text": "string"}})
		a.do(t, "data.create_table", map[string]any{"name": "keyed", "schema": map[string]any{"id": "int", "n": "int"}, "primary_key": "id"})
		for key, c := range map[string]struct {
			action string
			params map[string]any
		}{
			"a": {"data.insert", map[string]any{"table": "events", "rows": []any{map[string]any{"text": "x"}, map[string]any{"text": "y"}}}},
			"b": {"data.insert", map[string]any{"table": "keyed", "rows": []any{map[string]any{"id": 1, "n": 1}}}},
			"c": {"data.insert", map[string]any{"table": "events", "rows": []any{map[string]any{"text": strings.Repeat("long ", 500)}}}},
		} {
			first := a.repeated(t, key, c.action, c.params)
			same(t, "again", a.repeated(t, key, c.action, c.params), first)
		}
		update := map[string]any{"table": "keyed", "set": map[string]any{"n": 2}, "all": true}
		first := a.repeated(t, "d", "data.update", update)
		a.do(t, "data.update", map[string]any{"table": "keyed", "set": map[string]any{"n": 3}, "all": true})
		same(t, "update again", a.repeated(t, "d", "data.update", update), first)
		a.repeated(t, "a", "data.insert", map[string]any{"table": "events", "rows": []any{map[string]any{"text": "another call with this name"}}})
		count := func(sql string) any {
			t.Helper()
			return a.do(t, "data.query", map[string]any{"sql": sql})["rows"].([]any)[0].(map[string]any)["n"]
		}
		same(t, "events", count("SELECT count(*) AS n FROM events"), int64(4))
		same(t, "keyed", count("SELECT n FROM keyed"), int64(3))
	})
}

// A value that a query on SQLite cannot read spoils neither the other columns nor the
// table, and the error says what the limit is.
func TestALargeValueInATableOfSQLite(t *testing.T) {
	t.Parallel()
	a := mustOpen(t, map[string]any{"path": t.TempDir(), "engine": "sqlite"})
	defer a.close()
	a.must("data.create_table", map[string]any{"name": "texts", "primary_key": []string{"id"}, "schema": map[string]any{"id": "int", "text": "string"}})
	a.must("data.insert", map[string]any{"table": "texts", "rows": []map[string]any{{"id": 1, "text": strings.Repeat("x", 2<<20)}}})
	if _, err := a.call("data.query", map[string]any{"sql": "SELECT text FROM texts"}); typeOf(err) != tea.QueryError || !strings.Contains(err.Error(), "1 MB in data.query") {
		t.Errorf("a large value: %v", err)
	}
	a.equal("another column", a.must("data.query", map[string]any{"sql": "SELECT id FROM texts"})["row_count"], int64(1))
	a.must("data.update", map[string]any{"table": "texts", "keys": []any{1}, "set": map[string]any{"text": "small"}})
	a.equal("replaced", fmt.Sprint(a.must("data.query", map[string]any{"sql": "SELECT text FROM texts"})["rows"]), "[map[text:small]]")
}
