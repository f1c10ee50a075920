//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// The planner read the last operator of an empty plan, which ended the process.
func TestAConditionOnConstantsOnly(t *testing.T) {
	t.Parallel()
	db := pipes(t)
	rows := func(values ...any) [][]any {
		all := [][]any{}
		for _, v := range values {
			all = append(all, []any{v})
		}
		return all
	}
	for _, c := range []struct {
		text string
		want [][]any
	}{
		{"WITH 1 AS x WHERE x > 0 RETURN x", rows(int64(1))},
		{"WITH 1 AS x WHERE x > 1 RETURN x", rows()},
		{"WITH 1 AS x WHERE x IS NULL RETURN x", rows()},
		{"WITH 1 AS x, 2 AS y WHERE y > x WITH x + y AS z WHERE z = 3 RETURN z", rows(int64(3))},
		{"WITH [1, 2] AS l WHERE 1 IN l UNWIND l AS x RETURN x ORDER BY x", rows(int64(1), int64(2))},
		{"WITH $id AS id WHERE id <> '' MATCH (e:Entity) WHERE e.id = id RETURN e.id", rows("v1")},
		{"WITH $id AS id WHERE id = '' MATCH (e:Entity) WHERE e.id = id RETURN e.id", rows()},
		{"WITH 1 AS x WHERE EXISTS { MATCH (e:Entity {id: 'v1'}) } RETURN x", rows(int64(1))},
		{"WITH 1 AS x WHERE EXISTS { MATCH (e:Entity {id: 'none'}) } RETURN x", rows()},
		{"WITH 1 AS x WHERE false RETURN x", rows()},
	} {
		p := map[string]any{}
		if c.text[5] == '$' {
			p["id"] = "v1"
		}
		got, err := query(t.Context(), db, c.text, p)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
		} else if diff := cmp.Diff(c.want, got.Rows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

// A path that OPTIONAL MATCH did not find had a relation without a type.
func TestAPathThatWasNotFoundIsNull(t *testing.T) {
	t.Parallel()
	db := pipes(t)
	for text, want := range map[string][][]any{
		"MATCH (a:Entity {id: 'v1'}), (b:Entity {id: 't1'}) OPTIONAL MATCH p = (a)-[:Relation]->(b) RETURN p":                         {{nil}},
		"MATCH (a:Entity {id: 't1'}) OPTIONAL MATCH p = (a)-[:Relation]->(:Entity)-[:Relation]->(:Entity) RETURN p":                   {{nil}},
		"MATCH (a:Entity {id: 't1'}) OPTIONAL MATCH p = (a)-[:Relation]->(:Entity)-[:Relation*1..3]->(:Entity) RETURN p":              {{nil}},
		"MATCH (a:Entity {id: 'v1'}), (b:Entity {id: 'v2'}) OPTIONAL MATCH p = (a)-[:Relation]->(b) RETURN length(p), size(nodes(p))": {{int64(1), int64(2)}},
	} {
		got, err := query(t.Context(), db, text, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if diff := cmp.Diff(want, got.Rows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// The engine ignores a condition on the entities of a shortest path: it led through them.
func TestConditionsOnTheEntitiesOfAPath(t *testing.T) {
	t.Parallel()
	db := pipes(t)
	for _, kind := range []string{"SHORTEST", "ALL SHORTEST", "WSHORTEST(weight)"} {
		for condition, refused := range map[string]bool{"n.id <> 'v2'": true, "r.type = 'feeds' AND n.id <> $id": true, "r.type = 'feeds'": false} {
			p := map[string]any{}
			if strings.Contains(condition, "$") {
				p["id"] = "v2"
			}
			match := "MATCH (a:Entity {id: 'v1'})-[:Relation* " + kind + " 1..5 (r, n | WHERE " + condition + ")]->(b:Entity)"
			for _, text := range []string{match + " RETURN b.id", "MATCH (x:Entity) WHERE EXISTS { " + match + " } RETURN x.id"} {
				_, err := query(t.Context(), db, text, p)
				if refused != (err != nil && tea.AsError(err).Type == tea.QueryError && strings.Contains(err.Error(), "use TRAIL instead of SHORTEST")) {
					t.Errorf("%s: %v", text, err)
				}
			}
		}
	}
	for _, kind := range []string{"", "TRAIL"} {
		got, err := query(t.Context(), db, "MATCH (a:Entity {id: 'v1'})-[:Relation* "+kind+" 1..5 (r, n | WHERE n.id <> 'v2')]->(b:Entity) RETURN b.id", nil)
		if err != nil {
			t.Error(err)
		} else if diff := cmp.Diff([][]any{{"v2"}}, got.Rows); diff != "" {
			t.Errorf("%s:\n%s", kind, diff)
		}
	}
}

// Kuzu's ACYCLIC returned paths that visit an entity twice.
func TestPathsWithoutTheSameEntityTwice(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir())
	apply(t, db, store.Batch{Relations: []store.Relation{relation("a", "next", "b"), relation("b", "next", "c"), relation("c", "next", "b"), relation("b", "next", "a"), relation("c", "self", "c")}})
	match := "MATCH (a:Entity {id: 'a'})-[:Relation* ACYCLIC 1..4]->(b:Entity)"
	for _, text := range []string{match + " RETURN b.id", "MATCH (x:Entity) WHERE EXISTS { " + match + " } RETURN x.id"} {
		if _, err := query(t.Context(), db, text, nil); err == nil || tea.AsError(err).Type != tea.QueryError || !strings.Contains(err.Error(), "WHERE is_acyclic(p)") {
			t.Errorf("%s: %v", text, err)
		}
	}
	got, err := query(t.Context(), db, "MATCH p = (a:Entity {id: 'a'})-[:Relation* TRAIL 1..5]->(b:Entity) WHERE is_acyclic(p) RETURN properties(nodes(p), 'id') AS ids ORDER BY length(p)", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]any{{[]any{"a", "b"}}, {[]any{"a", "b", "c"}}}, got.Rows); diff != "" {
		t.Error(diff)
	}
}

// x IN list[1:2] was a part of the text of a truth value, or an error of the engine's
// own code.
func TestSlices(t *testing.T) {
	t.Parallel()
	db := pipes(t)
	for text, want := range map[string]any{
		"RETURN [1, 2, 3, 4][2:3]":     []any{int64(2), int64(3)},
		"RETURN [1, 2, 3, 4][2:]":      []any{int64(2), int64(3), int64(4)},
		"RETURN [1, 2, 3, 4][:2]":      []any{int64(1), int64(2)},
		"RETURN [1, 2, 3, 4][-2:]":     []any{int64(3), int64(4)},
		"RETURN [1, 2, 3, 4][-1]":      int64(4),
		"RETURN 'hello'[1:2]":          "he",
		"RETURN 3 IN ([1, 2, 3][1:2])": false,
		"RETURN 2 IN ([1, 2, 3][1:2])": true,
		"MATCH (e:Entity) WHERE e.id IN (['t1', 'v1', 'x'][2:3]) RETURN e.id":                                  "v1",
		"MATCH (e:Entity) WITH collect(e.id) AS l UNWIND l AS x WITH x, l WHERE x IN (l[1:2]) RETURN count(x)": int64(2),
	} {
		got, err := query(t.Context(), db, text, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if diff := cmp.Diff([][]any{{want}}, got.Rows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
	for _, text := range []string{"RETURN 3 IN [1, 2, 3][1:2]", "RETURN 3 IN [1, 2, 3][1]", "MATCH (e:Entity) WHERE e.id IN ['t1', 'v1'][1:1] RETURN e.id", "WITH ['a'] AS l RETURN 'a' IN l[1:1]"} {
		if _, err := query(t.Context(), db, text, nil); err == nil || tea.AsError(err).Type != tea.QueryError || !strings.Contains(err.Error(), "write x IN (list[1:2]) with brackets") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The page on filtering by properties has these queries. What an entity does not have
// was an empty text, which differs from every value and is not a number.
func TestConditionsOnProperties(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir())
	apply(t, db, store.Batch{Entities: []store.Entity{
		entity("a", "t", `{"name":"it's \"A\"","bar":3,"f":2.0,"ok":true,"tags":["x","y"],"at":{"city":"Porto"}}`), entity("b", "t", `{"bar":12.5,"empty":""}`), entity("c", "t", `{}`),
	}})
	name := map[string]any{"name": `it's "A"`}
	for condition, c := range map[string]struct {
		params map[string]any
		want   string
	}{
		"json_extract(e.properties, 'name') = to_json($name)":              {name, "a"},
		"json_extract(e.properties, 'bar') = to_json(3)":                   {nil, "a"},
		"CAST(json_extract(e.properties, 'bar') AS DOUBLE) > 3":            {nil, "b"},
		"CAST(json_extract(e.properties, 'bar') AS DOUBLE) = 3":            {nil, "a"},
		"json_extract(e.properties, 'ok') = to_json(true)":                 {nil, "a"},
		"json_extract(e.properties, 'at/city') = to_json('Porto')":         {nil, "a"},
		"json_contains(e.properties, '{\"tags\": [\"x\"]}')":               {nil, "a"},
		"json_extract(e.properties, 'bar') IS NULL":                        {nil, "c"},
		"json_extract(e.properties, 'name') <> to_json('x')":               {nil, "a"},
		"NOT json_extract(e.properties, 'bar') = to_json(3)":               {nil, "b"},
		"json_extract(e.properties, 'empty') = to_json('')":                {nil, "b"},
		"CAST(json_extract(e.properties, 'name') AS STRING) CONTAINS 'it'": {nil, "a"},
	} {
		got, err := query(t.Context(), db, "MATCH (e:Entity) WHERE "+condition+" RETURN e.id", c.params)
		if err != nil {
			t.Errorf("%s: %v", condition, err)
		} else if diff := cmp.Diff([][]any{{c.want}}, got.Rows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", condition, diff)
		}
	}
}

// The guide says in what the language differs from openCypher.
func TestDifferencesFromOpenCypher(t *testing.T) {
	t.Parallel()
	db := opened(t, t.TempDir())
	apply(t, db, store.Batch{Relations: []store.Relation{relation("a", "next", "b"), relation("b", "next", "c"), relation("c", "next", "b"), relation("c", "self", "c")}})
	for text, want := range map[string]any{
		"MATCH (:Entity {id: 'a'})-[:Relation]->(b:Entity)<-[:Relation]-(c:Entity) RETURN count(*)": int64(2), // one relation twice
		"MATCH (:Entity)-[r:Relation]-(:Entity) WHERE r.type = 'self' RETURN count(*)":              int64(2), // in both directions
		"MATCH (:Entity {id: 'a'})-[:Relation*1..6]->(b:Entity) RETURN count(*)":                    int64(20),
		"MATCH (:Entity {id: 'a'})-[:Relation* TRAIL 1..6]->(b:Entity) RETURN count(*)":             int64(5),
		"MATCH (:Entity {id: 'a'})-[:Relation* SHORTEST 1..6]->(b:Entity) RETURN count(*)":          int64(2),
		"MATCH (e:Entity {id: 'none'}) RETURN collect(e.id)":                                        nil,
		"RETURN null IN []":                           nil,
		"RETURN [10, 20, 30][1]":                      int64(10),
		"RETURN substring('abcdef', 1, 2)":            "ab",
		"MATCH (e:Entity {id: 'none'}) RETURN sum(1)": nil,
		"RETURN '1' = 1":                              true,
		"RETURN any(x IN [null, 2] WHERE x = 1)":      false,
	} {
		got, err := query(t.Context(), db, text, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if diff := cmp.Diff([][]any{{want}}, got.Rows); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}
