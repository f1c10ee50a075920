package graph_test

import (
	"slices"
	"testing"
)

// queries runs queries on a backend and compares their rows, which have the
// columns as members.
func queries(t *testing.T, backend, language string, prepare []string, all map[string][]any) {
	t.Helper()
	if !slices.Contains(backends(t), backend) {
		t.Skipf("this build and machine do not have the backend %s", backend)
	}
	g := open(t, object{"backend": backend, "path": t.TempDir()})
	g.needLibrary()
	for _, text := range prepare {
		g.call("query", object{language: text, "read_only": false})
	}
	for text, want := range all {
		r, err := g.try("query", object{language: text})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := []any{}
		for _, row := range r["results"].([]any) {
			values := []any{}
			for _, column := range r["columns"].([]any) {
				values = append(values, row.(object)[column.(string)])
			}
			if len(values) == 1 {
				got = append(got, values[0])
			} else {
				got = append(got, values)
			}
		}
		same(t, text, got, want)
	}
}

type list = []any

// What the scenarios of openCypher's compatibility kit are about, on tables.
func TestCypherIsThatOfOpenCypher(t *testing.T) {
	t.Parallel()
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
		"UNWIND [] AS x RETURN x":                                                                       {},
		"UNWIND [3, 1, 2] AS x WITH x ORDER BY x LIMIT 9 RETURN collect(x)":                             {list{one, two, three}},
		"RETURN CASE 2 WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END, CASE WHEN false THEN 1 END":        {list{"b", nil}},
		"RETURN coalesce(null, 'x'), size('äöü'), size([1, 2]), toUpper('ä'), substring('hello', 2, 3)": {list{"x", three, two, "Ä", "ell"}},
		"RETURN 1 AS x UNION RETURN 1 AS x":                                                             {one},
		"WITH 1 AS a, 'x' AS b RETURN b, a":                                                             {list{"x", one}},
		"RETURN 'a\\'b'":                                                                                {"a'b"},
	})
}

// The routes, and the questions about them, that CozoDB's tutorial begins with.
func TestDatalogIsThatOfTheTutorial(t *testing.T) {
	t.Parallel()
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
