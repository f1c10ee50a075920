//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// opened returns a new database in dir.
func opened(t *testing.T, dir string) *DB {
	t.Helper()
	need(t)
	s, err := Open(t.Context(), store.Options{Dir: dir, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.(*DB)
}

func entity(id, kind, properties string) store.Entity {
	return store.Entity{ID: id, Type: kind, Properties: []byte(properties), CreatedAt: 1, UpdatedAt: 2}
}

func relation(from, kind, to string) store.Relation {
	return store.Relation{RelationKey: store.RelationKey{From: from, Type: kind, To: to, ValidFrom: store.Always}, ValidTo: store.Forever, Properties: []byte(`{}`), Weight: 1}
}

func apply(t *testing.T, db *DB, b store.Batch) {
	t.Helper()
	if err := db.Apply(t.Context(), "default", b); err != nil {
		t.Fatal(err)
	}
}

// pipes is a line of two valves and a tank.
func pipes(t *testing.T) *DB {
	t.Helper()
	db := opened(t, t.TempDir())
	apply(t, db, store.Batch{
		Entities:  []store.Entity{entity("v1", "valve", `{"bar":3,"f":2.0}`), entity("v2", "valve", `{}`), entity("t1", "tank", `{"l":[1,null]}`)},
		Relations: []store.Relation{relation("v1", "feeds", "v2"), relation("v2", "feeds", "t1")},
	})
	return db
}

func query(ctx context.Context, db *DB, text string, p map[string]any) (*store.Table, error) {
	return db.Query(ctx, store.Query{Text: text, Params: p, ReadOnly: true, MaxRows: 100})
}

func TestQueriesReturnValues(t *testing.T) {
	t.Parallel()
	db := pipes(t)
	v1 := store.Node("v1", "valve", map[string]any{"bar": int64(3), "f": 2.0})
	v2 := store.Node("v2", "valve", map[string]any{})
	feeds := store.Edge("v1", "feeds", "v2", map[string]any{})
	for name, c := range map[string]struct {
		text   string
		params map[string]any
		want   [][]any
	}{
		"node":         {"MATCH (e:Entity {id: 'v1'}) RETURN e", nil, [][]any{{v1}}},
		"relationship": {"MATCH (:Entity {id: 'v1'})-[r]->() RETURN r", nil, [][]any{{feeds}}},
		"path":         {"MATCH p = (:Entity {id: 'v1'})-[:Relation]->(:Entity) RETURN p", nil, [][]any{{store.Path([]any{v1, v2}, []any{feeds})}}},
		"variable length": {
			"MATCH (a:Entity {id: $id})-[:Relation*1..5]->(b:Entity) RETURN b.id ORDER BY b.id",
			map[string]any{"id": "v1"},
			[][]any{{"t1"}, {"v2"}},
		},
		"shortest path": {"MATCH (a:Entity {id: 'v1'})-[r:Relation* SHORTEST 1..5]->(b:Entity {id: 't1'}) RETURN length(r)", nil, [][]any{{int64(2)}}},
		"scalars":       {"RETURN 1, -2.5, 'é', true, null, [1, 2], {a: 1, b: 'x'}", nil, [][]any{{int64(1), -2.5, "é", true, nil, []any{int64(1), int64(2)}, map[string]any{"a": int64(1), "b": "x"}}}},
		"large numbers": {"RETURN 9223372036854775807, CAST('170141183460469231731687303715884105727' AS INT128)", nil, [][]any{{int64(9223372036854775807), json.Number("170141183460469231731687303715884105727")}}},
		"times":         {"RETURN date('2024-02-29'), timestamp('2024-01-01 10:00:00')", nil, [][]any{{"2024-02-29", "2024-01-01 10:00:00"}}},
		"parameters": {
			"RETURN $i, $f, $s, $b, $n, $l, $m, $mixed, $objects",
			map[string]any{
				"i": int64(-1 << 63), "f": 1e308, "s": "quote ' \" \\ $x 👍", "b": false, "n": nil, "l": []any{"a", nil}, "m": map[string]any{"x": int64(1), "y": []any{int64(2)}},
				"mixed": []any{int64(1), 2.5}, "objects": []any{map[string]any{"a": int64(1)}, map[string]any{"b": "x"}},
			},
			[][]any{{
				int64(-1 << 63), 1e308, "quote ' \" \\ $x 👍", false, nil,
				[]any{"a", nil},
				map[string]any{"x": int64(1), "y": []any{int64(2)}},
				[]any{1.0, 2.5},
				[]any{map[string]any{"a": int64(1), "b": nil}, map[string]any{"a": nil, "b": "x"}},
			}},
		},
		"a parameter is data": {"MATCH (e:Entity) WHERE e.id = $id RETURN e.id", map[string]any{"id": "v1' OR true //"}, [][]any{}},
		"aggregate":           {"MATCH (e:Entity) RETURN e.type, count(*) ORDER BY e.type", nil, [][]any{{"tank", int64(1)}, {"valve", int64(2)}}},
		"union":               {"RETURN 1 AS x UNION ALL RETURN 2 AS x", nil, [][]any{{int64(1)}, {int64(2)}}},
		"union of parts":      {"MATCH (e:Entity) WITH e.type AS t, count(*) AS n WHERE n > 1 RETURN t, n", nil, [][]any{{"valve", int64(2)}}},
		"subquery":            {"MATCH (e:Entity) WHERE NOT EXISTS { MATCH (e)-[:Relation]->() } RETURN e.id", nil, [][]any{{"t1"}}},
		"tables":              {"CALL show_tables() RETURN name ORDER BY name", nil, [][]any{{"Entity"}, {"Meta"}, {"Relation"}}},
	} {
		got, err := query(t.Context(), db, c.text, c.params)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(c.want, got.Rows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Each attack is refused, and has no effect.
func TestQueriesCannotLeaveTheGraph(t *testing.T) {
	t.Parallel()
	db := pipes(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret.csv")
	if err := os.WriteFile(secret, []byte("a,b\nsecret,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(outside, "out")
	for _, text := range []string{
		"COPY Entity FROM '%s'", "COPY (MATCH (e:Entity) RETURN e) TO '%t.csv'", "COPY (RETURN 1) TO '%t.parquet'", "COPY Entity FROM (LOAD FROM '%s' RETURN *)",
		"LOAD FROM '%s' RETURN *", "load /* x */ from \"%s\" (header=true) return *", "LOAD WITH HEADERS (a STRING, b INT64) FROM '%s' RETURN a",
		"MATCH (e:Entity) WITH e LOAD FROM '%s' RETURN *", "RETURN 1 AS a UNION ALL LOAD FROM '%s' RETURN b", "LOAD FROM '%s' WITH * RETURN *",
		"UNWIND [1] AS x LOAD FROM '%s' RETURN *", "LOAD FROM $file RETURN *", "LOAD FROM 'http://127.0.0.1:9/x.csv' RETURN *", "LOAD FROM 's3://bucket/x.csv' RETURN *",
		"INSTALL httpfs", "UNINSTALL httpfs", "UPDATE httpfs", "LOAD EXTENSION httpfs", "LOAD EXTENSION '%s'", "LOAD httpfs",
		"ATTACH '%s' AS other (dbtype kuzu)", "ATTACH '%s' (dbtype sqlite)", "DETACH other", "USE other",
		"EXPORT DATABASE '%t'", "IMPORT DATABASE '%s'",
		"CALL threads=1", "CALL timeout=1", "CALL home_directory='%t'", "CALL file_search_path='/'", "CALL spill_to_disk=true", "CALL debug_enable_multi_writes=true", "CALL enable_internal_catalog=true",
		"CALL READ_CSV_SERIAL('%s') RETURN *", "CALL READ_CSV_PARALLEL('%s') RETURN *", "CALL READ_PARQUET('%s') RETURN *", "CALL JSON_SCAN('%s') RETURN *", "CALL READ_NPY('%s') RETURN *", "CALL READ_PANDAS('%s') RETURN *",
		"CALL storage_info('Entity') RETURN *", "CALL show_official_extensions() RETURN *", "CALL show_attached_databases() RETURN *", "CALL bm_info() RETURN *", "CALL file_info() RETURN *", "CALL clear_warnings()",
		"CALL create_fts_index('Entity', 'x', ['text'])", "CALL create_vector_index('Entity', 'x', 'embedding')", "CALL project_graph('g', ['Entity'], ['Relation'])", "CALL project_graph_cypher('g', 'MATCH (n) RETURN n')",
		"CALL drop_fts_index('Entity', 'x')", "CALL _CREATE_HNSW_INDEX('x') RETURN *", "CALL page_rank('g') RETURN *",
		"CREATE (:Entity {key: 'x'})", "MATCH (e:Entity) SET e.text = 'x'", "MATCH (e:Entity) DETACH DELETE e", "MERGE (:Entity {key: 'x'})", "MATCH (e:Entity) WITH e SET e.text = 'x' RETURN e",
		"MATCH (e:Entity) REMOVE e.text", "RETURN 1 AS x UNION ALL MATCH (e:Entity) DELETE e RETURN 2 AS x",
		"CREATE NODE TABLE X(a INT64 PRIMARY KEY)", "CREATE REL TABLE X(FROM Entity TO Entity)", "DROP TABLE Entity", "ALTER TABLE Entity ADD x INT64", "CREATE SEQUENCE s", "DROP SEQUENCE s", "CREATE MACRO m(x) AS x", "CREATE TYPE t AS INT64",
		"COMMENT ON TABLE Entity IS 'x'", "CREATE NODE TABLE X AS LOAD FROM '%s' RETURN *",
		"BEGIN TRANSACTION", "COMMIT", "ROLLBACK", "CHECKPOINT", "RETURN 1; RETURN 2", "RETURN 1; CREATE (:Entity {key: 'x'})", ";", "",
		"EXPLAIN MATCH (e:Entity) DELETE e", "PROFILE MATCH (e:Entity) RETURN e", "EXPLAIN LOAD FROM '%s' RETURN *", "PROFILE COPY (RETURN 1) TO '%t.csv'",
		"MATCH (e:Entity) RETURN e /* unfinished", "RETURN '", "RETURN `", "\x00", "RETURN 1\x00; DROP TABLE Entity",
	} {
		text = strings.NewReplacer("%s", secret, "%t", target).Replace(text)
		var p map[string]any
		if strings.Contains(text, "$file") {
			p = map[string]any{"file": secret}
		}
		got, err := query(t.Context(), db, text, p)
		if err == nil {
			t.Errorf("%s: returned %v", text, got.Rows)
			continue
		}
		switch e := tea.AsError(err); {
		case e.Type != tea.PermissionDenied && e.Type != tea.QueryError && e.Type != tea.ValidationError:
			t.Errorf("%s: error of type %s: %v", text, e.Type, err)
		case strings.Contains(e.Message, "secret,") || strings.Contains(e.Message, "No file found"):
			t.Errorf("%s: the error tells about a file: %v", text, err)
		}
	}
	if _, err := db.Query(t.Context(), store.Query{Text: "CREATE (:Entity {key: 'x'})", MaxRows: 1}); tea.AsError(err).Type != tea.PermissionDenied {
		t.Errorf("a query that writes: %v", err)
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder outside has %v, %v", entries, err)
	}
	s, err := db.Stats(t.Context(), "default")
	if err != nil || s.Entities != 3 || s.Relations != 2 {
		t.Errorf("the graph has changed: %+v, %v", s, err)
	}
}

// What permit overlooks is stopped by the file system of the database.
func TestStatementsReachNoFiles(t *testing.T) {
	t.Parallel()
	db := pipes(t)
	secret := filepath.Join(t.TempDir(), "secret.csv")
	if err := os.WriteFile(secret, []byte("a\n1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"LOAD FROM '%s' RETURN *", "COPY (RETURN 1) TO '%s.csv'", "COPY (RETURN 1) TO '%s.parquet'", "EXPORT DATABASE '%s.d'", "IMPORT DATABASE '%s'", "ATTACH '%s' AS x (dbtype kuzu)", "INSTALL httpfs",
	} {
		if err := db.writer.execute(strings.ReplaceAll(text, "%s", secret)); err == nil {
			t.Errorf("%s succeeded", text)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(secret)); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

func TestQueriesAreBounded(t *testing.T) {
	t.Parallel()
	db := pipes(t)
	got, err := db.Query(t.Context(), store.Query{Text: "UNWIND range(1, 1000) AS x RETURN x", ReadOnly: true, MaxRows: 10})
	if err != nil || len(got.Rows) != 10 || !got.Truncated {
		t.Errorf("a query of more rows than allowed: %+v, %v", got, err)
	}
	for _, text := range []string{
		"RETURN " + strings.Repeat("(", 101) + "1" + strings.Repeat(")", 101),
		"RETURN '" + strings.Repeat("x", maxQuery) + "'",
	} {
		if _, err := query(t.Context(), db, text, nil); tea.AsError(err).Type != tea.ValidationError {
			t.Errorf("a query of %d bytes: %v", len(text), err)
		}
	}
	for _, text := range []string{
		"RETURN " + strings.Repeat("NOT ", maxQuery/4-10) + "true",
		"RETURN " + strings.Repeat("-", maxQuery-20) + "1",
		"RETURN 1" + strings.Repeat("+1", maxQuery/2-10),
		"RETURN true" + strings.Repeat(" OR true", maxQuery/8-10),
		"RETURN " + strings.Repeat("CASE WHEN ", maxQuery/10-10) + "true",
		"MATCH (a)" + strings.Repeat("--(:Entity)", 30) + " RETURN count(*)",
		"UNWIND range(1, 100000000) AS a UNWIND range(1, 100000000) AS b RETURN sum(a * b)",
		"UNWIND range(1, 1000) AS a UNWIND range(1, 1000) AS b UNWIND range(1, 1000) AS c UNWIND range(1, 1000) AS d RETURN sum(a * b * c * d)",
		"RETURN size(string_split(repeat('a ', 1000000), ' '))",
		"RETURN size(repeat('x', 10000000000))",
		"RETURN range(1, 10000000000)",
		"MATCH (a), (b), (c), (d), (e), (f), (g), (h), (i), (j), (k), (l), (m), (n), (o), (p) RETURN a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := query(ctx, db, text, nil)
		cancel()
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			continue
		}
		if e := tea.AsError(err); e.Type != tea.ResourceExhausted && e.Type != tea.QueryError {
			t.Errorf("%.60s: error of type %s: %.200v", text, e.Type, err)
		}
	}
	// The connection and the database still work.
	if got, err := query(t.Context(), db, "MATCH (e:Entity) RETURN count(*)", nil); err != nil || fmt.Sprint(got.Rows) != "[[3]]" {
		t.Errorf("after the queries: %v, %v", got, err)
	}
}

func TestACanceledQueryStops(t *testing.T) {
	t.Parallel()
	db := pipes(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := query(ctx, db, "UNWIND range(1, 1000000000) AS a UNWIND range(1, 1000000000) AS b RETURN sum(a * b)", nil)
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled query returned %v", err)
	}
}
