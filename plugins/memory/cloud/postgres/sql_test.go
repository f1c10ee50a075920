package postgres

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// openSQL opens a memory with two entries and a table of another schema.
func openSQL(t testing.TB) *store.Stores {
	t.Helper()
	config := configOf(t, time.Now)
	stores, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := (&backend[any]{nil, stores}).Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := stores.LongTerm.Store(t.Context(),
		store.Entry{Key: "a", Value: json.RawMessage(`{"n": 9007199254740993, "s": "x"}`), Metadata: json.RawMessage(`{"k": [1, null]}`)},
		store.Entry{Namespace: "other", Key: "b\x00", Value: json.RawMessage(`"\u0000"`)}); err != nil {
		t.Fatal(err)
	}
	if err := stores.Vectors.Store(t.Context(), "c", store.VectorItem{ID: "v", Text: "text", Embedding: []float32{1, 0}}); err != nil {
		t.Fatal(err)
	}
	if err := stores.Metadata.Apply(t.Context(), store.Change{Kind: file.Kind, ID: "notes.md", Body: json.RawMessage(`{"size": 3, "text": true, "created_at": "2026-01-02T03:04:05.000006Z"}`)}); err != nil {
		t.Fatal(err)
	}
	return stores
}

func sandboxed(args ...any) store.Sandbox {
	return store.Sandbox{Views: []store.View{file.View(store.PostgreSQL)}, MaxRows: 10, MaxBytes: 100_000, Timeout: time.Minute, Args: args}
}

func TestZeroHasNoSign(t *testing.T) {
	t.Parallel()
	found, err := openSQL(t).SQL.Select(t.Context(), "SELECT '-0'::float8, '-0'::float4", sandboxed())
	if got := fmt.Sprint(found.Rows); err != nil || got != "[[0 0]]" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestSelectReadsTheMemory(t *testing.T) {
	t.Parallel()
	stores := openSQL(t)
	for _, test := range []struct {
		query string
		args  []any
		want  [][]any
	}{
		{"SELECT key, value, metadata, inlined FROM memories WHERE namespace = ''", nil, [][]any{{"a", map[string]any{"n": int64(9007199254740993), "s": "x"}, map[string]any{"k": []any{int64(1), nil}}, true}}},
		{"SELECT namespace, value ->> 's' FROM memories ORDER BY 1 DESC;", nil, [][]any{{"other", nil}, {"", "x"}}},
		{"SELECT path, size + 1, is_text, created_at FROM files -- a comment", nil, [][]any{{"notes.md", int64(4), true, "2026-01-02T03:04:05.000006Z"}}},
		{`WITH "v" AS (SELECT * FROM vectors) SELECT v.id, v."dimension" FROM v`, nil, [][]any{{"v", int64(2)}}},
		{"SELECT $1::int + 1, ?", []any{int64(41), "it's"}, [][]any{{int64(42), "it's"}}},
		{"SELECT $b, $a, $b", []any{sql.Named("a", "1"), sql.Named("b", "2")}, [][]any{{"2", "1", "2"}}},
		{"SELECT sum(n), 2::numeric(3,1), 'NaN'::numeric, 1e20::numeric FROM (VALUES (9007199254740993::bigint), (0)) AS v (n)", nil, [][]any{{int64(9007199254740993), 2.0, nil, json.Number("100000000000000000000")}}},
		{"SELECT 1.5::numeric(3,1), 'NaN'::float8, 'a''b;--', '\\x00ff'::bytea, NULL, ARRAY[1,2], timestamp '2026-01-02 03:04:05'", nil, [][]any{{1.5, nil, "a'b;--", "AP8=", nil, "{1,2}", "2026-01-02T03:04:05Z"}}},
		{"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT string_agg(i::text, ',' ORDER BY i) FROM n", nil, [][]any{{"1,2,3"}}},
		{"SELECT count(*) FILTER (WHERE key > '') AS user_count, max(region.x) FROM memories, (SELECT 1) AS region(x)", nil, [][]any{{int64(2), int64(1)}}},
		{"VALUES (1), (2)", nil, [][]any{{int64(1)}, {int64(2)}}},
		{"SELECT k, v FROM memories, jsonb_each_text(value) AS e(k, v) WHERE namespace = '' ORDER BY k", nil, [][]any{{"n", "9007199254740993"}, {"s", "x"}}},
	} {
		found, err := stores.SQL.Select(t.Context(), test.query, sandboxed(test.args...))
		if err != nil {
			t.Errorf("%s: %v", test.query, err)
			continue
		}
		if d := cmp.Diff(test.want, found.Rows); d != "" {
			t.Errorf("%s: %s", test.query, d)
		}
	}
	bounds := sandboxed()
	bounds.MaxRows = 2
	found, err := stores.SQL.Select(t.Context(), "VALUES (1), (2), (3)", bounds)
	if err != nil || !found.Truncated || len(found.Rows) != 2 {
		t.Errorf("%v, %v", found, err)
	}
	bounds = sandboxed()
	bounds.MaxBytes = 100
	found, err = stores.SQL.Select(t.Context(), "SELECT 'a text of some bytes' FROM memories, (VALUES (1), (2), (3), (4)) AS v", bounds)
	if err != nil || !found.Truncated || len(found.Rows) == 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// TestSelectRefusesEverythingElse has the table secret in a schema that the user
// can read.
func TestSelectRefusesEverythingElse(t *testing.T) {
	t.Parallel()
	stores := openSQL(t)
	schema := server.Schema(t)
	administer(t, server.URL(t), `CREATE SCHEMA IF NOT EXISTS "sets"`, `CREATE TABLE IF NOT EXISTS "sets".secret AS SELECT 'hunter2' AS word`)
	for query, want := range map[string]string{
		"":                                    "empty",
		"-- nothing":                          "empty",
		"DELETE FROM memories":                "begins with SELECT",
		"SELECT 1; SELECT 2":                  "a second statement",
		"SELECT 1) AS x; DROP TABLE y; --":    "not opened",
		"SELECT 1) UNION SELECT (2":           "not opened",
		"SELECT (1":                           "not closed",
		"SELECT 'a":                           "no end",
		"SELECT /* /* */ 1":                   "no end",
		"SELECT pg_sleep(1)":                  "the server's own names",
		`SELECT "pg_sleep"(1)`:                "the server's own names",
		"SELECT PG_READ_FILE('/etc/passwd')":  "the server's own names",
		"SELECT version()":                    "the function version",
		"SELECT set_config('a.b', 'c', true)": "the function set_config",
		"SELECT /**/ \"lo_import\"\n('/etc/passwd')":                   "the function lo_import",
		"SELECT query_to_xml('SELECT 1', true, true, '')":              "the function query_to_xml",
		"SELECT repeat('x', 1000000000)":                               "the function repeat",
		"SELECT * FROM sets.secret":                                    "the schema sets",
		`SELECT * FROM "sets" /* */ . "secret"`:                        "the schema sets",
		"SELECT * FROM memories, sets.secret":                          "the schema sets",
		"SELECT * FROM postgres.sets.secret":                           "the schema sets",
		"SELECT (SELECT word FROM sets.secret)":                        "the schema sets",
		"SELECT * FROM " + schema + ".documents":                       "the schema " + schema,
		"SELECT * FROM documents":                                      "does not exist",
		"SELECT * FROM secret":                                         "does not exist",
		"SELECT * FROM pg_shadow":                                      "the server's own names",
		"SELECT * FROM information_schema.tables":                      "the server's own names",
		"TABLE memories":                                               "begins with SELECT",
		"SELECT * INTO x FROM memories":                                "INTO",
		"SELECT current_user":                                          "CURRENT_USER",
		"SELECT 'sets.secret'::regclass":                               "REGCLASS",
		`SELECT 'sets.secret'::"regclass"`:                             "REGCLASS",
		`SELECT "xml" '<a/>'`:                                          "XML",
		"SELECT 1 OPERATOR(sets.+) 2":                                  "OPERATOR",
		"SELECT U&'\\0061'":                                            "prefix",
		`SELECT * FROM U&"\0073ets".secret`:                            "prefix",
		"SELECT E'\\'; --'":                                            "prefix",
		"SELECT $$a$$":                                                 "dollar",
		"SELECT $a$b$a$":                                               "dollar",
		"WITH x AS (DELETE FROM memories RETURNING 1) SELECT * FROM x": "",
		"WITH x AS (SELECT 1), pg_x(a) AS (SELECT 2) SELECT 1":         "the server's own names",
		"SELECT \x01":                                                  "the character",
		"SELECT $1":                                                    "no argument",
		"SELECT nothing FROM memories":                                 "1:8",
		"SELECT 1 /":                                                   "",
	} {
		_, err := stores.SQL.Select(t.Context(), query, sandboxed())
		if e := tea.AsError(err); e == nil || e.Type != tea.ValidationError || !strings.Contains(e.Message, want) {
			t.Errorf("%q: %v, want a validation_error with %q", query, err, want)
		}
	}
	for query, want := range map[string]tea.ErrorType{
		"SELECT 1 / 0": tea.QueryError,
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) FROM n": tea.Timeout,
	} {
		bounds := sandboxed()
		bounds.Timeout = time.Second
		_, err := stores.SQL.Select(t.Context(), query, bounds)
		if e := tea.AsError(err); e == nil || e.Type != want {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
	if _, err := stores.SQL.Select(t.Context(), "SELECT 1", sandboxed()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestSQLQueryOfTheBundle runs the actions: memory.sql_query works, the tables of
// data.* are a capability that is missing.
func TestSQLQueryOfTheBundle(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(map[string]any{"engine": "postgres", "url": server.URL(t), "path": t.TempDir(), "options": map[string]any{"schema": server.Schema(t)}})
	if err != nil {
		t.Fatal(err)
	}
	instance, err := teatest.Linked(memory.Bundle(Option())).Open(t.Context(), tea.Settings{"memory": raw})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = instance.Close() })
	call := func(action string, params map[string]any) (any, error) {
		resp, err := instance.Invoke(t.Context(), &tea.Request{Action: action, Params: tea.ValuePayload(params), Call: tea.Call{Attempt: 1}, Host: &teatest.Host{}})
		if err != nil {
			return nil, err
		}
		return resp.Result.Value()
	}
	if _, err := call("ltm.store", map[string]any{"key": "a", "value": map[string]any{"n": 1}}); err != nil {
		t.Fatal(err)
	}
	session, err := call("session.create", map[string]any{"user_id": "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call("memory.file_store", map[string]any{"path": "notes.md", "session_id": session.(map[string]any)["session_id"], "content": "# Lights"}); err != nil {
		t.Fatal(err)
	}
	found, err := call("memory.sql_query", map[string]any{"sql": `SELECT m.value, s.user_id, s.status, f.path, (SELECT count(*) FROM catalog_tables) AS tables, (SELECT count(*) FROM catalog_files) AS files,
		(SELECT count(*) FROM vectors) AS vectors FROM memories AS m, sessions AS s, files AS f WHERE m.key = $1`, "parameters": []any{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	row := found.(map[string]any)["rows"].([]any)[0].(map[string]any)
	if !strings.HasSuffix(row["path"].(string), "notes.md") {
		t.Errorf("path %v", row["path"])
	}
	delete(row, "path")
	want := map[string]any{"value": map[string]any{"n": int64(1)}, "user_id": "ann", "status": "active", "tables": int64(0), "files": int64(0), "vectors": int64(0)}
	if d := cmp.Diff(want, row); d != "" {
		t.Error(d)
	}
}

func FuzzCheck(f *testing.F) {
	for _, query := range []string{"SELECT 1", "SELECT a.b(c) FROM d -- x", `WITH "a" AS (SELECT $1, $b, ?) SELECT * FROM a /* /* */ */;`, "SELECT 'it''s', 1.5e3::numeric(2), x[1:2]"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		c, err := check(query, sandboxed())
		if err != nil {
			if e := tea.AsError(err); e.Type != tea.ValidationError {
				t.Error(err)
			}
			return
		}
		again, err := check(c.sql, sandboxed())
		if err != nil || again.sql != c.sql {
			t.Errorf("%q becomes %q, %v", query, c.sql, err)
		}
	})
}

func TestTheGuideSaysHowTheDialectsDiffer(t *testing.T) {
	t.Parallel()
	stores := openSQL(t)
	storetest.Dialect(t, store.PostgreSQL, func(query string, bounds store.Sandbox) (store.Table, error) {
		return stores.SQL.Select(t.Context(), query, bounds)
	})
}
