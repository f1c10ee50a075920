package graph_test

import (
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"

	"github.com/the-edge-agent/tea/plugins/graph"
)

// Workflows for other programs use these names.
func TestParametersHaveTheNamesOfOtherWorkflows(t *testing.T) {
	t.Parallel()
	g := open(t, object{"path": t.TempDir()})
	same(t, "type", g.call("store_entity", object{"entity_id": "ana", "type": "person"})["type"], "person")
	g.call("store_entities", object{"entities": []any{object{"entity_id": "acme", "type": "firm"}, object{"entity_id": "bob", "entity_type": "person"}}})
	g.call("store_relation", object{"source": "ana", "target": "acme", "type": "works_at"})
	g.call("store_relation", object{"from_entity": "ana", "target": "bob", "relation_type": "knows", "source": "cv"})
	g.call("store_relations", object{"relations": []any{object{"source": "bob", "target": "acme", "type": "works_at"}}})
	same(t, "relations", short(g.call("get_relations", object{"start_entity": "ana"})["relations"]), "ana-knows-bob ana-works_at-acme")
	same(t, "source", field(g.call("get_relations", object{"from_entity": "ana", "to_entity": "bob"})["relations"], "source"), []any{"cv"})
	same(t, "neighbors", ids(g.call("neighbors", object{"start_entity": "ana"})["neighbors"]), "acme bob")
	same(t, "subgraph", ids(g.call("subgraph", object{"start_entity": "bob"})["entities"]), "bob acme ana")
	same(t, "context", ids(g.call("retrieve_context", object{"start_entity": "bob", "hops": 0})["entities"]), "bob")
	for _, p := range []object{{"start_entity": "ana", "to_entity": "acme"}, {"source": "ana", "target": "acme"}} {
		same(t, "path", g.call("shortest_path", p)["path"], []any{"ana", "acme"})
	}
	g.call("update_entity", object{"entity_id": "bob", "type": "robot"})
	same(t, "new type", g.call("get_entity", object{"entity_id": "bob"})["entity"].(object)["type"], "robot")
	same(t, "deleted", g.call("delete_relation", object{"source": "bob", "target": "acme", "type": "works_at"})["deleted"], int64(1))

	g.fails("store_entity", object{"entity_id": "ana", "type": "person", "entity_type": "robot"}, tea.ValidationError, "entity_type and type mean the same parameter and differ; remove type")
	g.fails("store_entities", object{"entities": []any{object{"entity_id": "x", "type": "a", "entity_type": "b"}}}, tea.ValidationError, "entities[0]: ")
	g.fails("store_relation", object{"source": "ana", "to_entity": "acme", "type": "knows"}, tea.ValidationError, "from_entity")
	g.fails("neighbors", object{}, tea.ValidationError, "entity_id")
}

// A missing parameter is found before the run, as without the other names.
func TestAMissingParameterWithTwoNamesIsFound(t *testing.T) {
	t.Parallel()
	bundle := graph.Bundle()
	for _, c := range []struct {
		action string
		params object
		want   string
	}{
		{"graph.store_relation", object{"from_entity": "a", "to_entity": "b", "relation_type": "r"}, ""},
		{"graph.store_relation", object{"source": "a", "target": "b", "type": "r"}, ""},
		{"graph.store_relation", object{"to_entity": "b", "type": "r"}, ": the parameters: needs from_entity or source"},
		{"graph.store_relation", object{"from_entity": "a", "to_entity": "b"}, ": the parameters: needs relation_type or type"},
		{"graph.store_relations", object{"relations": []any{object{"source": "a", "type": "r"}}}, `: parameter "relations[0]": needs to_entity or target`},
		{"graph.neighbors", object{"depth": int64(2)}, ": the parameters: needs entity_id or start_entity"},
		{"graph.neighbors", object{"start_entity": "a"}, ""},
	} {
		s, err := jsonschema.Compile(bundle.Find(c.action).Params)
		if err != nil {
			t.Fatal(err)
		}
		same(t, c.action, jsonschema.Describe(s.Validate(c.params), "parameter"), c.want)
	}
}
