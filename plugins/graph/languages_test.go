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

// lang opens a graph of a backend with a few relations; the test is skipped where it is missing.
func lang(t *testing.T, backend string) *opened {
	t.Helper()
	g := openFor(t, backend)
	g.link("ana-knows-bob", "bob-knows-cid", "cid-knows-dea", "ana-likes-cid", "eva-knows-eva")
	g.call("update_entity", object{"entity_id": "ana", "entity_type": "person", "text": "Ana", "properties": object{"age": int64(30)}})
	g.call("update_entity", object{"entity_id": "bob", "entity_type": "person", "properties": object{"age": int64(25)}})
	return g
}

// said is a query with the columns of its rows, as text.
type said struct {
	what, query, want string
	params            object
}

func (g *opened) says(language string, cases []said) {
	t := g.t.(*testing.T)
	t.Helper()
	for _, c := range cases {
		params := object{language: c.query}
		if c.params != nil {
			params["params"] = c.params
		}
		if rows := g.rowsOf(params); rows != nil {
			same(t, c.what+": "+c.query, fmt.Sprint(rows), c.want)
		}
	}
}

// What openCypher says about clauses and expressions, as its compatibility kit checks it.
func TestCypherMeansWhatOpenCypherSays(t *testing.T) {
	g := lang(t, "cypher")
	const edge = `(a:Entity)-[r:Relation]->(b:Entity)`
	g.says("cypher", []said{
		{"a match follows a direction", `MATCH ` + edge + ` WHERE a.id = 'bob' RETURN b.id`, `[[cid]]`, nil},
		{"without a direction both are followed", `MATCH (a:Entity)-[:Relation]-(b:Entity) WHERE a.id = 'bob' RETURN b.id AS id ORDER BY id`, `[[ana] [cid]]`, nil},
		{"a loop is one match of a directed pattern", `MATCH ` + edge + ` WHERE a.id = 'eva' RETURN count(*)`, `[[1]]`, nil},
		{"a pattern of two relations", `MATCH (a:Entity)-[:Relation]->(:Entity)-[:Relation]->(c:Entity) WHERE a.id = 'ana' RETURN c.id AS id ORDER BY id`, `[[cid] [dea]]`, nil},
		{"parts of a pattern share a variable", `MATCH (a:Entity)-[:Relation]->(c:Entity), (b:Entity)-[:Relation]->(c) WHERE a.id < b.id RETURN a.id, b.id, c.id`, `[[ana bob cid]]`, nil},
		{"lengths of a path", `MATCH (a:Entity)-[r:Relation*1..3]->(b:Entity) WHERE a.id = 'ana' RETURN b.id AS id, min(size(rels(r))) AS n ORDER BY n, id`, `[[bob 1] [cid 1] [dea 2]]`, nil},
		{"length zero is the node itself", `MATCH (a:Entity)-[:Relation*0..1]->(b:Entity) WHERE a.id = 'cid' RETURN b.id AS id ORDER BY id`, `[[cid] [dea]]`, nil},
		{"a shortest path", `MATCH p = (a:Entity)-[:Relation* SHORTEST 1..5]->(b:Entity) WHERE a.id = 'ana' AND b.id = 'dea' RETURN length(p)`, `[[2]]`, nil},
		{"an optional match without a match is null", `MATCH (a:Entity) WHERE a.id = 'dea' OPTIONAL MATCH (a)-[:Relation]->(b:Entity) RETURN a.id, b.id`, `[[dea <nil>]]`, nil},
		{"a subquery that exists", `MATCH (a:Entity) WHERE EXISTS { MATCH (a)-[r:Relation]->(:Entity) WHERE r.type = 'likes' } RETURN a.id`, `[[ana]]`, nil},
		{"a subquery that does not exist", `MATCH (a:Entity) WHERE NOT EXISTS { MATCH (a)-[:Relation]->(:Entity) } RETURN a.id`, `[[dea]]`, nil},
		{"rows are grouped by what is not aggregated", `MATCH ` + edge + ` RETURN r.type AS t, count(*) AS n ORDER BY t`, `[[knows 4] [likes 1]]`, nil},
		{"counting an expression leaves nulls out", `UNWIND [1, null, 3] AS x RETURN count(*), count(x)`, `[[3 2]]`, nil},
		{"aggregates of nothing", `UNWIND [1] AS x WITH x WHERE x > 1 RETURN count(x), sum(x), min(x)`, `[[0 <nil> <nil>]]`, nil},
		{"distinct values are aggregated once", `UNWIND [1, 1, 2] AS x RETURN count(DISTINCT x), sum(DISTINCT x)`, `[[2 3]]`, nil},
		{"collecting keeps the order of rows", `UNWIND [3, 1, 2] AS x RETURN collect(x)`, `[[[3 1 2]]]`, nil},
		{"distinct rows", `UNWIND [1, 1, 2] AS x RETURN DISTINCT x ORDER BY x`, `[[1] [2]]`, nil},
		{"rows in descending order", `UNWIND [1, 3, 2] AS x RETURN x ORDER BY x DESC`, `[[3] [2] [1]]`, nil},
		{"rows that are skipped and limited", `UNWIND range(1, 10) AS x RETURN x ORDER BY x SKIP 2 LIMIT 3`, `[[3] [4] [5]]`, nil},
		{"a condition of an aggregate", `MATCH ` + edge + ` WITH a.id AS id, count(*) AS n WHERE n > 1 RETURN id, n`, `[[ana 2]]`, nil},
		{"null is not equal to null", `RETURN null = null, null IS NULL, null <> 1`, `[[<nil> true <nil>]]`, nil},
		{"three values of logic", `RETURN true OR null, false AND null, true AND null, NOT null, true XOR false`, `[[true false <nil> <nil> true]]`, nil},
		{"a list with a null", `RETURN 1 IN [1, null], 2 IN [1, null], 2 IN [1, 3]`, `[[true <nil> false]]`, nil},
		{"the integer part of a division, and its rest", `RETURN 7 / 2, -7 / 2, 7 % 3, 7 / 2.0`, `[[3 -3 1 3.5]]`, nil},
		{"operators by precedence", `RETURN 2 + 3 * 4, (2 + 3) * 4, 2 - 3 - 4`, `[[14 20 -5]]`, nil},
		{"parts of texts", `RETURN 'Ana' STARTS WITH 'A', 'Ana' ENDS WITH 'na', 'Ana' CONTAINS 'n', upper('a' + 'na')`, `[[true true true ANA]]`, nil},
		{"the first value that is not null", `RETURN coalesce(null, 2, 3)`, `[[2]]`, nil},
		{"a case", `UNWIND [1, 2, 3] AS x RETURN CASE WHEN x = 1 THEN 'one' WHEN x = 2 THEN 'two' ELSE 'many' END`, `[[one] [two] [many]]`, nil},
		{"elements and size of a list", `RETURN [4, 5, 6][1], size([4, 5, 6])`, `[[4 3]]`, nil},
		{"parameters are values", `MATCH (a:Entity) WHERE a.id IN $ids RETURN a.id AS id, $n AS n ORDER BY id`, `[[ana 1] [bob 1]]`, object{"ids": []any{"ana", "bob"}, "n": int64(1)}},
		{"a parameter is not a part of the query", `MATCH (a:Entity) WHERE a.id = $id RETURN count(*)`, `[[0]]`, object{"id": "' OR true OR '"}},
	})
}

// What the tutorial of CozoDB says about rules, expressions and aggregations.
func TestDatalogMeansWhatItsTutorialSays(t *testing.T) {
	g := lang(t, "cozo")
	const knows = `knows[a, b] := *relation{namespace: 'default', from_id: a, rel_type: 'knows', to_id: b} `
	g.says("datalog", []said{
		{"a constant rule", `?[a, b] <- [[1, 'x'], [2, 'y']]`, `[[1 x] [2 y]]`, nil},
		{"a result is a set in order", `?[a] <- [[2], [1], [2]]`, `[[1] [2]]`, nil},
		{"atoms of a rule are joined by their variables", knows + `?[a, c] := knows[a, b], knows[b, c], a != b`, `[[ana cid] [bob dea]]`, nil},
		{"several rules are a disjunction", `?[a] := a = 1  ?[a] := a = 2`, `[[1] [2]]`, nil},
		{"or within a rule", `?[a] := a = 1 or a = 2`, `[[1] [2]]`, nil},
		{"negation", knows + `?[a] := knows[_, a], not knows[a, _]`, `[[dea]]`, nil},
		{"recursion", knows + `far[a, b] := knows[a, b]  far[a, c] := far[a, b], knows[b, c]  ?[b] := far['ana', b]`, `[[bob] [cid] [dea]]`, nil},
		{"recursion with an aggregation", knows + `dist[b, min(d)] := knows['ana', b], d = 1  dist[c, min(d)] := dist[b, n], knows[b, c], d = n + 1  ?[b, d] := dist[b, d]`, `[[bob 1] [cid 2] [dea 3]]`, nil},
		{"values of a list", `?[x] := x in [3, 1, 2]`, `[[1] [2] [3]]`, nil},
		{"groups of an aggregation", `?[t, count(b)] := *relation{namespace: 'default', rel_type: t, to_id: b, from_id}`, `[[knows 4] [likes 1]]`, nil},
		{"sum, mean, least and largest", `r[x] <- [[1], [2], [3]]  ?[sum(x), mean(x), min(x), max(x)] := r[x]`, `[[6 2 1 3]]`, nil},
		{"collecting", `r[x] <- [[3], [1]]  ?[collect(x)] := r[x]`, `[[[1 3]]]`, nil},
		{"order", `r[x] <- [[1], [3], [2]]  ?[x] := r[x] :order -x`, `[[3] [2] [1]]`, nil},
		{"limit and offset", `r[x] <- [[1], [2], [3], [4]]  ?[x] := r[x] :order x :limit 2 :offset 1`, `[[2] [3]]`, nil},
		{"parameters", `?[x, y] := x = $x, y = $y`, `[[1 a]]`, object{"x": int64(1), "y": "a"}},
		{"division is of floats", `?[a, b] := a = 7 / 2, b = 7 % 2`, `[[3.5 1]]`, nil},
		{"null", `?[a, b] := a = is_null(null), b = null == null`, `[[true true]]`, nil},
		{"a default for null", `?[a] := a = null ~ 2`, `[[2]]`, nil},
		{"texts", `?[a, b, c] := a = uppercase('ana'), b = starts_with('ana', 'an'), c = concat('a', 'b')`, `[[ANA true ab]]`, nil},
		{"a regular expression", `?[a] := a in ['ana', 'bob'], regex_matches(a, '^b')`, `[[bob]]`, nil},
		{"a condition", `?[a, b] := a in [1, 2], b = if(a > 1, 'many', 'one')`, `[[1 one] [2 many]]`, nil},
		{"lists", `?[a, b] := a = length([1, 2, 3]), b = first([4, 5])`, `[[3 4]]`, nil},
		{"members of JSON", `?[id, age] := *entity{namespace: 'default', id, properties}, age = properties->'age', !is_null(age)`, `[[ana 30] [bob 25]]`, nil},
		{"a fixed rule: the shortest path", knows + `?[from, to, cost, path] <~ ShortestPathDijkstra(knows[], s[], e[])  s[x] <- [['ana']]  e[x] <- [['dea']]`, `[[ana dea 3 [ana bob cid dea]]]`, nil},
		{"a fixed rule: breadth first", knows + `n[x] := knows[x, _]  n[x] := knows[_, x]  ?[a, b, p] <~ BFS(knows[], n[x], s[], condition: x == 'cid')  s[x] <- [['ana']]`, `[[ana cid [ana bob cid]]]`, nil},
		{"a fixed rule: components", knows + `?[count_unique(g)] := c[_, g]  c[n, g] <~ ConnectedComponents(knows[])`, `[[2]]`, nil},
		{"an assertion holds", `?[a] <- [[1]] :assert some`, `[[1]]`, nil},
		{"a block of queries with a temporary relation", `{?[a] <- [[1], [2]] :create _t {a}} {?[sum(a)] := *_t{a}}`, `[[3]]`, nil},
	})
}

// Similarity by other distances than the cosine, which graph.vector_search uses, is a
// query without an index.
func TestDistancesInDatalog(t *testing.T) {
	g := lang(t, "cozo")
	for id, v := range map[string][]any{"ana": {1.0, 0.0}, "bob": {4.0, 0.0}, "cid": {0.0, 1.0}} {
		g.call("update_entity", object{"entity_id": id, "embedding": v})
	}
	nearest := func(distance string) string {
		return `?[d, id] := *entity{namespace: 'default', id, embedding}, !is_null(embedding), d = ` + distance + `(embedding, vec($v)) :order d, id :limit 2`
	}
	v := object{"v": []any{1.0, 0.0}}
	g.says("datalog", []said{
		{"the square of the L2 distance", nearest("l2_dist"), `[[0 ana] [2 cid]]`, v},
		{"the cosine distance", nearest("cos_dist"), `[[0 ana] [0 bob]]`, v},
	})
	g.fails("query", object{"datalog": `?[id] := ~entity:vec{id | query: vec([1, 0]), k: 1, ef: 8}`}, tea.QueryError, "Index ")
	g.fails("query", object{"datalog": `?[id] := ~entity:words{id | query: 'ana', k: 1}`}, tea.QueryError, "Index ")
	g.fails("query", object{"datalog": `::hnsw create entity:vec {dim: 2, m: 8, ef_construction: 8, dtype: F32, fields: [embedding], distance: L2}`, "read_only": false}, tea.PermissionDenied, "system operator")
}

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

// queries runs queries on a backend and compares their rows. A row of one column is its
// value.
func queries(t *testing.T, backend, language string, prepare []string, all map[string][]any) {
	t.Helper()
	g := openFor(t, backend)
	for _, text := range prepare {
		g.call("query", object{language: text, "read_only": false})
	}
	for text, want := range all {
		rows := g.rowsOf(object{language: text})
		for i, values := range rows {
			if values := values.([]any); len(values) == 1 {
				rows[i] = values[0]
			}
		}
		if rows != nil {
			same(t, text, rows, want)
		}
	}
}

type list = []any

// What the scenarios of openCypher's compatibility kit are about, on tables.
func TestCypherIsThatOfOpenCypher(t *testing.T) {
	one, two, three := int64(1), int64(2), int64(3)
	queries(t, "cypher", "cypher", []string{
		"CREATE NODE TABLE Person(name STRING PRIMARY KEY, age INT64, city STRING)",
		"CREATE REL TABLE Knows(FROM Person TO Person, since INT64)",
		`CREATE (a:Person {name: 'A', age: 30, city: 'Porto'}), (b:Person {name: 'B', age: 20}), (c:Person {name: 'C', age: 30, city: 'Braga'}), (d:Person {name: 'D'}),
			(a)-[:Knows {since: 1}]->(b), (b)-[:Knows {since: 2}]->(c), (c)-[:Knows {since: 3}]->(a), (a)-[:Knows {since: 4}]->(a)`,
	}, map[string][]any{
		// Match.
		"MATCH (n:Person) RETURN n.name AS name ORDER BY name":                                                       {"A", "B", "C", "D"},
		"MATCH (n:Person {city: 'Porto'}) RETURN n.name":                                                             {"A"},
		"MATCH (:Person {name: 'A'})-[r:Knows]->(m) RETURN m.name AS name ORDER BY name":                             {"A", "B"},
		"MATCH (:Person {name: 'A'})-[r:Knows]-(m) WHERE m.name <> 'A' RETURN m.name AS name ORDER BY name":          {"B", "C"},
		"MATCH (a:Person)-[:Knows]->(b)-[:Knows]->(c) WHERE a.name = 'A' AND b.name = 'B' RETURN c.name":             {"C"},
		"MATCH (a:Person {name: 'B'})-[:Knows*2]->(b) RETURN b.name":                                                 {"A"},
		"MATCH (a:Person {name: 'B'})-[:Knows*1..2]->(b) RETURN b.name AS name ORDER BY name":                        {"A", "C"},
		"MATCH p = (a:Person {name: 'B'})-[:Knows*2]->(b) RETURN length(p)":                                          {two},
		"MATCH (d:Person {name: 'D'}) OPTIONAL MATCH (d)-[:Knows]->(x) RETURN d.name, x.name":                        {list{"D", nil}},
		"OPTIONAL MATCH (n:Person {name: 'none'}) RETURN n.name":                                                     {nil},
		"MATCH (n:Person) WHERE NOT EXISTS { MATCH (n)-[:Knows]->() } RETURN n.name":                                 {"D"},
		"MATCH (n:Person) WHERE n.name IN ['A', 'D'] RETURN n.name AS name ORDER BY name DESC":                       {"D", "A"},
		"MATCH (a:Person), (b:Person) WHERE a.age = b.age AND a.name < b.name RETURN a.name, b.name":                 {list{"A", "C"}},
		"MATCH (n:Person) WHERE n.age > 25 XOR n.city = 'Porto' RETURN n.name AS name ORDER BY name":                 {"C"},
		"MATCH (n:Person) WHERE n.city IS NULL RETURN n.name AS name ORDER BY name":                                  {"B", "D"},
		"MATCH (n:Person) WHERE n.city <> 'Porto' RETURN n.name":                                                     {"C"},
		"MATCH (n:Person) WHERE n.name STARTS WITH 'A' OR n.city ENDS WITH 'ga' RETURN n.name AS name ORDER BY name": {"A", "C"},
		"MATCH (n:Person) WHERE n.city CONTAINS 'ort' RETURN n.name":                                                 {"A"},
		"MATCH (n:Person) RETURN count(*), count(n.age), count(DISTINCT n.age)":                                      {list{int64(4), three, two}},
		"MATCH (n:Person) RETURN min(n.age), max(n.age), sum(n.age), avg(n.age)":                                     {list{int64(20), int64(30), int64(80), 80.0 / 3}},
		"MATCH (n:Person) WHERE n.age IS NOT NULL RETURN n.age AS age, count(*) AS c ORDER BY age":                   {list{int64(20), one}, list{int64(30), two}},
		"MATCH (n:Person) WHERE n.age = 1000 RETURN count(*), sum(n.age), collect(n.name)":                           {list{int64(0), nil, nil}},
		"MATCH (n:Person) WITH n.age AS age, count(*) AS c WHERE c > 1 RETURN age, c":                                {list{int64(30), two}},
		"MATCH (n:Person) RETURN DISTINCT n.age IS NULL AS x ORDER BY x":                                             {false, true},
		"MATCH (n:Person) RETURN n.name AS name ORDER BY name SKIP 1 LIMIT 2":                                        {"B", "C"},
		"MATCH (n:Person) RETURN n.name AS name ORDER BY n.age DESC, name LIMIT 2":                                   {"D", "A"},
		"MATCH (n:Person) WITH n ORDER BY n.name LIMIT 1 RETURN n.name":                                              {"A"},
		"MATCH (n:Person {name: 'A'}) RETURN label(n)":                                                               {"Person"},
		"MATCH (:Person {name: 'B'})-[r]->() RETURN label(r), r.since":                                               {list{"Knows", two}},
		"MATCH (a:Person {name: 'A'})-[r:Knows]->(a) RETURN r.since":                                                 {int64(4)},
		"MATCH (n:Person {name: 'none'}) RETURN n":                                                                   {},
		// Values.
		"RETURN null = null, null <> 1, null AND false, null OR true, NOT null":                         {list{nil, nil, false, true, nil}},
		"RETURN 7 / 2, -7 % 3, 2 ^ 3, 1 + 2 * 3, 7.0 / 2":                                               {list{three, -one, 8.0, int64(7), 3.5}},
		"RETURN 1 IN [1, null], 2 IN [1, 3], [1, 2] + [3]":                                              {list{true, false, list{one, two, three}}},
		"UNWIND [1, null, 2] AS x RETURN x":                                                             {one, nil, two},
		"UNWIND [3, 1, 2] AS x WITH x ORDER BY x LIMIT 9 RETURN collect(x)":                             {list{one, two, three}},
		"RETURN CASE 2 WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END, CASE WHEN false THEN 1 END":        {list{"b", nil}},
		"RETURN coalesce(null, 'x'), size('äöü'), size([1, 2]), toUpper('ä'), substring('hello', 2, 3)": {list{"x", three, two, "Ä", "ell"}},
		"WITH 1 AS a, 'x' AS b RETURN b, a":                                                             {list{"x", one}},
		"RETURN 'a\\'b'":                                                                                {"a'b"},
	})
}

// The routes, and the questions about them, that CozoDB's tutorial begins with.
func TestDatalogIsThatOfTheTutorial(t *testing.T) {
	queries(t, "cozo", "datalog", []string{
		":create love {loving, loved}",
		`?[loving, loved] <- [['alice', 'eve'], ['bob', 'alice'], ['eve', 'alice'], ['eve', 'bob'], ['eve', 'charlie'], ['charlie', 'eve'], ['david', 'george'], ['george', 'george']] :put love {loving, loved}`,
		`?[fr, to, dist] <- [['a', 'b', 1.0], ['b', 'c', 2.0], ['a', 'c', 9.0], ['c', 'd', 1.0], ['x', 'y', 1.0]] :create route {fr, to => dist}`,
	}, map[string][]any{
		"?[x, y] <- [[1, 2], [3, 4]]":                {list{int64(1), int64(2)}, list{int64(3), int64(4)}},
		"?[x] := x = 1 + 2 * 3":                      {int64(7)},
		"?[x] := x in [1, 2, 2, 3]":                  {int64(1), int64(2), int64(3)},
		"?[loved] := *love{loving: 'eve', loved}":    {"alice", "bob", "charlie"},
		"?[x] := *love['eve', x], *love[x, 'eve']":   {"alice", "charlie"},
		"?[x] := *love[x, x]":                        {"george"},
		"?[x] := *love['eve', x] or *love['bob', x]": {"alice", "bob", "charlie"},
		"?[x] := *love[_, x], not *love[x, _]":       {},
		"?[x] := *love[x, _], not *love[_, x]":       {"david"},
		"loved[x] := *love['alice', x] loved[y] := loved[x], *love[x, y] ?[x] := loved[x]":                  {"alice", "bob", "charlie", "eve"},
		"loved[x] := *love['alice', x] loved[y] := loved[x], *love[x, y] ?[x] := *love[x, _], not loved[x]": {"david", "george"},
		"?[count(x)] := *love[x, _]":                                             {int64(8)},
		"?[count_unique(x)] := *love[x, _]":                                      {int64(6)},
		"?[x, count(y)] := *love[x, y], x != 'eve' :order -count(y), x :limit 2": {list{"alice", int64(1)}, list{"bob", int64(1)}},
		"?[x, y] := *love[x, y] :order -x, y :limit 2 :offset 1":                 {list{"eve", "alice"}, list{"eve", "bob"}},
		"far[to, min(d)] := *route{fr: 'a', to, dist: d} far[to, min(d)] := far[mid, a], *route{fr: mid, to, dist: b}, d = a + b ?[to, d] := far[to, d]": {list{"b", 1.0}, list{"c", 3.0}, list{"d", 4.0}},
		"start[] <- [['a']] end[] <- [['d']] ?[from, to, cost, path] <~ ShortestPathDijkstra(*route[], start[], end[])":                                  {list{"a", "d", 4.0, list{"a", "b", "c", "d"}}},
		"?[x] := x = concat('a', 'b')":                                             {"ab"},
		"?[x] := x = if(1 > 2, 'yes', 'no')":                                       {"no"},
		"?[a] := a = null ~ 3":                                                     {int64(3)},
		"?[fr, sum(dist)] := *route{fr, dist}":                                     {list{"a", 10.0}, list{"b", 2.0}, list{"c", 1.0}, list{"x", 1.0}},
		"?[x] := x = first([1, 2]), x == 1":                                        {int64(1)},
		"?[x] := x = get({'a': 1}, 'a')":                                           {int64(1)},
		"?[node, group] <~ ConnectedComponents(*route[fr, to]) :order group, node": {list{"a", int64(0)}, list{"b", int64(0)}, list{"c", int64(0)}, list{"d", int64(0)}, list{"x", int64(1)}, list{"y", int64(1)}},
	})
}
