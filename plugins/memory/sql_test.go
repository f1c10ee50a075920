package memory_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// ask returns the rows of memory.sql_query as JSON.
func (a *agent) ask(t *testing.T, query string, parameters any) string {
	t.Helper()
	params := map[string]any{"sql": query}
	if parameters != nil {
		params["parameters"] = parameters
	}
	text, err := json.Marshal(a.do(t, "memory.sql_query", params)["rows"])
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// filled is a memory with something of everything.
func filled(t *testing.T, a *agent) {
	t.Helper()
	a.do(t, "ltm.store", map[string]any{"items": []any{
		map[string]any{"key": "user/1", "value": map[string]any{"name": "ann", "age": 30, "big": json.Number("12345678901234567890")}, "metadata": map[string]any{"kind": "person"}},
		map[string]any{"key": "user/2", "value": map[string]any{"name": "bob", "age": 41}, "ttl": 1e6},
		map[string]any{"key": "over", "value": "gone", "ttl": 1e-6},
		map[string]any{"key": "large", "value": strings.Repeat("x", 5000)},
		map[string]any{"key": "none", "value": nil},
	}})
	a.do(t, "session.create", map[string]any{"session_id": "s1", "user_id": "ann", "metadata": map[string]any{"n": 1}})
	a.do(t, "session.create", map[string]any{"session_id": "s2", "user_id": "bob", "ttl": 1e-6})
	a.do(t, "session.create", map[string]any{"session_id": "s3", "user_id": "bob"})
	a.do(t, "session.archive", map[string]any{"session_id": "s3", "reason": "done"})
	a.do(t, "memory.file_store", map[string]any{"path": "notes/a.md", "content": "# one\ntwo\n", "metadata": map[string]any{"tag": "x"}})
	a.do(t, "memory.file_store", map[string]any{"path": "b.txt", "content": "three", "session_id": "s1"})
	a.do(t, "vector.store", map[string]any{"texts": []any{"pump"}, "ids": []any{"p"}, "embeddings": []any{[]any{1, 0}}, "metadata": []any{map[string]any{"a": 1}}, "collection": "c"})
	a.do(t, "catalog.register_table", map[string]any{"name": "readings", "format": "parquet"})
	a.do(t, "catalog.track_file", map[string]any{"table": "readings", "path": "r/1.parquet", "size": 10})
}

func TestSQLQueryReadsTheMemory(t *testing.T) {
	t.Parallel()
	linkedAgents(t, func() *teatest.Host { return &teatest.Host{} }, func(t *testing.T, a *agent) {
		filled(t, a)
		for query, want := range map[string]string{
			"SELECT key, inlined FROM memories ORDER BY key":                                                                                    `[{"inlined":false,"key":"large"},{"inlined":true,"key":"none"},{"inlined":true,"key":"user/1"},{"inlined":true,"key":"user/2"}]`,
			"SELECT value, metadata FROM memories WHERE key = 'user/1'":                                                                         `[{"metadata":{"kind":"person"},"value":{"age":30,"big":12345678901234567890,"name":"ann"}}]`,
			"SELECT value, metadata FROM memories WHERE key IN ('large', 'none')":                                                               `[{"metadata":null,"value":null},{"metadata":null,"value":null}]`,
			"SELECT value ->> '$.name' AS name, CAST(value ->> '$.age' AS INTEGER) AS age FROM memories WHERE metadata ->> '$.kind' = 'person'": `[{"age":30,"name":"ann"}]`,
			"SELECT count(*) AS n FROM memories WHERE created_at <= updated_at AND (expires_at IS NULL OR expires_at > created_at)":             `[{"n":4}]`,
			"SELECT count(expires_at) AS n, count(DISTINCT content_hash) AS hashes FROM memories":                                               `[{"hashes":4,"n":1}]`,
			"SELECT session_id, user_id, status, reason, metadata FROM sessions ORDER BY 1":                                                     `[{"metadata":{"n":1},"reason":null,"session_id":"s1","status":"active","user_id":"ann"},{"metadata":null,"reason":"expired","session_id":"s2","status":"archived","user_id":"bob"},{"metadata":null,"reason":"done","session_id":"s3","status":"archived","user_id":"bob"}]`,
			"SELECT path, type, size, is_text, lines, tokens > 0 AS has_tokens, archived, session_id, metadata FROM files ORDER BY 1 LIMIT 1":   `[{"archived":false,"has_tokens":TRUE,"is_text":true,"lines":2,"metadata":{"tag":"x"},"path":"notes/a.md","session_id":null,"size":10,"type":"text/markdown"}]`,
			"SELECT s.user_id, count(f.path) AS files FROM sessions s LEFT JOIN files f USING (session_id) GROUP BY 1 ORDER BY 1":               `[{"files":1,"user_id":"ann"},{"files":0,"user_id":"bob"}]`,
			"SELECT * FROM vectors": `[{"collection":"c","dimension":2,"id":"p","metadata":{"a":1},"text":"pump"}]`,
			"SELECT t.name, f.path, f.size FROM catalog_tables t JOIN catalog_files f ON f.table_name = t.name": `[{"name":"readings","path":"r/1.parquet","size":10}]`,
			"WITH m AS (SELECT * FROM memories) SELECT count(*) AS n FROM m":                                    `[{"n":4}]`,
			"SELECT key FROM memories WHERE key = 'nothing'":                                                    `[]`,
		} {
			got := a.ask(t, query, nil)
			got = strings.ReplaceAll(strings.ReplaceAll(got, `"has_tokens":true`, `"has_tokens":TRUE`), `"has_tokens":1`, `"has_tokens":TRUE`)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", query, diff)
			}
		}
		got := a.do(t, "memory.sql_query", map[string]any{"sql": "SELECT 1 AS a, 2 AS a, 3 AS a"})
		if columns := got["columns"].([]any); len(columns) != 3 || columns[0] != "a" || len(got["rows"].([]any)[0].(map[string]any)) != 3 {
			t.Errorf("equal names: %v %v", columns, got["rows"])
		}
		for _, table := range []string{"memories", "sessions", "files", "vectors", "catalog_tables", "catalog_files"} {
			a.do(t, "memory.sql_query", map[string]any{"sql": "SELECT * FROM " + table})
		}
	})
}

func TestSQLQueryComparesInstantsInEveryForm(t *testing.T) {
	t.Parallel()
	linkedAgents(t, func() *teatest.Host { return &teatest.Host{} }, func(t *testing.T, a *agent) {
		filled(t, a)
		for table, one := range map[string]string{"memories": "key = 'none'", "sessions": "session_id = 's1'", "files": "path = 'notes/a.md'"} {
			rows := a.do(t, "memory.sql_query", map[string]any{"sql": "SELECT created_at FROM " + table + " WHERE " + one})["rows"].([]any)
			created := rows[0].(map[string]any)["created_at"].(string)
			same(t, table, a.ask(t, "SELECT count(*) AS n FROM "+table+" WHERE "+one+" AND created_at = ?", []any{strings.Replace(created, "T", " ", 1)}), `[{"n":1}]`)
		}
	})
}

func TestSQLQueryTakesParameters(t *testing.T) {
	t.Parallel()
	linkedAgents(t, func() *teatest.Host { return &teatest.Host{} }, func(t *testing.T, a *agent) {
		filled(t, a)
		same(t, "places", a.ask(t, "SELECT key FROM memories WHERE key > ? AND key < ? ORDER BY key", []any{"a", "user/2"}), `[{"key":"large"},{"key":"none"},{"key":"user/1"}]`)
		same(t, "numbers", a.ask(t, "SELECT key FROM memories WHERE key = $2 OR key = $1 ORDER BY key", []any{"none", "large"}), `[{"key":"large"},{"key":"none"}]`)
		same(t, "names", a.ask(t, "SELECT key FROM memories WHERE key = $a OR key = $b ORDER BY key", map[string]any{"b": "none", "a": "large"}), `[{"key":"large"},{"key":"none"}]`)
		same(t, "one name twice", a.ask(t, "SELECT $x AS a, $x AS b", map[string]any{"x": "'; DROP TABLE ltm; --"}), `[{"a":"'; DROP TABLE ltm; --","b":"'; DROP TABLE ltm; --"}]`)
		same(t, "types", a.ask(t, "SELECT ? AS i, ? AS f, ? AS n", []any{7, 1.5, nil}), `[{"f":1.5,"i":7,"n":null}]`)
		same(t, "a list", a.ask(t, "SELECT json_array_length(?) AS n", []any{[]any{"none", "large"}}), `[{"n":2}]`)
		for query, parameters := range map[string]any{
			"SELECT ?": []any{}, "SELECT ?, 1": []any{1, 2}, "SELECT $a": map[string]any{"b": 1}, "SELECT $a, 1": []any{1}, "SELECT 1": []any{1}, "SELECT 2": "text", "SELECT $1": map[string]any{"1": 1},
		} {
			a.fails(t, tea.ValidationError, "memory.sql_query", map[string]any{"sql": query, "parameters": parameters})
		}
	})
}

func TestSQLQueryKeepsItsBounds(t *testing.T) {
	t.Parallel()
	linkedAgents(t, func() *teatest.Host { return &teatest.Host{} }, func(t *testing.T, a *agent) {
		filled(t, a)
		const numbers = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5000) SELECT n FROM t"
		got := a.do(t, "memory.sql_query", map[string]any{"sql": numbers})
		same(t, "default", []any{got["row_count"], got["truncated"], got["columns"]}, []any{int64(1000), true, []any{"n"}})
		got = a.do(t, "memory.sql_query", map[string]any{"sql": numbers, "max_rows": 5000})
		same(t, "all", []any{got["row_count"], got["truncated"]}, []any{int64(5000), false})
		a.fails(t, tea.Timeout, "memory.sql_query", map[string]any{"sql": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t", "timeout_seconds": 0.05})
		for _, query := range []string{
			"SELECT * FROM ltm", "SELECT * FROM main.vectors", "SELECT embedding FROM vectors", "SELECT * FROM documents", "SELECT id, seq FROM memories", "SELECT * FROM tea_identity", "SELECT body FROM files",
			"WITH memories AS (SELECT * FROM main.ltm) SELECT * FROM memories", "WITH files AS (SELECT * FROM documents) SELECT * FROM files", "DELETE FROM ltm", "DELETE FROM memories", "SELECT 1; SELECT 2", "SELECT * FROM read_text('/etc/passwd')", "SELECT nonsense FROM memories",
			"SELECT * FROM sqlite_master", "SELECT * FROM duckdb_tables()", "ATTACH 'x' AS y", "",
		} {
			a.fails(t, tea.ValidationError, "memory.sql_query", map[string]any{"sql": query})
		}
		same(t, "unharmed", a.ask(t, "SELECT count(*) AS n FROM memories", nil), `[{"n":4}]`)
	})
}
