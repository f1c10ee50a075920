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
		"union":               {"RETURN 1 AS x UNION ALL RETURN 1 AS x", nil, [][]any{{int64(1)}, {int64(1)}}},
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

// A parameter that is missing would be null, and an error of the name an empty
// result.
func TestMissingParametersAreNamed(t *testing.T) {
	t.Parallel()
	db := pipes(t)
	for _, text := range []string{
		"MATCH (e:Entity) WHERE e.id = $id RETURN e.id",
		"MATCH (e:Entity {id: $id}) RETURN e.id",
		"MATCH (e:Entity) WHERE e.id IN $id RETURN e.id",
		"MATCH (e:Entity) WHERE list_contains($id, e.id) RETURN e.id",
		"MATCH (e:Entity) WHERE list_contains($id, 1) RETURN e.id",
		"MATCH (e:Entity) WHERE size($id) > 1 RETURN $other",
		"UNWIND $id AS x RETURN x",
		"UNWIND [1] AS x WITH x WHERE x = $id RETURN x",
		"RETURN $id + 1",
		"MATCH (e:Entity) RETURN e.id LIMIT $id",
		"MATCH (e:Entity) RETURN e.id SKIP $id",
	} {
		for _, p := range []map[string]any{nil, {"other": int64(1)}} {
			if p != nil && !strings.Contains(text, "$other") {
				continue
			}
			_, err := query(t.Context(), db, text, p)
			if e := tea.AsError(err); err == nil || e.Type != tea.ValidationError || !strings.Contains(err.Error(), "the parameter $id is not in params") {
				t.Errorf("%s returned %v", text, err)
			}
		}
	}
	if _, err := query(t.Context(), db, "MATCH (e:Entity {id: '$id'}) RETURN '$x' // $y", nil); err != nil {
		t.Errorf("a text and a comment: %v", err)
	}
}

// A null is not in a list, and a list that is null has no element.
func TestNullParametersDoNotCrash(t *testing.T) {
	t.Parallel()
	db := pipes(t)
	for _, text := range []string{
		"MATCH (e:Entity) WHERE e.id IN $x RETURN e.id",
		"MATCH (e:Entity) WHERE NOT e.id IN $x RETURN e.id",
		"MATCH (e:Entity) WHERE list_has($x, e.id) RETURN e.id",
		"MATCH (e:Entity) WHERE list_position($x, e.id) > 0 RETURN e.id",
		"MATCH (e:Entity) WHERE e.id = $x RETURN e.id",
		"MATCH (e:Entity) WHERE $x[1] = e.id RETURN e.id",
		"MATCH (e:Entity) WHERE e.id IN NULL AND e.id <> $x RETURN e.id",
		"WITH $x AS l MATCH (e:Entity) WHERE e.id IN l RETURN e.id",
	} {
		got, err := query(t.Context(), db, text, map[string]any{"x": nil})
		if err != nil || len(got.Rows) > 0 {
			t.Errorf("%s returned %v and the error %v", text, got, err)
		}
	}
	for _, expression := range []string{"list_contains($x, 1)", "$x IN ['a']", "$x IN $x", "size($x)", "$x[1]"} {
		got, err := query(t.Context(), db, "RETURN "+expression, map[string]any{"x": nil})
		if err != nil || got.Rows[0][0] != nil {
			t.Errorf("%s returned %v and the error %v", expression, got, err)
		}
	}
}

// The engine interrupts the other threads of a query that fails, which is not what
// the query fails with.
func TestAFailedQueryNamesItsCause(t *testing.T) {
	t.Parallel()
	db := pipes(t)
	for range 600 {
		_, err := query(t.Context(), db, "MATCH (e:Entity) WHERE CAST(e.id AS INT64) = 1 RETURN e.id", nil)
		if e := tea.AsError(err); e.Type != tea.QueryError || !strings.Contains(e.Message, `Could not convert "v1"`) {
			t.Fatal(err)
		}
	}
}

// A condition of MATCH without a variable counts, and a null in it, or in a list,
// is not true, and neither is its opposite.
func TestNullIsNotTrue(t *testing.T) {
	t.Parallel()
	db := pipes(t)
	values := map[string]any{"x": nil, "one": int64(1), "no": false, "null": []any{nil}, "some": []any{"zz", nil}}
	ask := func(text string) ([][]any, error) {
		used := map[string]any{}
		for name, v := range values {
			if strings.Contains(text, "$"+name) {
				used[name] = v
			}
		}
		got, err := query(t.Context(), db, text, used)
		if err != nil {
			return nil, err
		}
		return got.Rows, nil
	}
	for _, condition := range []string{
		"$x", "$x AND true", "$x OR false", "$x XOR false", "$x XOR true", "($x) = true", "$x = false", "CAST($x AS BOOL)", "to_bool($x)", "ifnull($x, false)", "coalesce($x, false)",
		"$x = 1", "$x <> 1", "$x < 5", "$x >= 5", "$x = $x", "$x <> $x", "$x + 1 > 0", "-$x < 1", "abs($x) = 1", "CAST($x AS INT64) > 1", "CAST($x AS STRING) = 'a'",
		"$x IN ['a']", "$x IN [1]", "$x IN [null]", "$x IN ['a', null]", "$x IN [e.id]", "$x IN $x", "e.id IN $x", "e.id IN [$x, 'zz']", "e.id IN $null", "e.id IN $some",
		"list_contains(['a'], $x)", "list_contains([e.id], $x)", "list_contains($x, e.id)", "list_contains($some, e.id)", "list_has($x, $x)", "array_contains([1], $x)",
		"size($x) > 0", "size($x) < 5", "$x[1] = 'a'", "list_any_value($x) = 1", "list_position($x, 'a') = 0",
		"e.id = $x", "e.id <> $x", "e.created_at > $x", "e.created_at < $x", "e.id STARTS WITH $x", "e.id ENDS WITH $x", "e.id CONTAINS $x", "e.id =~ $x", "lower($x) = 'a'", "lower($x) <> 'a'",
		"label(e) = $x", "label(e) <> $x", "[$x][1] = e.id", "[$x][1] <> e.id", "{a: $x}.a = e.id", "{a: $x}.a <> e.id", "substring(e.id, $x, 1) = 'v'", "substring(e.id, $x, 1) <> 'q'",
		"$x = 1 OR $x = 2", "e.id = $x OR $x = 1", "$x AND $one = 1", "$one = 1 AND $x", "$x IS NOT NULL AND $x",
	} {
		for _, text := range []string{
			"MATCH (e:Entity) WHERE " + condition + " RETURN e.id",
			"MATCH (e:Entity) WHERE NOT (" + condition + ") RETURN e.id",
			"MATCH (e:Entity) WHERE e.id <> 'x' AND (" + condition + ") RETURN e.id",
			"MATCH (e:Entity) WHERE NOT (" + condition + ") AND e.id <> 'x' RETURN e.id",
			"MATCH (e:Entity) WITH e WHERE " + condition + " RETURN e.id",
			"MATCH (e:Entity) WITH e WHERE NOT (" + condition + ") RETURN e.id",
			"MATCH (e:Entity)-[:Relation]->(f:Entity) WHERE " + condition + " RETURN e.id",
			"MATCH (f:Entity) MATCH (e:Entity) WHERE " + condition + " RETURN e.id",
			"MATCH (e:Entity) WHERE EXISTS { MATCH (e)-[:Relation]-(f:Entity) WHERE " + condition + " } RETURN e.id",
			"MATCH (e:Entity) WHERE COUNT { MATCH (e)-[:Relation]-(f:Entity) WHERE NOT (" + condition + ") } > 0 RETURN e.id",
			"MATCH (e:Entity) OPTIONAL MATCH (f:Entity) WHERE " + condition + " WITH f WHERE f.id IS NOT NULL RETURN f.id",
			"MATCH (e:Entity) WHERE CASE WHEN " + condition + " THEN true ELSE false END RETURN e.id",
		} {
			// "ifnull" and "coalesce" return false, whose opposite is true.
			if strings.Contains(text, "NOT (ifnull") || strings.Contains(text, "NOT (coalesce") || strings.Contains(text, "NOT ($x IS NOT NULL") {
				continue
			}
			if rows, err := ask(text); err != nil && tea.AsError(err).Type != tea.QueryError || len(rows) > 0 {
				t.Errorf("%s returned %v, %v", text, rows, err)
			}
		}
	}
	for text, want := range map[string]int{
		"MATCH (e:Entity) WHERE $one = 1 RETURN e.id":                                                     3,
		"MATCH (e:Entity) WHERE $one = 2 RETURN e.id":                                                     0,
		"MATCH (e:Entity) WHERE NOT $no RETURN e.id":                                                      3,
		"MATCH (e:Entity) WHERE $no OR e.type = 'valve' RETURN e.id":                                      2,
		"MATCH (e:Entity) WHERE $no RETURN e.id":                                                          0,
		"MATCH (e:Entity) WHERE $x IS NULL RETURN e.id":                                                   3,
		"MATCH (e:Entity) WHERE $x IS NOT NULL RETURN e.id":                                               0,
		"MATCH (e:Entity) WHERE $x IS NULL OR e.id = $x RETURN e.id":                                      3,
		"MATCH (e:Entity), (f:Entity) WHERE $one = 1 AND e.id = f.id RETURN e.id":                         3,
		"MATCH (e:Entity) WHERE e.id IN ['v1', $x] RETURN e.id":                                           1,
		"MATCH (e:Entity) WHERE NOT e.id IN ['v1'] RETURN e.id":                                           2,
		"MATCH (e:Entity) WHERE CASE WHEN $one = 1 THEN e.type = 'tank' ELSE true END RETURN e.id":        1,
		"MATCH (e:Entity) WHERE EXISTS { MATCH (e)-[:Relation]->(f:Entity) WHERE $one = 2 } RETURN e.id":  0,
		"MATCH (e:Entity) WHERE EXISTS { MATCH (e)-[:Relation]->(f:Entity) WHERE $one = 1 } RETURN e.id":  2,
		"MATCH (e:Entity)-[:Relation*1..3]->(f:Entity) WHERE e.id = 'v1' AND $one IN [1, 2] RETURN f.id":  2,
		"MATCH (e:Entity)-[:Relation*1..3]->(f:Entity) WHERE e.id = 'v1' AND $one IN [3, 2] RETURN f.id":  0,
		"MATCH (e:Entity {id: $x}) RETURN e.id":                                                           0,
		"UNWIND [1, 2] AS n MATCH (e:Entity) WHERE $one = 1 AND n = $one RETURN e.id":                     3,
		"MATCH (e:Entity) WHERE e.id = 'v1' MATCH (f:Entity) WHERE $no RETURN f.id":                       0,
		"MATCH (e:Entity) WHERE $one = 1 RETURN e.id UNION ALL MATCH (e:Entity) WHERE $no RETURN e.id":    3,
		"MATCH (e:Entity) WHERE e.id = 'v1' OPTIONAL MATCH (e)-[:Relation]->(f) WHERE $no RETURN e.id, f": 1,
	} {
		if rows, err := ask(text); err != nil || len(rows) != want {
			t.Errorf("%s returned %v, %v; want %d rows", text, rows, err, want)
		}
	}
}

// Errors about parameters name them, and have no words of the engine's sources.
func TestParametersThatCannotBePassed(t *testing.T) {
	t.Parallel()
	db := pipes(t)
	for _, c := range []struct {
		text string
		x    any
		says string
	}{
		{"RETURN $x", []any{"s1", int64(1)}, "parameter x: a list has values of the types STRING and INT64"},
		{"RETURN $x", map[string]any{}, "parameter x: an object without fields"},
		{"RETURN $x", []any{map[string]any{}}, "parameter x: an object without fields"},
		{"RETURN $x", json.Number("18446744073709551616"), "x: the integer 18446744073709551616 has more than 64 bits"},
		{"RETURN $x", []any{}, "does not support a parameter, a null or an empty list"},
		{"RETURN $x[1]", []any{nil}, "does not support a parameter, a null or an empty list"},
		{"RETURN list_filter([1, 2], y -> y > $x)", int64(1), "does not support a parameter, a null or an empty list"},
	} {
		_, err := query(t.Context(), db, c.text, map[string]any{"x": c.x})
		if e := tea.AsError(err); err == nil || !strings.Contains(e.Message, c.says) || strings.Contains(e.Message, "_error:") || e.Type != tea.ValidationError && e.Type != tea.QueryError {
			t.Errorf("%s with %v: %v; want %q", c.text, c.x, err, c.says)
		}
	}
	for text, want := range map[string]int{"UNWIND $x AS y RETURN y": 0, "MATCH (e:Entity) WHERE e.id IN $x RETURN e.id": 0, "MATCH (e:Entity) WHERE NOT e.created_at IN $x RETURN e.id": 3} {
		if got, err := query(t.Context(), db, text, map[string]any{"x": []any{}}); err != nil || len(got.Rows) != want {
			t.Errorf("%s with an empty list: %v, %v", text, got, err)
		}
	}
}

// Numbers that JSON does not have are errors.
func TestNumbersThatJSONDoesNotHave(t *testing.T) {
	t.Parallel()
	db := pipes(t)
	for text, says := range map[string]string{
		"RETURN 1.0/0.0":                        "infinite",
		"RETURN -1.0/0.0":                       "infinite",
		"RETURN [1.0, 0.0/0.0]":                 "not a number",
		"RETURN {a: 1.0/0.0}":                   "infinite",
		"MATCH (e:Entity) RETURN e.id, 0.0/0.0": "not a number",
	} {
		if _, err := query(t.Context(), db, text, nil); tea.AsError(err).Type != tea.QueryError || !strings.Contains(err.Error(), says) {
			t.Errorf("%s returned the error %v, want one that says %q", text, err, says)
		}
	}
}

// Each attack is refused, and has no effect, whether the query writes or not.
func TestQueriesCannotLeaveTheGraph(t *testing.T) {
	t.Parallel()
	for name, readOnly := range map[string]bool{"read-only": true, "writing": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testAttacks(t, readOnly)
		})
	}
}

func testAttacks(t *testing.T, readOnly bool) {
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
		"DROP TABLE Entity", "DROP TABLE relation", "DROP TABLE IF EXISTS `META`", "CREATE NODE TABLE entity(a INT64 PRIMARY KEY)",
		"MERGE (e:Entity {key: 'default\\u001Fv1'}) ON MATCH SET e.text = 'x'", "MATCH (e:entity) SET e.text = 'x'", "MATCH (m) SET m.text = 'x'", "MATCH (m) WITH m AS x DETACH DELETE x",
		"MATCH (:Entity)-[r:Relation]->() DELETE r", "MATCH ()-[r]->() SET r.weight = 2", "MATCH (a:Entity), (b:Entity) CREATE (a)-[:Relation {type: 'x'}]->(b)", "MATCH (m:Meta) SET m.value = 1",
		"CREATE NODE TABLE X AS MATCH (e:Entity) RETURN e.key", "MATCH (e:Entity) CREATE (:Entity {key: e.key + 'x'})", "ALTER TABLE Entity ADD x INT64", "CREATE SEQUENCE s", "DROP SEQUENCE s", "CREATE MACRO m(x) AS x", "CREATE TYPE t AS INT64",
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
		got, err := db.Query(t.Context(), store.Query{Text: text, Params: p, ReadOnly: readOnly, MaxRows: 100})
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
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder outside has %v, %v", entries, err)
	}
	s, err := db.Stats(t.Context(), "default")
	if err != nil || s.Entities != 3 || s.Relations != 2 {
		t.Errorf("the graph has changed: %+v, %v", s, err)
	}
}

// A query that writes changes its own tables, and never the tables of the actions.
func TestQueriesWriteTablesOfTheirOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := opened(t, dir)
	apply(t, db, store.Batch{Entities: []store.Entity{entity("v1", "valve", `{}`)}})
	write := func(text string, p map[string]any) *store.Table {
		t.Helper()
		got, err := db.Query(t.Context(), store.Query{Text: text, Params: p, MaxRows: 100})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return got
	}
	write("CREATE NODE TABLE Device(name STRING PRIMARY KEY, floor INT64)", nil)
	write("CREATE REL TABLE At(FROM Device TO Entity, since INT64)", nil)
	if _, err := query(t.Context(), db, "CREATE (:Device {name: 'x'})", nil); tea.AsError(err).Type != tea.PermissionDenied || !strings.Contains(err.Error(), "read_only: false") {
		t.Errorf("a query that writes, with read_only: %v", err)
	}
	got := write("UNWIND $devices AS d CREATE (x:Device {name: d.name, floor: d.floor}) RETURN x.name AS name ORDER BY name", map[string]any{"devices": []any{
		map[string]any{"name": "a", "floor": int64(1)}, map[string]any{"name": "b", "floor": int64(2)},
	}})
	if diff := cmp.Diff([][]any{{"a"}, {"b"}}, got.Rows); diff != "" {
		t.Error(diff)
	}
	write("MATCH (d:Device {name: 'a'}), (e:Entity {id: 'v1'}) CREATE (d)-[:At {since: 2020}]->(e)", nil)
	write("MATCH (d:Device) WHERE d.floor = 2 SET d.floor = 3", nil)
	write("MERGE (d:Device {name: 'c'}) ON CREATE SET d.floor = 9", nil)
	write("MATCH (d:Device {name: 'b'}) DETACH DELETE d", nil)
	write("CREATE (:Device {name: 'b', floor: 4})", nil) // a key that was deleted
	if _, err := db.Query(t.Context(), store.Query{Text: "MATCH (d:Device {name: 'b'}) DELETE d CREATE (:Device {name: 'b'})"}); tea.AsError(err).Type != tea.PermissionDenied {
		t.Errorf("a query that deletes and creates: %v", err)
	}
	if _, err := db.Query(t.Context(), store.Query{Text: "CREATE (:Device {name: 'b'})", MaxRows: 1}); tea.AsError(err).Type != tea.QueryError {
		t.Errorf("a key that exists: %v", err)
	}
	apply(t, db, store.Batch{Entities: []store.Entity{entity("v2", "valve", `{}`)}, DeleteEntities: []string{"v1"}})
	crashed := t.TempDir()
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, db := range []*DB{db, opened(t, crashed)} {
		got, err := query(t.Context(), db, "MATCH (d:Device) OPTIONAL MATCH (d)-[r:At]->(e:Entity) RETURN d.name AS name, d.floor, r.since ORDER BY name", nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([][]any{{"a", int64(1), int64(2020)}, {"b", int64(4), nil}, {"c", int64(9), nil}}, got.Rows); diff != "" {
			t.Error(diff)
		}
	}
	found, err := query(t.Context(), db, "MATCH p = (d:Device {name: 'a'})-[r:At]->() RETURN d, r, nodes(p)", nil)
	if err != nil {
		t.Fatal(err)
	}
	device := store.Other(store.KindNode, "Device", map[string]any{"name": "a", "floor": int64(1)})
	want := [][]any{{device, store.Other(store.KindRelationship, "At", map[string]any{"since": int64(2020)}), []any{device, store.Node("v1", "", nil)}}}
	if diff := cmp.Diff(want, found.Rows); diff != "" {
		t.Errorf("nodes of other tables (-want +got):\n%s", diff)
	}
	write("DROP TABLE At", nil)
	write("DROP TABLE Device", nil)
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
