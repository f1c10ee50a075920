package graph_test

import (
	"fmt"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

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
		{"union removes duplicates", `RETURN 1 AS x UNION RETURN 1 AS x`, `[[1]]`, nil},
		{"union all keeps them", `RETURN 1 AS x UNION ALL RETURN 1 AS x`, `[[1] [1]]`, nil},
		{"unwinding an empty list has no rows", `UNWIND [] AS x RETURN x`, `[]`, nil},
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
