package graph_test

import (
	"os"
	"path/filepath"
	"testing"
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
