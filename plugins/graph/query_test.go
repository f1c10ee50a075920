package graph_test

import (
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

func TestAPatternFindsRelations(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.link("s1-feeds-p1", "s2-feeds-p1", "p1-feeds-hall", "s1-next_to-s2")
		for _, id := range []string{"s1", "s2"} {
			g.call("update_entity", object{"entity_id": id, "entity_type": "sensor", "properties": object{"floor": int64(1)}})
		}
		g.call("store_relation", object{"from_entity": "s2", "relation_type": "feeds", "to_entity": "p1", "properties": object{"load": 0.5}})
		find := func(pattern, more object) (object, string) {
			p := object{"pattern": pattern}
			for k, v := range more {
				p[k] = v
			}
			r := g.call("query", p)
			if len(r["columns"].([]any)) == 1 {
				return r, "" // entities only
			}
			return r, short(field(r["results"], "relation"))
		}
		for _, c := range []struct {
			pattern object
			want    string
		}{
			{object{"from": "s1", "relation": nil}, "s1-feeds-p1 s1-next_to-s2"},
			{object{"relation": "feeds"}, "p1-feeds-hall s1-feeds-p1 s2-feeds-p1"},
			{object{"from": object{"type": "sensor"}, "relation": "feeds", "to": object{}}, "s1-feeds-p1 s2-feeds-p1"},
			{object{"to": "p1"}, "s1-feeds-p1 s2-feeds-p1"},
			{object{"relation": object{"type": "feeds", "properties": object{"load": object{"gt": 0.1}}}}, "s2-feeds-p1"},
			{object{"from": object{"properties": object{"floor": int64(1)}}, "to": object{"type": "sensor"}}, "s1-next_to-s2"},
			{object{"from": "none", "relation": "feeds"}, ""},
		} {
			r, got := find(c.pattern, nil)
			same(t, "relations", got, c.want)
			same(t, "truncated", r["truncated"], false)
		}
		r, got := find(object{"relation": "feeds"}, object{"limit": 2})
		same(t, "with a limit", got, "p1-feeds-hall s1-feeds-p1")
		same(t, "truncated", r["truncated"], true)
		_, got = find(object{"from": "$who", "relation": "$how"}, object{"params": object{"who": "s1", "how": "feeds"}})
		same(t, "with parameters", got, "s1-feeds-p1")
		r, _ = find(object{"from": object{"type": "sensor"}}, nil)
		same(t, "entities", field(field(r["results"], "from"), "id"), []any{"s1", "s2"})
		same(t, "their kind", field(field(r["results"], "from"), "kind"), []any{"entity", "entity"})
		g.fails("query", object{"pattern": object{"form": "a"}}, tea.ValidationError, `unknown member "form"`)
		g.fails("query", object{"pattern": object{"from": object{"typ": "a"}}}, tea.ValidationError, `unknown member "typ"`)
		g.fails("query", object{"pattern": object{"from": "s1", "to": "$x"}, "params": object{"x": nil}}, tea.ValidationError, `pattern: the parameter $x is null`)
		g.fails("query", object{"pattern": object{"from": "$x"}}, tea.ValidationError, `the parameter $x is not in params`)
		g.fails("query", object{}, tea.ValidationError, "needs one of pattern, datalog and cypher")
	})
}

func TestTheBackendMemoryHasNoQueryLanguage(t *testing.T) {
	t.Parallel()
	g := open(t, object{"backend": "memory", "path": t.TempDir()})
	g.fails("query", object{"cypher": "MATCH (n) RETURN n"}, tea.ValidationError, "the backend memory of this graph does not support cypher; use pattern, or a graph with settings.graph.backend: cypher")
	g.fails("query", object{"datalog": "?[a] := a = 1"}, tea.ValidationError, "settings.graph.backend: cozo")
}

func TestStatsAndSchema(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.call("store_entity", object{"entity_id": "a", "entity_type": "person", "properties": object{"age": int64(3), "name": "A"}})
		g.call("store_entity", object{"entity_id": "b", "entity_type": "person", "properties": object{"age": 2.5}})
		g.call("store_entity", object{"entity_id": "c", "entity_type": "firm"})
		g.call("store_relation", object{"from_entity": "a", "relation_type": "works_at", "to_entity": "c", "properties": object{"since": int64(2020)}})
		s := g.call("stats", object{})
		same(t, "entity types", s["entity_types"], object{"person": int64(2), "firm": int64(1)})
		same(t, "relation types", s["relation_types"], object{"works_at": int64(1)})
		if n := s["bytes"].(int64); n <= 0 {
			t.Errorf("the graph has %d bytes", n)
		}
		r := g.call("schema", object{})
		same(t, "entities", r["entity_types"], []any{
			object{"type": "firm", "count": int64(1), "properties": object{}},
			object{"type": "person", "count": int64(2), "properties": object{"age": "integer or number", "name": "string"}},
		})
		same(t, "relations", r["relation_types"], []any{
			object{"type": "works_at", "count": int64(1), "properties": object{"since": "integer"}, "ends": []any{"person -> firm"}},
		})
	})
}

func TestAQueryRefusesWhatOnlyAPatternUses(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		language := map[string]string{"cozo": "datalog", "cypher": "cypher"}[g.call("stats", object{})["backend"].(string)]
		if language == "" {
			t.Skip("the backend has no language")
		}
		text := map[string]string{"datalog": "?[a] := a = 1", "cypher": "RETURN 1 AS a"}[language]
		g.fails("query", object{language: text, "as_of": "2020-01-01"}, tea.ValidationError, "as_of is for a pattern")
		g.fails("query", object{language: text, "namespace": "other"}, tea.ValidationError, "namespace is for a pattern")
		same(t, "without them", field(g.call("query", object{language: text})["results"], "a"), []any{int64(1)})
	})
}

func TestAPatternWithoutRowsSaysWhatDoesNotExist(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.link("a-knows-b")
		notes := func(pattern object) any { return g.call("query", object{"pattern": pattern})["notes"] }
		same(t, "entities", notes(object{"from": object{"type": "persn"}}), []any{`no entity in the namespace "default" has the type "persn"`})
		same(t, "relations", notes(object{"from": "aa", "relation": "knos", "to": "b"}), []any{`no relation in the namespace "default" has the type "knos"`, `there is no entity "aa" in the namespace "default" of the graph`})
		same(t, "nothing is wrong", notes(object{"from": "b", "relation": "knows", "to": "a"}), nil)
		same(t, "with rows", notes(object{"relation": "knows"}), nil)
	})
}
