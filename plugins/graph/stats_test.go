package graph_test

import (
	"os"
	"path/filepath"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

func TestStatisticsAfterTheLastEntityIsDeleted(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.call("store_entity", object{"entity_id": "a"})
		g.call("store_entity", object{"entity_id": "b", "namespace": "other"})
		g.call("delete_entity", object{"entity_id": "a"})
		r := g.call("stats", object{})
		same(t, "namespaces", r["namespaces"], []any{"other"})
		same(t, "notes", r["notes"], []any{`the graph has no namespace "default"; it has other`})
	})
}

func TestTheSizeOfAGraphThatALinkLeadsTo(t *testing.T) {
	t.Parallel()
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip(err)
	}
	g := open(t, object{"backend": "memory", "path": link})
	g.link("a-knows-b")
	if bytes := g.call("stats", object{})["bytes"].(int64); bytes < 4096 {
		t.Errorf("the graph has %d bytes", bytes)
	}
}

func TestATypeThatNoRelationHas(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.link("a-knows-b", "b-likes-c")
		note := []any{`no relation in the namespace "default" has the type "knos"`}
		for action, params := range map[string]object{
			"neighbors": {"entity_id": "a"}, "shortest_path": {"from_entity": "a", "to_entity": "b"}, "subgraph": {"entity_id": "a"}, "retrieve_context": {"query": "a"},
		} {
			params["relation_types"] = []any{"knos"}
			same(t, action, g.call(action, params)["notes"], note)
			params["relation_types"] = []any{"knows"}
			if notes, ok := g.call(action, params)["notes"].([]any); ok && len(notes) > 0 {
				t.Errorf("%s: %q", action, notes)
			}
		}
	})
}

func TestATypeThatNoEntityHas(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.link("pump-knows-b")
		g.call("update_entity", object{"entity_id": "pump", "embedding": []any{1.0, 0.0}})
		const note = `no entity in the namespace "default" has the type "persn"`
		for action, params := range map[string]object{
			"neighbors": {"entity_id": "pump"}, "subgraph": {"entity_id": "pump"}, "search": {"query": "pump"}, "vector_search": {"embedding": []any{1.0, 0.0}},
			"retrieve_context": {"query": "pump", "embedding": []any{1.0, 0.0}}, "algorithm": {"algorithm": "pagerank"},
		} {
			params["entity_types"] = []any{"persn"}
			if notes, _ := g.call(action, params)["notes"].([]any); len(notes) == 0 || notes[0] != note {
				t.Errorf("%s: %q", action, notes)
			}
			params["entity_types"] = []any{"entity"}
			if notes, _ := g.call(action, params)["notes"].([]any); len(notes) > 0 {
				t.Errorf("%s with a type that exists: %q", action, notes)
			}
		}
	})
}

// An unknown name must not look like an empty result.
func TestAPropertyThatDoesNotExist(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.link("pump-feeds-b")
		g.call("update_entity", object{"entity_id": "b", "properties": object{"floor": int64(2), "name": "pump"}, "embedding": []any{1.0, 0.0}})
		for action, params := range map[string]object{"neighbors": {"entity_id": "pump"}, "search": {"query": "pump"}, "vector_search": {"embedding": []any{1.0, 0.0}}} {
			for _, filter := range []object{{"flor": int64(2)}, {"floor": object{"gte": int64(2)}, "flor": int64(2)}} {
				params["filter"] = filter
				same(t, action, g.call(action, params)["notes"], []any{`no entity in the namespace "default" has the property "flor"`})
			}
			params["filter"] = object{"floor": int64(2), "flor": object{"ne": int64(2)}}
			same(t, action+" with a result", g.call(action, params)["notes"], nil)
			params["filter"] = object{"floor": object{"greater": int64(1)}}
			g.fails(action, params, tea.ValidationError, `filter: field "floor": unknown operator "greater"; use one of eq, ne, gt`)
		}
		notes := func(pattern object) any { return g.call("query", object{"pattern": pattern})["notes"] }
		same(t, "of entities", notes(object{"from": object{"properties": object{"flor": int64(2)}}}), []any{`no entity in the namespace "default" has the property "flor"`})
		same(t, "of relations", notes(object{"to": object{"properties": object{"floor": int64(2)}}, "relation": object{"properties": object{"lod": int64(2)}}}), []any{`no relation in the namespace "default" has the property "lod"`})
		g.fails("query", object{"pattern": object{"relation": object{"properties": object{"load": object{"above": int64(1)}}}}}, tea.ValidationError, `pattern.relation.properties: field "load": unknown operator "above"`)
	})
}

func TestNamesThatDoNotExistAreNoted(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		for _, action := range []string{"stats", "schema"} {
			same(t, action+" of an empty graph", g.call(action, object{})["notes"], []any{"the graph is empty"})
		}
		same(t, "an algorithm", g.call("algorithm", object{"algorithm": "pagerank"})["notes"], []any{`the namespace "default" of the graph has no entities`})
		g.link("a-knows-b")
		g.call("update_entity", object{"entity_id": "a", "embedding": []any{1.0, 0.0}})
		same(t, "the schema of another namespace", g.call("schema", object{"namespace": "defalt"})["notes"], []any{`the graph has no namespace "defalt"; it has default`})
		const noType, noEntity = `no relation in the namespace "default" has the type "knos"`, `there is no entity "aa" in the namespace "default" of the graph`
		same(t, "relations", g.call("get_relations", object{"entity_id": "a", "relation_types": []any{"knos"}})["notes"], []any{noType})
		same(t, "a relation", g.call("delete_relation", object{"from_entity": "aa", "relation_type": "knos", "to_entity": "b"})["notes"], []any{noType, noEntity})
		same(t, "a relation at a time", g.call("delete_relation", object{"from_entity": "a", "relation_type": "knows", "to_entity": "b", "valid_from": "2020-01-01"})["notes"], []any{"the relation is valid at other times (1)"})
		same(t, "an entity", g.call("delete_entity", object{"entity_id": "aa"})["notes"], []any{noEntity})
		same(t, "an export", g.call("export", object{"entity_types": []any{"persn"}})["notes"], []any{`no entity in the namespace "default" has the type "persn"`})
		same(t, "a score", g.call("vector_search", object{"embedding": []any{1.0, 1.0}, "min_score": 0.9})["notes"], []any{"the best result has the score 0.7071, below min_score"})
		for _, algorithm := range []string{"connected_components", "community"} {
			g.fails("algorithm", object{"algorithm": algorithm, "direction": "in"}, tea.ValidationError, algorithm+" follows relations in both directions; leave direction out")
		}
	})
}
