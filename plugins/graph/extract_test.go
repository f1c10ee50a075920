package graph_test

import (
	"context"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

func TestATextBecomesEntitiesAndRelations(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.call("store_entity", object{"entity_id": "p:1", "entity_type": "person", "text": "old text", "properties": object{"name": "Ana Souza", "age": int64(30)}})
		var asked object
		g.host = &teatest.Host{Actions: map[string]func(context.Context, any) (any, error){modelAction: func(_ context.Context, params any) (any, error) {
			asked = params.(object)
			return object{"data": object{
				"entities": []any{
					object{"name": "ANA  SOUZA", "type": "human", "description": "An engineer.", "properties": []any{object{"name": "role", "value": "engineer"}}},
					object{"name": "Acme", "type": "company", "description": "A firm.", "properties": []any{}},
					object{"name": "acme", "type": "company", "description": "", "properties": []any{object{"name": "size", "value": 5}}},
					object{"name": "  ", "type": "x", "description": "", "properties": []any{}},
				},
				"relations": []any{
					object{"from": "Ana Souza", "type": "works_at", "to": "ACME"},
					object{"from": "Ana Souza", "type": "works_at", "to": "Acme"},
					object{"from": "Ana Souza", "type": "knows", "to": "Nobody"},
				},
			}}, nil
		}}}
		r := g.call("extract", object{"text": "Ana Souza works at Acme.", "source": "a.md", "entity_types": []any{"human", "company"}})
		same(t, "ids", field(r["entities"], "entity_id"), []any{"p:1", "Acme"})
		same(t, "known", field(r["entities"], "known"), []any{true, false})
		same(t, "relations", short(r["relations"]), "p:1-works_at-Acme")
		same(t, "what was left out", len(r["notes"].([]any)), 2)
		e := g.call("get_entity", object{"entity_id": "p:1"})["entity"].(object)
		same(t, "a known entity", []any{e["type"], e["text"], e["properties"]}, []any{"person", "old text", object{"name": "Ana Souza", "age": int64(30), "role": "engineer"}})
		e = g.call("get_entity", object{"entity_id": "Acme"})["entity"].(object)
		same(t, "a new entity", []any{e["type"], e["text"], e["properties"]}, []any{"company", "A firm.", object{"name": "Acme", "size": int64(5)}})
		same(t, "stored relations", short(g.call("get_relations", object{"entity_id": "Acme"})["relations"]), "p:1-works_at-Acme")
		if prompt := asked["prompt"].(string); !strings.Contains(prompt, "BEGIN TEXT ") || !strings.Contains(prompt, "Ana Souza works at Acme.") {
			t.Errorf("the model was asked %q", prompt)
		}
		g.call("extract", object{"text": "Ana Souza works at Acme.", "namespace": "other", "store": false})
		same(t, "nothing stored", g.call("stats", object{"namespace": "other"})["entities"], int64(0))
		g.host = &teatest.Host{}
		g.fails("extract", object{"text": "x"}, tea.DependencyMissing, "install the plugin llm")
		g.fails("extract", object{"text": " "}, tea.ValidationError, "needs a text")
	})
}

const modelAction = "llm.call"
