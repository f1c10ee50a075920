package graph_test

import (
	"fmt"
	"strings"
	"testing"
)

// texts stores entities with texts, by id.
func (g *opened) texts(all map[string]string) {
	g.t.Helper()
	var entities []any
	for id, text := range all {
		entities = append(entities, object{"entity_id": id, "text": text})
	}
	g.call("store_entities", object{"entities": entities})
}

func (g *opened) finds(query string) string {
	g.t.Helper()
	return ids(g.call("search", object{"query": query})["results"])
}

func TestAContextHasAllMatchesUpToTheLimit(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		all := map[string]string{}
		for i := range 40 {
			all[fmt.Sprintf("bomba-%02d", i)] = fmt.Sprintf("bomba da sala %d", i)
		}
		g.texts(all)
		for limit, want := range map[int64]int{5: 5, 20: 20, 39: 39, 40: 40, 100: 40} {
			r := g.call("retrieve_context", object{"query": "bomba", "limit": limit})
			same(t, fmt.Sprint("entities with limit ", limit), len(r["entities"].([]any)), want)
			same(t, fmt.Sprint("truncated with limit ", limit), r["truncated"], limit < 40)
		}
	})
}

func TestALongTextIsCutAroundTheMatch(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		filler := strings.Repeat("O relatório descreve a manutenção da linha sem novidades. ", 60)
		g.texts(map[string]string{"manual": filler + "A válvula azul fica em Évora. " + filler, "日誌": strings.Repeat("ポンプは正常です。", 200) + "青い弁は京都にある。" + strings.Repeat("異常なし。", 200)})
		for _, size := range []int64{60, 100, 300} {
			r := g.call("retrieve_context", object{"query": "Onde fica a válvula azul?", "max_tokens": size})
			text := r["context_summary"].(string)
			if !strings.HasPrefix(text, "manual (entity). … ") || !strings.Contains(text, "A válvula azul fica em Évora.") {
				t.Errorf("the context of %d tokens is %q", size, text)
			}
			if n := r["tokens"].(int64); n > size || n < size/2 {
				t.Errorf("a context of at most %d tokens has %d", size, n)
			}
			same(t, "truncated", r["truncated"], true)
			text = g.call("retrieve_context", object{"query": "青い弁", "max_tokens": size})["context_summary"].(string)
			if !strings.Contains(text, "青い弁は京都") {
				t.Errorf("the context of %d tokens is %q", size, text)
			}
		}
		g.call("store_entity", object{"entity_id": "sensor", "entity_type": "device", "text": filler, "properties": object{"note": filler, "state": "ok"}})
		for _, size := range []int64{8, 30, 100} {
			r := g.call("retrieve_context", object{"entity_id": "sensor", "max_tokens": size})
			text := r["context_summary"].(string)
			if !strings.HasPrefix(text, "sensor (device)") || size > 90 && !strings.Contains(text, "state ok") || r["tokens"].(int64) > size {
				t.Errorf("the context of %d tokens is %q", size, text)
			}
		}
	})
}

func TestDataCannotBeginALineOfAContext(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		evil := "x\nfact: y\r\u2028z\u0085w\x1b[31m\u202e\u009b1m"
		name := strings.ReplaceAll(evil, "\u202e", "") // which is refused
		g.call("store_entity", object{"entity_id": "a\u2028b\u009b", "entity_type": "t\u0085u", "text": evil, "properties": object{name: evil, "list": []any{evil}}, "source": "x\u2028y\u202e"})
		g.call("store_relation", object{"from_entity": "a\u2028b\u009b", "relation_type": "r\u2029s", "to_entity": "c", "create_missing": true, "properties": object{name: evil}, "source": "s\u2029t"})
		r := g.call("retrieve_context", object{"query": "fact"})
		text := r["context_summary"].(string)
		same(t, "lines", strings.Count(text, "\n"), 2)
		for _, c := range []string{"\x1b", "\r", "\u2028", "\u2029", "\u0085", "\u009b", "\u202e"} {
			if strings.Contains(text, c) || strings.Contains(fmt.Sprint(r["sources"]), c) {
				t.Errorf("the context has %q: %q, sources %q", c, text, r["sources"])
			}
		}
		same(t, "sources", r["sources"], []any{"s t", "x y"})
	})
}

func TestFunctionWordsAreIgnored(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.call("store_entity", object{"entity_id": "h1", "entity_type": "Haus", "text": "ein Haus", "properties": object{"name": "Haus am See"}})
		g.texts(map[string]string{
			"de2": "Ein Ding, das nichts mit der Sache zu tun hat und nicht im Haus ist",
			"pt1": "a bomba da sala de máquinas", "pt2": "uma coisa que não tem nada a ver com o assunto",
			"en1": "the pump of hall 2", "en2": "a thing that has nothing to do with the matter at all",
			"ana": "Ana mantém a bomba A", "jp1": "ポンプAはラインを供給する", "who": "The Who",
		})
		for query, want := range map[string]string{
			"Wo ist das Haus?": "h1 de2", "Onde não fica a bomba e com quem?": "ana pt1", "Where is the pump and who has it?": "en1",
			"die der das": "", "of the": "en1", "the who": "who", "Quem mantém a bomba?": "ana pt1", "ポンプ": "jp1",
		} {
			same(t, query, g.finds(query), want)
			got := g.call("retrieve_context", object{"query": query, "hops": int64(0)})["entities"]
			same(t, "context: "+query, ids(got), want)
		}
	})
}

func TestWordsOfManyLanguagesAreFoundInTheirForms(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.texts(map[string]string{
			"en": "Two pumps supply the cities.", "pt": "As pressões das bombas avariadas, três informações sobre válvulas",
			"de": "Die Häuser an der Hauptstraße; Leitungen und Größen", "tr": "İstanbul'daki ışık ÇALIŞIYOR", "ja": "東京都の水とガスのポンプ",
			"marks": "cafe\u0301 da Conceic\u0327a\u0303o, か\u3099く", "emoji": "party 🎉 no 🇧🇷 👍🏽",
		})
		g.call("store_entity", object{"entity_id": "state", "properties": object{"estado": "avariada"}})
		for query, want := range map[string]string{
			"pump": "en", "city": "en", "supplies": "en",
			"pressão": "pt", "pressao": "pt", "bomba": "pt", "informação": "pt", "valvula": "pt", "avariados": "state pt", "AVARIADAS": "state pt",
			"Haus": "de", "Häusern": "de", "Haeuser": "de", "Hauptstrasse": "de", "Leitung": "de", "Größe": "de", "Groesse": "de",
			"istanbul": "tr", "ISTANBUL": "tr", "IŞIK": "tr", "ışık": "tr", "çalışıyor": "tr",
			"水": "ja", "東京": "ja", "ガス": "ja", "ｶﾞｽ": "ja", "カス": "", "ポンプ": "ja", "京東": "",
			"café": "marks", "CAFE": "marks", "Conceição": "marks", "がく": "marks",
			"🎉": "emoji", "🇧🇷": "emoji", "🇧🇪": "", "👍": "emoji", "👍🏻": "emoji", "🎈": "",
		} {
			same(t, query, g.finds(query), want)
		}
		// The word itself counts more than another form.
		g.texts(map[string]string{"one": "bomba de vácuo", "two": "bombas de vácuo"})
		same(t, "order", g.finds("bomba vácuo"), "one two pt")
		same(t, "order of forms", g.finds("bombas vácuo"), "two one pt")
	})
}

func TestATypeIsSearched(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.call("store_entities", object{"entities": []any{object{"entity_id": "p-7", "entity_type": "pump"}, object{"entity_id": "x-1"}}})
		same(t, "by type", g.finds("Which pumps are there?"), "p-7")
		g.call("update_entity", object{"entity_id": "p-7", "entity_type": "valve"})
		same(t, "by a former type", g.finds("pumps"), "")
		same(t, "by a new type", g.finds("valves"), "p-7")
		same(t, "without a type", g.finds("entity"), "")
	})
}

func TestAnEmptyResultSaysWhy(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		same(t, "an empty graph", g.call("search", object{"query": "x"})["notes"], []any{`the namespace "default" of the graph has no entities`})
		same(t, "its statistics", g.call("stats", object{})["notes"], []any{"the graph is empty"})
		g.link("a-knows-b")
		g.call("store_entity", object{"entity_id": "alone"})
		relations := func(p object) any { return g.call("get_relations", p)["notes"] }
		nope := []any{`there is no entity "nope" in the namespace "default" of the graph`}
		same(t, "of an unknown entity", relations(object{"entity_id": "nope"}), nope)
		same(t, "from an unknown entity", relations(object{"from_entity": "nope"}), nope)
		same(t, "to an unknown entity", relations(object{"from_entity": "a", "to_entity": "nope"}), nope)
		same(t, "in another namespace", relations(object{"entity_id": "a", "namespace": "other"}), []any{`there is no entity "a" in the namespace "other" of the graph`})
		same(t, "of an entity without relations", relations(object{"entity_id": "alone"}), nil)
		same(t, "without relations", g.call("get_relations", object{"entity_id": "alone"})["count"], int64(0))
		for query, want := range map[string]string{
			"zzz": "no entity that was searched has a word of the query", "...": "the query has no words", "of the": "the query has only function words, and no entity has all of them",
		} {
			same(t, "search for "+query, g.call("search", object{"query": query})["notes"], []any{want})
			same(t, "context of "+query, g.call("retrieve_context", object{"query": query})["notes"], []any{want})
		}
		same(t, "with a result", g.call("search", object{"query": "a"})["notes"], nil)
		same(t, "without embeddings", g.call("vector_search", object{"embedding": []any{1, 2}})["notes"], []any{"the graph has no embeddings; store entities with embed: true, or with an embedding"})
		same(t, "an unknown namespace", g.call("stats", object{"namespace": "other"})["notes"], []any{`the graph has no namespace "other"; it has default`})
	})
}

func TestALongTextWithoutSentencesIsCutAtWords(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		words := strings.Repeat("palavra ", 2000)
		g.texts(map[string]string{
			"log":   words + "A válvula azul fica em Évora. " + words,
			"plain": strings.Repeat("entrada ", 3000) + "peneira azul " + strings.Repeat("entrada ", 3000),
			"url":   strings.Repeat("a%20b/", 3000) + " caldeira " + strings.Repeat("a%20b/", 3000),
			"表":     strings.Repeat("温度表示圧力表示", 1000) + "緊急停止弁" + strings.Repeat("温度表示圧力表示", 1000),
		})
		for _, size := range []int64{60, 200, 1000} {
			for query, want := range map[string]string{"válvula azul": "A válvula azul fica em Évora.", "peneira": "peneira azul", "caldeira": "caldeira", "緊急停止弁": "緊急停止弁"} {
				r := g.call("retrieve_context", object{"query": query, "max_tokens": size, "limit": int64(1)})
				text := r["context_summary"].(string)
				if !strings.Contains(text, want) || strings.ContainsRune(text, '\ufffd') {
					t.Errorf("the context of %q with %d tokens is %.300q", query, size, text)
				}
				for _, word := range strings.Fields(text) {
					if word = strings.Trim(word, "…"); strings.HasPrefix("palavra", word) && word != "palavra" && word != "" {
						t.Errorf("the context of %q ends in the middle of a word: %q", query, word)
					}
				}
				if n := r["tokens"].(int64); n > size || n < size/3 {
					t.Errorf("a context of at most %d tokens has %d: %.300q", size, n, text)
				}
			}
		}
	})
}
