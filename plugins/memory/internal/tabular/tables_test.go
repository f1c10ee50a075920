package tabular

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func TestInsertUpdateDelete(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.make(t, "sensors", sensors, "id")
		want(t, "insert", d.insert(t, "sensors", `[{"id": 1, "site": "a", "value": 1}, {"id": 2, "site": "b"}, {"id": 3, "site": "a"}]`, store.RowFail), store.TableResult{Inserted: 3, Version: 3})
		_, err := d.Insert(t.Context(), "sensors", rowsOf(t, `[{"id": 4}, {"id": 2}]`), store.RowFail, store.TableCall{})
		fails(t, "a key that is there", err, tea.ValidationError, "already has a row with the key [2]")
		want(t, "ignore", d.insert(t, "sensors", `[{"id": 4}, {"id": 2}]`, store.RowIgnore).Ignored, 1)
		r := d.insert(t, "sensors", `[{"id": 2, "site": "c"}, {"id": 5, "site": "a"}]`, store.RowReplace)
		want(t, "replace", []int64{r.Inserted, r.Updated}, []int64{1, 1})
		want(t, "rows", d.read(t, "SELECT * FROM sensors ORDER BY id"), []string{"1|a|1", "2|c|-", "3|a|-", "4|-|-", "5|a|-"})

		r, err = d.Update(t.Context(), "SENSORS", store.RowSelection{Where: store.TableRow{"site": json.RawMessage(`["a", null]`)}}, store.TableRow{"value": json.RawMessage("7.25")}, store.TableCall{})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "updated", r.Updated, 4)
		r, err = d.Delete(t.Context(), "sensors", store.RowSelection{Keys: []json.RawMessage{json.RawMessage("3"), json.RawMessage(`{"id": 4}`), json.RawMessage(`[99]`)}}, store.TableCall{})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "deleted", r.Deleted, 2)
		left := []string{"1|a|7.25", "2|c|-", "5|a|7.25"}
		want(t, "rows", d.read(t, "SELECT * FROM sensors ORDER BY id"), left)
		d = d.reopen(t)
		if _, _, err := d.readable(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		want(t, "rows after a restart", d.read(t, "SELECT * FROM sensors ORDER BY id"), left)
		if _, err := d.Consolidate(t.Context(), "sensors"); err != nil {
			t.Fatal(err)
		}
		want(t, "rows after the consolidation", d.read(t, "SELECT * FROM sensors ORDER BY id"), left)
		version := r.Version
		d = d.reopen(t)
		r = d.insert(t, "sensors", `[{"id": 3, "site": "again"}]`, store.RowFail)
		want(t, "a removed key is free", r, store.TableResult{Inserted: 1, Version: version + 1})
		r, err = d.Delete(t.Context(), "sensors", store.RowSelection{All: true}, store.TableCall{})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "deleted", r.Deleted, 4)
		want(t, "rows", d.read(t, "SELECT * FROM sensors"), []string{})
		c, err := d.Consolidate(t.Context(), "sensors")
		if err != nil {
			t.Fatal(err)
		}
		want(t, "rows", c.Rows, 0)
		want(t, "files", d.files(t), 0)
	})
}

func TestLargeBatchesAreFilesThatAreMerged(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.make(t, "sensors", sensors, "id")
		for i := range 4 {
			d.insert(t, "sensors", many(i*500, 600), store.RowReplace)
		}
		d.insert(t, "sensors", `[{"id": 0, "site": "small"}]`, store.RowReplace)
		if _, err := d.Update(t.Context(), "sensors", store.RowSelection{Where: store.TableRow{"site": json.RawMessage(`"site 3"`)}}, store.TableRow{"value": json.RawMessage("0.5")}, store.TableCall{}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Delete(t.Context(), "sensors", store.RowSelection{Where: store.TableRow{"site": json.RawMessage(`"site 4"`)}}, store.TableCall{}); err != nil {
			t.Fatal(err)
		}
		check := func(when string) {
			t.Helper()
			want(t, when, d.read(t, `SELECT count(*), count(DISTINCT id), min(id), max(id), count(CASE WHEN value = 0.5 THEN 1 END), count(CASE WHEN site = 'site 4' THEN 1 END) FROM sensors`),
				[]string{"1890|1890|0|2099|210|0"})
			want(t, when, d.read(t, "SELECT * FROM sensors WHERE id = 0"), []string{"0|small|-"})
		}
		check("before")
		files := 0
		if d.dialect() == store.DuckDB {
			files = 5 // what the removal writes is less than a kilobyte
		}
		want(t, "files", d.files(t), files)
		c, err := d.Consolidate(t.Context(), "sensors")
		if err != nil {
			t.Fatal(err)
		}
		want(t, "consolidated", []int64{int64(c.FilesBefore), c.RowsBefore, c.Rows}, []int64{int64(files), 2400 + 1 + 210 + 210, 1890})
		check("after")
		d = d.reopen(t)
		if _, _, err := d.readable(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		check("after a restart")
		want(t, "files", d.files(t), min(files, 1))
		snapshot, err := d.cat.LatestSnapshot(t.Context(), "sensors")
		if err != nil {
			t.Fatal(err)
		}
		want(t, "files of the snapshot", len(snapshot.Files), min(files, 1))
		want(t, "the snapshot", snapshot.ID, c.Snapshot)
		d.insert(t, "sensors", many(5000, 100), store.RowFail)
		want(t, "rows besides the base", d.read(t, "SELECT count(*) FROM sensors"), []string{"1990"})
	})
}

func TestValuesStayExact(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.make(t, "v", `{"id": "string", "i": "int", "f": "float", "b": "bool", "ts": "timestamp", "d": "date", "j": "json"}`, "id")
		filler := strings.Repeat("x", 2000)
		for n, id := range []string{"small", filler} {
			d.insert(t, "v", fmt.Sprintf(`[{"id": %q, "i": 9007199254740993, "f": 0.1, "b": true, "ts": "2026-03-01T14:00:00.123456+02:00", "d": "2024-02-29", "j": {"big": 12345678901234567890123, "a": [1.0, null]}},
				{"id": "ü\u0000\"'\\ 世界 %d", "i": -9223372036854775808, "f": 1e300, "b": false, "j": "text"}, {"id": "null %d", "j": null}]`, id, n, n), store.RowFail)
		}
		check := func(when string) {
			t.Helper()
			instant := "strftime('%Y-%m-%dT%H:%M:%f', ts)"
			if d.dialect() == store.DuckDB {
				instant = "strftime(ts, '%Y-%m-%dT%H:%M:%S.%g')"
			}
			query := "SELECT CAST(i AS VARCHAR), f, CAST(b AS INTEGER), " + instant + ", CAST(d AS VARCHAR), CAST(j AS VARCHAR) FROM v WHERE "
			if d.dialect() == store.SQLite {
				query = strings.ReplaceAll(query, "VARCHAR", "TEXT")
			}
			for _, id := range []string{"small", filler} {
				want(t, when, d.read(t, query+"id = ?", id), []string{`9007199254740993|0.1|1|2026-03-01T12:00:00.123|2024-02-29|{"big":12345678901234567890123,"a":[1.0,null]}`})
			}
			for n := range 2 {
				want(t, when, d.read(t, query+"id = ?", fmt.Sprintf("ü\x00\"'\\ 世界 %d", n)), []string{`-9223372036854775808|1e+300|0|-|-|"text"`})
				want(t, when, d.read(t, query+"id = ?", fmt.Sprintf("null %d", n)), []string{`-|-|-|-|-|-`})
			}
		}
		check("as inserted")
		for column, value := range map[string]string{"i": "9007199254740993", "b": "true", "ts": `"2026-03-01 12:00:00.123456"`, "d": `"2024-02-29"`, "f": "0.1"} {
			r, err := d.Update(t.Context(), "v", store.RowSelection{Where: store.TableRow{column: json.RawMessage(value)}}, store.TableRow{column: json.RawMessage(value)}, store.TableCall{})
			if err != nil {
				t.Fatal(err)
			}
			want(t, "found by "+column, r.Updated, 2)
		}
		check("as updated")
		if _, err := d.Consolidate(t.Context(), "v"); err != nil {
			t.Fatal(err)
		}
		check("as consolidated")
	})
}

func TestWrongValuesAreRefused(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.make(t, "v", `[{"name": "id", "type": "int"}, {"name": "s", "type": "string", "nullable": false}, {"name": "ts", "type": "timestamp"}, {"name": "flag", "type": "bool"}, {"name": "day", "type": "date"}, {"name": "x", "type": "float"}]`, "id")
		for rows, text := range map[string]string{
			`[{"id": "1", "s": ""}]`:                          `row 0: column "id" takes a whole number of 64 bits, not "1"`,
			`[{"id": 1.5, "s": ""}]`:                          "not 1.5",
			`[{"id": 9223372036854775808, "s": ""}]`:          "not 9223372036854775808",
			`[{"id": 1e-400, "s": ""}]`:                       "not 1e-400",
			`[{"s": ""}]`:                                     `column "id" must have a value`,
			`[{"id": 1, "s": "x"}, {"id": 2}]`:                `row 1: column "s" must have a value`,
			`[{"id": 1, "s": 5}]`:                             "takes a string",
			`[{"id": 1, "s": "", "x": 1e999}]`:                "takes a number",
			`[{"id": 1, "s": "", "x": "1"}]`:                  "takes a number",
			`[{"id": 1, "s": "", "flag": 1}]`:                 "true or false",
			`[{"id": 1, "s": "", "ts": 5}]`:                   "a time like",
			`[{"id": 1, "s": "", "ts": "yesterday"}]`:         "a time like",
			`[{"id": 1, "s": "", "day": "2026-02-30"}]`:       "a date like",
			`[{"id": 1, "s": "", "flagg": true}]`:             `no column "flagg"; did you mean "flag"?`,
			`[{"id": 1, "s": ""}, {"id": 1.0, "s": "again"}]`: "the key [1] appears in an earlier row",
		} {
			_, err := d.Insert(t.Context(), "v", rowsOf(t, rows), store.RowFail, store.TableCall{})
			fails(t, rows, err, tea.ValidationError, text)
		}
		d.insert(t, "v", `[{"id": 5e0, "s": ""}, {"id": 6.0, "s": ""}]`, store.RowFail)
		none := store.RowSelection{}
		key := store.RowSelection{Keys: []json.RawMessage{json.RawMessage("5")}}
		for text, update := range map[string]struct {
			which store.RowSelection
			set   string
		}{
			"select rows with keys":             {none, `{"s": "x"}`},
			"primary key":                       {key, `{"id": 7}`},
			`column "s" must`:                   {key, `{"s": null}`},
			`did you mean "flag"`:               {key, `{"flags": null}`},
			"set has no column":                 {key, `{}`},
			"has no column \"q\"":               {store.RowSelection{Where: store.TableRow{"q": nil}}, `{"s": "x"}`},
			"key 0: the primary key has":        {store.RowSelection{Keys: []json.RawMessage{json.RawMessage("[1, 2]")}}, `{"s": "x"}`},
			"key 0: column \"id\" takes":        {store.RowSelection{Keys: []json.RawMessage{json.RawMessage(`"x"`)}}, `{"s": "x"}`},
			"is not a column of the primary ke": {store.RowSelection{Keys: []json.RawMessage{json.RawMessage(`{"id": 1, "s": 2}`)}}, `{"s": "x"}`},
		} {
			var set store.TableRow
			if err := json.Unmarshal([]byte(update.set), &set); err != nil {
				t.Fatal(err)
			}
			_, err := d.Update(t.Context(), "v", update.which, set, store.TableCall{})
			fails(t, text, err, tea.ValidationError, text)
		}
		_, err := d.Insert(t.Context(), "w", nil, store.RowFail, store.TableCall{})
		fails(t, "no such table", err, tea.NotFound, `no table of data.create_table "w"`)
		want(t, "rows", d.read(t, "SELECT count(*) FROM v"), []string{"2"})
	})
}

func TestNamesAreNoWayIn(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		for _, name := range []string{
			"", "a b", `a"b`, "a;DROP TABLE ltm", "a'", "1a", "é", "documents", "LTM", "vectors", "tea_rows_x", "TEA_schema", "sqlite_master", "sqlite_x",
			"duckdb_tables", "information_schema", "json_each", "JSON_TREE", strings.Repeat("a", 64), "../x", "a\x00",
		} {
			_, err := d.Create(t.Context(), store.NewTable{Name: name, Schema: json.RawMessage(`{"a": "int"}`)})
			fails(t, "table "+name, err, tea.ValidationError, "")
		}
		for _, schema := range []string{
			`[]`, `{}`, `null`, `5`, `["a"]`, `{"a b": "int"}`, `{"a\"": "int"}`, `{"a": "integer64"}`, `{"_tea_seq": "int"}`, `{"true": "int"}`, `{"False": "int"}`, `{"a": "int", "A": "int"}`,
			`[{"name": "a", "type": "int); DROP TABLE ltm"}]`, `[{"name": "a", "kind": "int"}]`, `{"a": {"type": "int", "required": true, "nullable": true}}`,
		} {
			_, err := ParseSchema(json.RawMessage(schema), nil)
			fails(t, schema, err, tea.ValidationError, "")
		}
		_, err := ParseSchema(json.RawMessage(`{"name": "strng"}`), nil)
		fails(t, "a type", err, tea.ValidationError, `did you mean "string"?`)
		_, err = ParseSchema(json.RawMessage(`{"name": "string", "j": "json"}`), []string{"j"})
		fails(t, "a key", err, tea.ValidationError, "json")
		// Words of SQL are names like others, and values are only values.
		d.make(t, "select", `{"from": "string", "order": "int", "rowid": "int", "group": "json"}`, "from", "order")
		hostile := `'); DROP TABLE \"select\"; --`
		d.insert(t, "select", `[{"from": "`+hostile+`", "order": 1, "rowid": 5, "group": {"$.x": "'"}}, {"from": "b", "order": 2}]`, store.RowFail)
		r, err := d.Update(t.Context(), "Select", store.RowSelection{Keys: []json.RawMessage{json.RawMessage(`["` + hostile + `", 1]`)}}, store.TableRow{"rowid": json.RawMessage("6")}, store.TableCall{})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "updated", r.Updated, 1)
		want(t, "rows", d.read(t, `SELECT "from", "order", "rowid" FROM "select" WHERE "order" = 1`), []string{`'); DROP TABLE "select"; --|1|6`})
		_, err = d.Create(t.Context(), store.NewTable{Name: "SELECT", Schema: json.RawMessage(`{"a": "int"}`)})
		fails(t, "another case", err, tea.ValidationError, "already")
	})
}

func TestATableWithoutKey(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.make(t, "events", `{"text": "string"}`)
		d.insert(t, "events", `[{"text": "a"}, {"text": "a"}, {"text": "b"}]`, store.RowFail)
		d.insert(t, "events", `[{"text": "a"}]`, store.RowFail)
		r, err := d.Delete(t.Context(), "events", store.RowSelection{Where: store.TableRow{"text": json.RawMessage(`"b"`)}}, store.TableCall{})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "deleted", r.Deleted, 1)
		want(t, "rows", d.read(t, "SELECT text FROM events"), []string{"a", "a", "a"})
		_, err = d.Delete(t.Context(), "events", store.RowSelection{Keys: []json.RawMessage{json.RawMessage("1")}}, store.TableCall{})
		fails(t, "a key", err, tea.ValidationError, "has no primary key")
	})
}
