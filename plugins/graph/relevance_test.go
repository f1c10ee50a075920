package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// hub stores a pump, such as pump7, that 60 sensors measure, and that ana7 maintains by a relation of a type.
func (g *opened) hub(pump, kind string) {
	g.t.Helper()
	entities := []any{object{"entity_id": pump, "entity_type": "pump", "text": "main pump of hall 2"}, object{"entity_id": "ana" + pump[4:], "entity_type": "person"}}
	relations := []any{object{"from_entity": "ana" + pump[4:], "to_entity": pump, "relation_type": kind}}
	for i := range 60 {
		id := fmt.Sprintf("a-%s-%02d", pump[4:], i)
		entities = append(entities, object{"entity_id": id, "entity_type": "sensor", "text": "Flow of " + pump})
		relations = append(relations, object{"from_entity": id, "to_entity": pump, "relation_type": "measures"})
	}
	g.call("store_entities", object{"entities": entities})
	g.call("store_relations", object{"relations": relations})
}

func TestAQuestionNamesARelation(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		for i, c := range []struct{ kind, query string }{
			{"maintains", "Who maintains %s?"},
			{"maintained_by", "Who maintains %s?"},
			{"isMaintainedBy", "Who has to maintain %s?"},
			{"MAINTAINS", "maintaining %s"},
			{"trabalha_em", "Quem trabalha na bomba %s?"},
			{"leitung_zu", "Welche Leitungen hat %s?"},
		} {
			pump := fmt.Sprintf("pump%d", i)
			g.hub(pump, c.kind)
			for _, limit := range []int64{5, 20} {
				r := g.call("retrieve_context", object{"query": fmt.Sprintf(c.query, pump), "limit": limit})
				first := field(r["entities"].([]any)[:2], "id")
				if !slices.Contains(first, any(pump)) || !slices.Contains(first, any("ana"+pump[4:])) {
					t.Errorf("%q of %s begins with %q", c.query, c.kind, first)
				}
				if fact := "ana" + pump[4:] + " " + c.kind + " " + pump; !strings.Contains(r["context_summary"].(string), fact) {
					t.Errorf("the context of %q does not have %q: %s", c.query, fact, r["context_summary"])
				}
			}
		}
	})
}

func TestAQuestionNamesRelationsInAChain(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.hub("pump1", "maintains")
		g.link("pump1-feeds-hall9", "bob-maintains-p7", "aaa-paints-hall9", "aab-paints-hall9", "aac-paints-hall9")
		r := g.call("retrieve_context", object{"query": "Who maintains what feeds hall9?", "limit": int64(3)})
		same(t, "relations", short(r["relations"]), "ana1-maintains-pump1 pump1-feeds-hall9")
	})
}

func TestAQuestionThatOnlyNamesARelation(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.link("x-maintains-y", "x-knows-z", "u-knows-v")
		g.call("store_relation", object{"from_entity": "old", "relation_type": "maintains", "to_entity": "y", "valid_from": "2019-01-01", "valid_to": "2020-01-01", "create_missing": true})
		get := func(p object) object { return g.call("retrieve_context", p) }
		same(t, "entities", ids(get(object{"query": "maintained", "hops": int64(0)})["entities"]), "x y")
		same(t, "relations", short(get(object{"query": "maintained", "hops": int64(0)})["relations"]), "x-maintains-y")
		same(t, "in the past", ids(get(object{"query": "maintained", "hops": int64(0), "as_of": "2019-06-01"})["entities"]), "old x y")
		same(t, "without this type", ids(get(object{"query": "maintained", "relation_types": []any{"knows"}})["entities"]), "")
		r := get(object{"query": "paints"})
		same(t, "a type that does not exist", ids(r["entities"]), "")
		same(t, "says so", r["notes"], []any{"no entity that was searched has a word of the query"})
	})
}
