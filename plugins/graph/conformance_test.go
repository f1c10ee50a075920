package graph_test

import (
	"testing"

	"github.com/the-edge-agent/tea/plugins/graph"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	settings := map[string]any{"graph": map[string]any{"path": t.TempDir(), "backend": "memory"}}
	teatest.Conformance(t, graph.Bundle(),
		teatest.Request{Action: "graph.get_entity", Settings: settings, Params: map[string]any{"entity_id": "none"}},
		teatest.Request{Action: "graph.store_relation", Settings: settings, Params: map[string]any{"from_entity": "a", "to_entity": "b", "relation_type": "knows"}},
	)
}
