package graph_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

func TestWordsFindEntities(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.call("store_entities", object{"entities": []any{
			object{"entity_id": "v1", "entity_type": "valve", "text": "Relief valve of the north line. The valve opens at 5 bar."},
			object{"entity_id": "v2", "entity_type": "valve", "text": "Check valve."},
			object{"entity_id": "p1", "entity_type": "pump", "properties": object{"place": "São Paulo, north", "tags": []any{"old", object{"deep": "Straße"}}}},
			object{"entity_id": "p2", "entity_type": "pump", "text": "東京の水"},
		}})
		found := func(query string, more object) string {
			p := object{"query": query}
			for k, v := range more {
				p[k] = v
			}
			return ids(g.call("search", p)["results"])
		}
		for query, want := range map[string]string{
			"valve": "v2 v1", "relief valve": "v1 v2", "check valve": "v2 v1", "NORTH": "p1 v1", "sao": "p1", "strasse": "p1", "東京": "p2", "v2": "v2", "missing": "",
			`"valve" OR NOT (`: "v2 v1", "": "",
		} {
			same(t, query, found(query, nil), want)
		}
		same(t, "of a type", found("north", object{"entity_types": []any{"pump"}}), "p1")
		same(t, "with a filter", found("valve north", object{"filter": object{"place": object{"contains": "Paulo"}}}), "p1")
		same(t, "with a limit", len(g.call("search", object{"query": "valve", "limit": 1})["results"].([]any)), 1)
		g.call("update_entity", object{"entity_id": "v2", "text": "Something else."})
		same(t, "after a change", found("check", nil), "")
		same(t, "in another namespace", found("valve", object{"namespace": "other"}), "")
	})
}

// embedder answers embedding.create: a dimension for each of some words.
func embedder(_ context.Context, params any) (any, error) {
	var all []any
	for _, text := range params.(object)["input"].([]any) {
		vector := []any{0.1, 0.1, 0.1}
		for i, word := range []string{"water", "power", "people"} {
			if strings.Contains(text.(string), word) {
				vector[i] = 1.0
			}
		}
		all = append(all, vector)
	}
	return object{"embeddings": all}, nil
}

// withEmbedder is a host that has embedding.create.
func withEmbedder() *teatest.Host {
	return &teatest.Host{Actions: map[string]func(context.Context, any) (any, error){"embedding.create": embedder}}
}

func TestEmbeddingsFindEntities(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.host = withEmbedder()
		for id, text := range map[string]string{"a": "water and power", "b": "people", "c": "water"} {
			r := g.call("store_entity", object{"entity_id": id, "text": text, "embed": true, "entity_type": "t" + id})
			same(t, "has_embedding", r["has_embedding"], true)
		}
		r := g.call("vector_search", object{"query": "water"})
		same(t, "by text", ids(r["results"]), "c a b")
		same(t, "score", r["results"].([]any)[0].(object)["score"], 1.0)
		same(t, "by vector", ids(g.call("vector_search", object{"embedding": []any{0, 0, 1}, "limit": 1})["results"]), "b")
		same(t, "of a type", ids(g.call("vector_search", object{"query": "water", "entity_types": []any{"ta", "tb"}})["results"]), "a b")
		same(t, "with a lowest score", ids(g.call("vector_search", object{"query": "people", "min_score": 0.9})["results"]), "b")
		g.fails("vector_search", object{"embedding": []any{1, 2}}, tea.ValidationError, "has 2 dimensions, and the embeddings of this graph have 3")
		g.fails("store_entity", object{"entity_id": "d", "embedding": []any{1, 2}}, tea.ValidationError, "has 2 dimensions")
		g.fails("store_entity", object{"entity_id": "d", "embedding": []any{0, 1e-300, 0}}, tea.ValidationError, "all zeros, which are similar to nothing")
		g.fails("vector_search", object{"embedding": []any{0, 0, 0}}, tea.ValidationError, "all zeros")
		g.call("update_entity", object{"entity_id": "c", "text": "new text"})
		same(t, "the embedding of an old text is gone", g.call("get_entity", object{"entity_id": "c"})["entity"].(object)["has_embedding"], false)
		g.host = &teatest.Host{}
		g.fails("vector_search", object{"query": "water"}, tea.DependencyMissing, "install the llm plugin")
	})
}

func TestAContextForAQuestion(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.call("store_entities", object{"entities": []any{
			object{"entity_id": "ana", "entity_type": "person", "properties": object{"role": "engineer"}, "text": "Ana maintains pumps.", "source": "staff.md"},
			object{"entity_id": "p1", "entity_type": "pump", "properties": object{"power_kw": int64(3)}},
			object{"entity_id": "hall", "entity_type": "place"},
			object{"entity_id": "far", "entity_type": "place"},
			object{"entity_id": "other", "entity_type": "place"},
		}})
		g.call("store_relations", object{"relations": []any{
			object{"from_entity": "ana", "relation_type": "maintains", "to_entity": "p1", "valid_from": "2024-01-01", "source": "plan.md"},
			object{"from_entity": "p1", "relation_type": "stands_in", "to_entity": "hall"},
			object{"from_entity": "hall", "relation_type": "next_to", "to_entity": "far"},
		}})
		r := g.call("retrieve_context", object{"query": "Who is Ana?"})
		same(t, "entities", ids(r["entities"]), "ana p1 hall")
		same(t, "relations", short(r["relations"]), "ana-maintains-p1 p1-stands_in-hall")
		same(t, "summary", r["context_summary"], strings.Join([]string{
			"ana (person): role engineer. Ana maintains pumps.",
			"p1 (pump): power_kw 3",
			"ana maintains p1 (since 2024-01-01T00:00:00Z)",
			"hall (place)",
			"p1 stands_in hall",
		}, "\n"))
		same(t, "sources", r["sources"], []any{"plan.md", "staff.md"})
		same(t, "truncated", r["truncated"], false)
		same(t, "from an entity", ids(g.call("retrieve_context", object{"entity_id": "far", "hops": 1})["entities"]), "far hall")
		same(t, "in the past", short(g.call("retrieve_context", object{"query": "ana", "as_of": "2020-01-01"})["relations"]), "")
		r = g.call("retrieve_context", object{"query": "ana", "max_tokens": 16})
		same(t, "summary that is bounded", r["context_summary"], "ana (person): role engineer. Ana maintains pumps.")
		same(t, "and says so", r["truncated"], true)
		if n := r["tokens"].(int64); n > 16 {
			t.Errorf("%d tokens are more than max_tokens", n)
		}
		r = g.call("retrieve_context", object{"query": "nothing known"})
		same(t, "of nothing", fmt.Sprint(r["entities"], r["context_summary"]), "[]")

		g.call("update_entity", object{"entity_id": "other", "embedding": []any{1, 0, 0}})
		r = g.call("retrieve_context", object{"query": "ana"})
		same(t, "notes without a model", len(r["notes"].([]any)), 1)
		g.host = withEmbedder()
		r = g.call("retrieve_context", object{"query": "ana and water"})
		same(t, "by words and similarity", ids(r["entities"]), "ana other p1 hall")
	})
}

func TestAnEntityComesBeforeThoseThatMentionIt(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.texts(map[string]string{"a1": "flow of pump7", "a2": "flow of pump7", "pump7": "in the hall"})
		same(t, "by its id", g.finds("pump7"), "pump7 a1 a2")
		g.call("store_entity", object{"entity_id": "x1", "properties": object{"aliases": []any{"Boiler"}}, "text": "in the hall"})
		g.texts(map[string]string{"a3": "flow of boiler"})
		same(t, "by a name", g.finds("boiler"), "x1 a3")
	})
}

func TestNumbersAreFound(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.call("store_entity", object{"entity_id": "a", "properties": object{"potência": 7.5, "list": []any{int64(4711), true}, "big": int64(9007199254740993)}})
		g.call("store_entity", object{"entity_id": "b", "properties": object{"potência": 8.25}})
		for query, want := range map[string]string{"7.5": "a", "8.25 kW": "b", "4711": "a", "9007199254740993": "a", "471": ""} {
			same(t, query, g.finds(query), want)
		}
		g.call("update_entity", object{"entity_id": "a", "properties": object{"potência": 9.125}})
		same(t, "a former number", g.finds("7.5"), "")
		same(t, "at its time", ids(g.call("search", object{"query": "7.5", "as_of": "2020-01-01"})["results"]), "a")
	})
}

func TestKoreanIsFoundWithItsParticles(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.texts(map[string]string{"ko": "서울은 대한민국의 수도이다", "water": "물은 펌프에서 온다", "nfd": "\u1107\u116e\u1109\u1161\u11ab\u110b\u1173\u11ab \u1112\u1161\u11bc\u1100\u116e"})
		for query, want := range map[string]string{"서울": "ko", "수도": "ko", "대한민국": "ko", "물": "water", "펌프": "water", "부산": "nfd", "항구": "nfd", "도쿄": ""} {
			same(t, query, g.finds(query), want)
		}
	})
}
