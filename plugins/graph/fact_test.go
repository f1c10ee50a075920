package graph_test

import (
	"fmt"
	"strings"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

// person stores ana in Lisboa (2015, cv), Berlim (2020, mail) and Porto (2018, a
// late fact).
func (g *opened) person() {
	g.t.Helper()
	g.call("store_entity", object{"entity_id": "ana", "entity_type": "pessoa", "properties": object{"cidade": "Lisboa", "idade": int64(40)}, "valid_from": "2015-01-01", "source": "cv"})
	g.call("store_entity", object{"entity_id": "ana", "merge": true, "properties": object{"cidade": "Berlim"}, "valid_from": "2020-01-01", "source": "mail"})
	g.call("store_entity", object{"entity_id": "ana", "merge": true, "properties": object{"cidade": "Porto"}, "valid_from": "2018-01-01", "source": "late"})
}

// properties returns the properties of an entity, at a time if one is passed.
func (g *opened) properties(id string, at ...string) any {
	g.t.Helper()
	p := object{"entity_id": id}
	if len(at) > 0 {
		p["as_of"] = at[0]
	}
	return g.call("get_entity", p)["entity"].(object)["properties"]
}

func TestAContextNamesTheSourceOfEachFact(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.person()
		for when, want := range map[string][]any{"": {"cv", "mail"}, "2016-06-01": {"cv"}, "2019-06-01": {"cv", "late"}} {
			r := g.call("retrieve_context", object{"entity_id": "ana", "as_of": when})
			same(t, "sources at "+when, r["sources"], want)
		}
		same(t, "source of the entity", g.call("get_entity", object{"entity_id": "ana"})["entity"].(object)["source"], "mail")
		same(t, "a value that the late fact is not about", g.properties("ana", "2016-06-01"), object{"cidade": "Lisboa", "idade": int64(40)})

		g.call("store_entity", object{"entity_id": "eva", "text": "Eva fala inglês.", "source": "bio"})
		g.call("update_entity", object{"entity_id": "eva", "properties": object{"cidade": "Faro"}, "source": "mail"})
		same(t, "of a text and a value", g.call("retrieve_context", object{"entity_id": "eva"})["sources"], []any{"bio", "mail"})
		g.call("update_entity", object{"entity_id": "eva", "text": "Eva fala alemão.", "properties": object{"cidade": "Beja"}})
		same(t, "without a source", g.call("retrieve_context", object{"entity_id": "eva"})["sources"], []any{})
	})
}

func TestAValueThatBeginsInTheFutureIsNotTrueNow(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.person()
		e := g.call("update_entity", object{"entity_id": "ana", "properties": object{"cidade": "Faro"}, "valid_from": "2130-01-01", "source": "plan"})["entity"].(object)
		now := object{"cidade": "Berlim", "idade": int64(40)}
		same(t, "update_entity", e["properties"], now)
		same(t, "get_entity", g.properties("ana"), now)
		same(t, "then", g.properties("ana", "2131-01-01"), object{"cidade": "Faro", "idade": int64(40)})
		r := g.call("retrieve_context", object{"query": "ana"})
		same(t, "retrieve_context", r["context_summary"], "ana (pessoa): cidade Berlim, idade 40")
		same(t, "its sources", r["sources"], []any{"cv", "mail"})
		for query, want := range map[string]string{"Faro": "", "Berlim": "ana", "Lisboa": ""} {
			same(t, "search for "+query, ids(g.call("search", object{"query": query})["results"]), want)
			same(t, "context of "+query, ids(g.call("retrieve_context", object{"query": query})["entities"]), want)
		}
		pattern := func(city, at string) any {
			return g.call("query", object{"pattern": object{"from": object{"properties": object{"cidade": city}}}, "as_of": at})["count"]
		}
		same(t, "pattern now", []any{pattern("Berlim", ""), pattern("Faro", "")}, []any{int64(1), int64(0)})
		same(t, "pattern then", []any{pattern("Berlim", "2131-01-01"), pattern("Faro", "2131-01-01")}, []any{int64(0), int64(1)})

		// Replacing the entity ends what it does not have, plans included.
		g.call("store_entity", object{"entity_id": "ana", "properties": object{"x": int64(1)}})
		same(t, "replaced", g.properties("ana"), object{"x": int64(1)})
		same(t, "replaced for good", g.properties("ana", "2131-01-01"), object{"x": int64(1)})
		// The beginning of x is not known.
		same(t, "before", g.properties("ana", "2021-01-01"), object{"cidade": "Berlim", "idade": int64(40), "x": int64(1)})

		// A value now, though another one is planned.
		g.call("update_entity", object{"entity_id": "ana", "properties": object{"x": int64(3)}, "valid_from": "2130-01-01"})
		g.call("update_entity", object{"entity_id": "ana", "properties": object{"x": int64(2)}})
		same(t, "changed", []any{g.properties("ana"), g.properties("ana", "2131-01-01")}, []any{object{"x": int64(2)}, object{"x": int64(3)}})
		g.call("update_entity", object{"entity_id": "ana", "properties": object{"x": int64(3)}})
		same(t, "earlier than planned", g.properties("ana"), object{"x": int64(3)})
		// The entity is replaced in the future.
		g.call("store_entity", object{"entity_id": "ana", "properties": object{"y": int64(1)}, "valid_from": "2140-01-01"})
		same(t, "until then", g.properties("ana"), object{"x": int64(3)})
		same(t, "from then", g.properties("ana", "2141-01-01"), object{"y": int64(1)})
	})
}

func TestAllReadingActionsHaveThePropertiesOfTheTime(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.person()
		g.call("store_relation", object{"from_entity": "ana", "relation_type": "conhece", "to_entity": "rui", "create_missing": true})
		then := object{"as_of": "2016-06-01"}
		with := func(more object) object {
			p := object{}
			for _, members := range []object{then, more} {
				for name, v := range members {
					p[name] = v
				}
			}
			return p
		}
		city := func(e any) any { return e.(object)["properties"].(object)["cidade"] }
		first := func(list any) any { return list.([]any)[0] }
		for what, got := range map[string]any{
			"neighbors":          city(first(g.call("neighbors", with(object{"entity_id": "rui"}))["neighbors"])),
			"neighbors, filter":  city(first(g.call("neighbors", with(object{"entity_id": "rui", "filter": object{"cidade": "Lisboa"}}))["neighbors"])),
			"subgraph":           city(first(g.call("subgraph", with(object{"entity_id": "ana"}))["entities"])),
			"shortest_path":      city(first(g.call("shortest_path", with(object{"from_entity": "ana", "to_entity": "rui"}))["entities"])),
			"search":             city(first(g.call("search", with(object{"query": "Lisboa"}))["results"])),
			"retrieve_context":   city(first(g.call("retrieve_context", with(object{"query": "Lisboa"}))["entities"])),
			"pattern, entities":  city(first(g.call("query", with(object{"pattern": object{"from": object{"properties": object{"cidade": "Lisboa"}}}}))["results"]).(object)["from"]),
			"pattern, relations": city(first(g.call("query", with(object{"pattern": object{"from": object{"properties": object{"cidade": "Lisboa"}}, "relation": "conhece", "to": "rui"}}))["results"]).(object)["from"]),
		} {
			same(t, what, got, "Lisboa")
		}
	})
}

func TestALateFactKeepsTheTimesOfOthers(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		set := func(properties object, from string) {
			g.t.Helper()
			g.call("store_entity", object{"entity_id": "a", "merge": true, "properties": properties, "valid_from": from})
		}
		set(object{"x": int64(1), "y": int64(9)}, "2020-01-01")
		set(object{"x": int64(2)}, "2022-01-01")
		set(object{"x": int64(2)}, "2021-01-01") // it was true a year earlier
		r := g.call("get_entity", object{"entity_id": "a", "history": true})
		same(t, "values", field(r["facts"], "value"), []any{int64(1), int64(2), int64(9)})
		same(t, "beginnings", field(r["facts"], "valid_from"), []any{"2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z", "2020-01-01T00:00:00Z"})
		same(t, "ends", field(r["facts"], "valid_to"), []any{"2021-01-01T00:00:00Z", "", ""})
		// Removed, and set again: the gap remains.
		set(object{"x": nil}, "2023-01-01")
		g.call("update_entity", object{"entity_id": "a", "properties": object{"x": int64(5)}})
		same(t, "in the gap", g.properties("a", "2023-06-01"), object{"y": int64(9)})
		same(t, "before it", g.properties("a", "2022-06-01"), object{"x": int64(2), "y": int64(9)})
		same(t, "now", g.properties("a"), object{"x": int64(5), "y": int64(9)})
	})
}

func TestARelationOfAnotherSourceIsKept(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		store := func(from, source string) object {
			return g.call("store_relation", object{"from_entity": "u", "relation_type": "r", "to_entity": "v", "valid_from": from, "source": source, "create_missing": true})
		}
		store("2020-01-01", "A")
		r := store("2021-01-01", "B")
		same(t, "of another source", []any{r["created"], r["closed"], r["valid_from"]}, []any{true, int64(1), "2021-01-01T00:00:00Z"})
		r = store("2022-01-01", "B")
		same(t, "the same again", []any{r["created"], r["closed"], r["valid_from"]}, []any{false, int64(0), "2021-01-01T00:00:00Z"})
		sources := func(at string) any {
			return field(g.call("get_relations", object{"entity_id": "u", "as_of": at})["relations"], "source")
		}
		same(t, "sources", []any{sources("2020-06-01"), sources("")}, []any{[]any{"A"}, []any{"B"}})
	})
}

func TestAnOlderExportDoesNotRemoveNewerFacts(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.call("store_entity", object{"entity_id": "a", "properties": object{"v": int64(1)}})
		g.call("store_relations", object{"create_missing": true, "relations": []any{object{"from_entity": "x", "relation_type": "lives", "to_entity": "l"}}})
		old := g.call("export", object{})["data"]
		g.call("update_entity", object{"entity_id": "a", "properties": object{"v": int64(2), "w": int64(3)}})
		g.call("store_relation", object{"from_entity": "x", "relation_type": "lives", "to_entity": "m", "exclusive": true, "create_missing": true})
		now := g.call("export", object{})["data"]
		r := g.call("import", object{"data": old})
		same(t, "import", r, object{"success": true, "entities": int64(2), "relations": int64(0), "created_entities": int64(0), "newer": int64(2), "notes": []any{}})
		same(t, "all facts", g.call("export", object{})["data"], now)
		same(t, "values", g.properties("a"), object{"v": int64(2), "w": int64(3)})
		same(t, "relations now", short(g.call("get_relations", object{"entity_id": "x"})["relations"]), "x-lives-m")
	})
}

func TestARelationThatEndsWhenItBeginsIsRemoved(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.call("store_relation", object{"from_entity": "u", "relation_type": "r", "to_entity": "v", "valid_from": "2020-01-01", "create_missing": true})
		r := g.call("delete_relation", object{"from_entity": "u", "relation_type": "r", "to_entity": "v", "valid_to": "2020-01-01"})
		same(t, "deleted", []any{r["deleted"], r["closed"]}, []any{int64(1), int64(0)})
		same(t, "what is left", short(g.call("get_relations", object{"entity_id": "u", "history": true})["relations"]), "")
	})
}

func TestATextAndASourceBelongToTheirTime(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.call("store_entity", object{"entity_id": "s1", "entity_type": "sensor", "properties": object{"room": "A", "temp": int64(20)}, "text": "Sensor in the cellar.", "valid_from": "2024-01-01", "source": "m1"})
		g.call("store_entity", object{"entity_id": "s1", "merge": true, "properties": object{"room": "B"}, "text": "Sensor in the attic.", "valid_from": "2024-05-01", "source": "m4"})
		g.call("store_entity", object{"entity_id": "s1", "merge": true, "text": "Sensor in the hall.", "valid_from": "2024-03-01", "source": "late"})
		for _, c := range []struct{ when, text, source, summary string }{
			{"2020-01-01", "", "", "s1 (sensor)"},
			{"2024-01-15", "Sensor in the cellar.", "m1", "s1 (sensor): room A, temp 20. Sensor in the cellar."},
			{"2024-04-15", "Sensor in the hall.", "late", "s1 (sensor): room A, temp 20. Sensor in the hall."},
			{"2024-05-15", "Sensor in the attic.", "m4", "s1 (sensor): room B, temp 20. Sensor in the attic."},
			{"", "Sensor in the attic.", "m4", "s1 (sensor): room B, temp 20. Sensor in the attic."},
		} {
			e := g.call("get_entity", object{"entity_id": "s1", "as_of": c.when})["entity"].(object)
			text, _ := e["text"].(string)
			source, _ := e["source"].(string)
			same(t, "text and source at "+c.when, []string{text, source}, []string{c.text, c.source})
			r := g.call("retrieve_context", object{"entity_id": "s1", "as_of": c.when})
			same(t, "context at "+c.when, r["context_summary"], c.summary)
		}
		same(t, "sources", g.call("retrieve_context", object{"entity_id": "s1", "as_of": "2024-01-15"})["sources"], []any{"m1"})
		search := func(query, when string) string {
			return ids(g.call("search", object{"query": query, "as_of": when})["results"])
		}
		same(t, "search", []string{search("cellar", ""), search("cellar", "2024-02-01"), search("attic", "2024-02-01"), search("attic", "")}, []string{"", "s1", "", "s1"})
		r := g.call("get_entity", object{"entity_id": "s1", "history": true})
		same(t, "facts", field(r["facts"], "value"), []any{"Sensor in the cellar.", "Sensor in the hall.", "Sensor in the attic.", "A", "B", int64(20)})

		// Nothing of it is lost in an export.
		data := g.call("export", object{})["data"]
		g.call("import", object{"namespace": "copy", "data": data})
		same(t, "a copy", g.call("export", object{"namespace": "copy"})["data"], data)

		// The text ends with the entity's other values, and can be planned.
		g.call("store_entity", object{"entity_id": "s1", "properties": object{"only": int64(1)}})
		e := g.call("get_entity", object{"entity_id": "s1"})["entity"].(object)
		same(t, "replaced", []any{e["text"], e["source"]}, []any{nil, nil})
		g.call("update_entity", object{"entity_id": "s1", "text": "Sensor on the roof.", "valid_from": "2130-01-01"})
		same(t, "a planned text", []string{search("roof", ""), search("roof", "2131-01-01")}, []string{"", "s1"})
		g.fails("store_entity", object{"entity_id": "s2", "properties": object{"": "x"}}, tea.ValidationError, `entity "s2" has a property with an empty name`)
	})
}

func TestAContextOfAFormerValueHasItsSource(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.person()
		for when, want := range map[string]any{"2010-01-01": nil, "2016-01-01": "cv", "2019-01-01": "late", "2021-01-01": "mail"} {
			e := g.call("retrieve_context", object{"entity_id": "ana", "as_of": when})["entities"].([]any)[0].(object)
			same(t, "source at "+when, e["source"], want)
		}
	})
}

func TestFormerTextsAreBounded(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		texts := 0
		for i := range 5 {
			g.call("store_entity", object{"entity_id": "a", "text": strings.Repeat(fmt.Sprintf("text %d. ", i), 600), "valid_from": fmt.Sprintf("20%d-01-01", 10+i)})
		}
		r := g.call("get_entity", object{"entity_id": "a", "history": true})
		for _, f := range r["facts"].([]any) {
			texts += len(f.(object)["value"].(string))
		}
		same(t, "former texts dropped", r["dropped"], int64(1))
		same(t, "texts left", texts, 4*8*600)
	})
}

func TestAnEndThatIsMovedStaysBeforeTheNextBeginning(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		store := func(from, to string) object {
			return g.call("store_relation", object{"from_entity": "u", "relation_type": "r", "to_entity": "v", "valid_from": from, "valid_to": to, "create_missing": true})
		}
		store("2020-01-01", "2021-01-01")
		store("2022-01-01", "")
		same(t, "moved end", store("2020-01-01", "2023-01-01")["valid_to"], "2022-01-01T00:00:00Z")
		same(t, "in 2022", short(g.call("get_relations", object{"entity_id": "u", "as_of": "2022-06-01"})["relations"]), "u-r-v")
	})
}

func TestAFactThatWasCorrectedCanBecomeTrueAgain(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		lives := func(in string) object {
			return g.call("store_relation", object{"from_entity": "ana", "relation_type": "lives_in", "to_entity": in, "valid_from": "2020-01-01", "exclusive": true, "create_missing": true})
		}
		for _, in := range []string{"porto", "lisboa", "porto", "lisboa", "porto"} {
			r := lives(in)
			same(t, "times of "+in, []any{r["valid_from"], r["valid_to"]}, []any{"2020-01-01T00:00:00Z", ""})
			same(t, "now", short(g.call("get_relations", object{"entity_id": "ana"})["relations"]), "ana-lives_in-"+in)
		}
		same(t, "the same again", lives("porto")["created"], false)
	})
}
