package graph_test

import (
	"fmt"
	"slices"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

// scenario is a query with its rows. One without rows has an error that contains want.
type scenario struct {
	query  string
	params object
	rows   []any
	want   string
}

// openFor opens a graph of a backend, or skips the test.
func openFor(t *testing.T, backend string) *opened {
	t.Helper()
	t.Parallel()
	if !slices.Contains(backends(t), backend) {
		t.Skipf("this build does not have the backend %s", backend)
	}
	g := open(t, object{"backend": backend, "path": t.TempDir()})
	g.needLibrary()
	return g
}

// run runs scenarios in a language. The columns of a row are in the order of their names.
func (g *opened) run(t *testing.T, language string, all []scenario) {
	t.Helper()
	for _, s := range all {
		p := object{language: s.query, "params": s.params}
		if s.params == nil {
			delete(p, "params")
		}
		if s.rows == nil {
			g.fails("query", p, tea.QueryError, s.want)
			continue
		}
		if rows := g.rowsOf(p); rows != nil {
			same(t, s.query, rows, s.rows)
		}
	}
}

// rowsOf returns the rows of a query, or reports its error.
func (g *opened) rowsOf(params object) []any {
	g.t.Helper()
	r, err := g.try("query", params)
	if err != nil {
		g.t.Errorf("%v: %v", params, err)
		return nil
	}
	rows := []any{}
	for _, row := range r["results"].([]any) {
		var values []any
		for _, column := range r["columns"].([]any) {
			values = append(values, row.(object)[fmt.Sprint(column)])
		}
		rows = append(rows, values)
	}
	return rows
}

// row is a list of values, or of rows.
func row(values ...any) []any { return append([]any{}, values...) }

// airports are routes with distances, as in CozoDB's tutorial.
func (g *opened) airports() {
	g.t.Helper()
	var relations []any
	for _, r := range []struct {
		from, to string
		km       int64
	}{{"FRA", "LHR", 640}, {"FRA", "JFK", 6200}, {"LHR", "JFK", 5550}, {"JFK", "SFO", 4150}, {"LHR", "OPO", 1320}, {"OPO", "LIS", 280}, {"LIS", "FRA", 1870}} {
		relations = append(relations, object{"from_entity": r.from, "to_entity": r.to, "relation_type": "route", "weight": float64(r.km), "properties": object{"km": r.km}})
	}
	g.call("store_relations", object{"relations": relations, "create_missing": true})
}

// The chapters of CozoDB's tutorial: constant rules, unification, negation, recursion,
// aggregation, sorting and the built-in algorithms.
func TestScenariosOfTheTutorialOfCozo(t *testing.T) {
	g := openFor(t, "cozo")
	g.airports()
	const route = "route[a, b, km] := *relation{namespace: 'default', from_id: a, rel_type: 'route', to_id: b, weight: km}\n"
	g.run(t, "datalog", []scenario{
		{query: "?[] <- [['hello', 'world', 'Cozo!']]", rows: row(row("hello", "world", "Cozo!"))},
		{query: "?[a, b] <- [[1, 'x'], [2, 'y'], [1, 'x']]", rows: row(row(int64(1), "x"), row(int64(2), "y"))},
		{query: "first[] <- [[1, 2, 3], [4, 5, 6]]\n?[x, z] := first[x, _, z]", rows: row(row(int64(1), int64(3)), row(int64(4), int64(6)))},
		{query: "?[x] := x in [1, 2, 3], x > 1", rows: row(row(int64(2)), row(int64(3)))},
		{query: "?[x, y] := x in [1, 2], y = x * 10", rows: row(row(int64(1), int64(10)), row(int64(2), int64(20)))},
		{query: "a[x] <- [[1], [2], [3]]\nb[x] <- [[2], [4]]\n?[x] := a[x], not b[x]", rows: row(row(int64(1)), row(int64(3)))},
		{query: "a[x] <- [[1], [2]]\nb[x] <- [[2], [4]]\n?[x] := a[x] or b[x]", rows: row(row(int64(1)), row(int64(2)), row(int64(4)))},
		{query: route + "?[b] := route['FRA', b, _]", rows: row(row("JFK"), row("LHR"))},
		{query: route + "reach[b] := route[$from, b, _]\nreach[c] := reach[b], route[b, c, _]\n?[b] := reach[b]", params: object{"from": "OPO"}, rows: row(row("FRA"), row("JFK"), row("LHR"), row("LIS"), row("OPO"), row("SFO"))},
		{query: route + "?[a, count(b)] := route[a, b, _]\n:order -count(b), a\n:limit 2", rows: row(row("FRA", int64(2)), row("LHR", int64(2)))},
		{query: route + "?[sum(km), min(km), max(km), mean(km)] := route[_, _, km]", rows: row(row(20010.0, 280.0, 6200.0, 20010.0/7))},
		{query: route + "short[b, min(d)] := route['FRA', b, d]\nshort[c, min(d)] := short[b, e], route[b, c, f], d = e + f\n?[b, d] := short[b, d]\n:order d\n:limit 4", rows: row(row("LHR", 640.0), row("OPO", 1960.0), row("LIS", 2240.0), row("FRA", 4110.0))},
		{query: route + "?[a, km] := route[a, _, km]\n:sort -km\n:limit 1\n:offset 1", rows: row(row("LHR", 5550.0))},
		{query: route + "start[] <- [['FRA']]\nend[] <- [['SFO']]\n?[from, to, cost, path] <~ ShortestPathDijkstra(route[], start[], end[])", rows: row(row("FRA", "SFO", 10340.0, row("FRA", "LHR", "JFK", "SFO")))},
		{query: "?[s, n, l] := s = concat('a', 'b'), n = length([1, 2]), l = slice([1, 2, 3], 1, 3)", rows: row(row("ab", int64(2), row(int64(2), int64(3))))},
		{query: "?[a, b] := a = null ~ 3, b = if(1 > 2, 'x', 'y')", rows: row(row(int64(3), "y"))},
		{query: route + "?[a, collect(b)] := route[a, b, _], a = 'FRA'", rows: row(row("FRA", row("JFK", "LHR")))},
		{query: "?[x] := *missing{x}", want: "missing"},
		{query: "?[x] := not y[x]\ny[x] <- [[1]]", want: ""},
	})
	// An integer that the language does not have is not rounded.
	p := object{"datalog": "?[x] := x = $n", "params": object{"n": int64(9223372036854775807)}}
	same(t, "the largest integer", g.call("query", p)["results"], row(object{"x": int64(9223372036854775807)}))
	_, err := g.try("query", object{"datalog": "?[x] := x = $n", "params": object{"n": uint64(9223372036854775808)}})
	if err == nil || tea.AsError(err).Type != tea.ValidationError {
		t.Errorf("an integer beyond 64 bits: %v", err)
	}
}

// Scenarios after those of openCypher's Technology Compatibility Kit, for what a query can
// read.
func TestScenariosOfOpenCypher(t *testing.T) {
	g := openFor(t, "cypher")
	g.airports()
	const at = "e.namespace = 'default' AND e.type <> ''"
	g.run(t, "cypher", []scenario{
		{query: "MATCH (a:Entity)-[r:Relation]->(b:Entity) WHERE a.id = $id RETURN b.id AS id ORDER BY id", params: object{"id": "FRA"}, rows: row(row("JFK"), row("LHR"))},
		{query: "MATCH (b:Entity)<-[:Relation]-(a:Entity) WHERE b.id = 'JFK' RETURN a.id AS id ORDER BY id DESC", rows: row(row("LHR"), row("FRA"))},
		{query: "MATCH (a:Entity)-[:Relation]-(b:Entity) WHERE a.id = 'LIS' RETURN DISTINCT b.id AS id ORDER BY id", rows: row(row("FRA"), row("OPO"))},
		{query: "MATCH (a:Entity)-[:Relation*2..2]->(b:Entity) WHERE a.id = 'FRA' RETURN b.id AS id ORDER BY id", rows: row(row("JFK"), row("OPO"), row("SFO"))},
		{query: "MATCH (e:Entity) WHERE " + at + " OPTIONAL MATCH (e)-[:Relation]->(b:Entity) RETURN e.id AS id, count(b) AS n ORDER BY n, id LIMIT 2", rows: row(row("SFO", int64(0)), row("JFK", int64(1)))},
		{query: "MATCH (e:Entity) WHERE " + at + " AND NOT EXISTS { MATCH (e)-[:Relation]->(:Entity) } RETURN e.id AS id", rows: row(row("SFO"))},
		{query: "MATCH (a:Entity)-[r:Relation]->(:Entity) WITH a, sum(r.weight) AS km WHERE km > 5000 RETURN a.id AS id, km ORDER BY km", rows: row(row("FRA", 6840.0), row("LHR", 6870.0))},
		{query: "UNWIND [1, 2, 3] AS x WITH x WHERE x <> 2 RETURN x, x * 2 AS y ORDER BY x", rows: row(row(int64(1), int64(2)), row(int64(3), int64(6)))},
		{query: "UNWIND [] AS x RETURN x", rows: row()},
		{query: "RETURN 1 AS x UNION RETURN 1 AS x", rows: row(row(int64(1)))},
		{query: "RETURN 1 AS x UNION ALL RETURN 1 AS x", rows: row(row(int64(1)), row(int64(1)))},
		{query: "RETURN null = null AS a, null IS NULL AS b, true AND null AS c, true OR null AS d", rows: row(row(nil, true, nil, true))},
		{query: "RETURN 3 IN [1, 2, 3] AS a, 3 IN [1, null] AS b", rows: row(row(true, nil))},
		{query: "RETURN 7 / 2 AS a, 7 % 3 AS b, 7.0 / 2 AS c, -7 / 2 AS d", rows: row(row(int64(3), int64(1), 3.5, int64(-3)))},
		{query: "RETURN 'ab' + 'c' AS a, size('äöü') AS b, toUpper('é') AS c, substring('hello', 2, 3) AS d", rows: row(row("abc", int64(3), "É", "ell"))},
		{query: "RETURN CASE WHEN 1 > 2 THEN 'x' ELSE 'y' END AS a, coalesce(null, 'z') AS b", rows: row(row("y", "z"))},
		{query: "MATCH (e:Entity) WHERE " + at + " AND e.id STARTS WITH 'L' RETURN collect(e.id) AS ids", rows: row(row(row("LHR", "LIS")))},
		{query: "MATCH (e:Entity) WHERE " + at + " RETURN count(*) AS n, count(DISTINCT e.type) AS types, min(e.id) AS first", rows: row(row(int64(6), int64(1), "FRA"))},
		{query: "MATCH (e:Entity) WHERE " + at + " RETURN e.id AS id ORDER BY id SKIP 2 LIMIT 2", rows: row(row("LHR"), row("LIS"))},
		{query: "MATCH (a:Entity)-[p:Relation* SHORTEST 1..5]->(b:Entity) WHERE a.id = 'OPO' AND b.id = 'SFO' RETURN length(p) AS n", rows: row(row(int64(4)))},
		{query: "MATCH (a:Entity), (b:Entity) WHERE a.id = 'FRA' AND b.id = 'LIS' RETURN a.id AS x, b.id AS y", rows: row(row("FRA", "LIS"))},
		{query: "RETURN x", want: "x"},
		{query: "MATCH (n) RETURN m.id", want: "m"},
	})
}
