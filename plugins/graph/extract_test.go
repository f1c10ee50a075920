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

// answers has the model return entities, by name and type, and relations written as
// "a-knows-b".
func (g *opened) answers(entities []any, relations ...string) {
	all := []any{}
	for _, r := range relations {
		ends := strings.Split(r, "-")
		all = append(all, object{"from": ends[0], "type": ends[1], "to": ends[2]})
	}
	g.host = &teatest.Host{Actions: map[string]func(context.Context, any) (any, error){modelAction: func(context.Context, any) (any, error) {
		return object{"data": object{"entities": entities, "relations": all}}, nil
	}}}
}

// named is an entity of an answer, with properties as names and values.
func named(name, kind, description string, properties ...any) object {
	list := []any{}
	for i := 0; i < len(properties); i += 2 {
		list = append(list, object{"name": properties[i], "value": properties[i+1]})
	}
	return object{"name": name, "type": kind, "description": description, "properties": list}
}

func TestAccentsDistinguishEntities(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		for _, name := range []string{"Avó", "Avô", "Müller", "Muller", "Conceição"} {
			g.call("store_entity", object{"entity_id": "e:" + name, "entity_type": "pessoa", "properties": object{"name": name}})
		}
		g.answers([]any{
			named("avô", "pessoa", ""), named("avó", "pessoa", ""), named("Müller", "pessoa", ""), named("e:Avô", "pessoa", ""),
			named("CONCEIC\u0327A\u0303O", "pessoa", ""), named("Conceicao", "pessoa", ""), named("pé", "parte", ""), named("pê", "letra", ""), named("Pe", "rio", ""),
		}, "avô-casado_com-avó", "Muller-conhece-avó", "pê-segue-Pe")
		r := g.call("extract", object{"text": "x"})
		same(t, "ids", field(r["entities"], "entity_id"), []any{"e:Avô", "e:Avó", "e:Müller", "e:Conceição", "Conceicao", "pé", "pê", "Pe"})
		same(t, "relations", short(r["relations"]), "e:Avô-casado_com-e:Avó e:Müller-conhece-e:Avó pê-segue-Pe")
		same(t, "notes", r["notes"], []any{`"Conceicao" is a new entity; "e:Conceição" has a similar name`})
	})
}

func TestNamesThatSeveralEntitiesHave(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		for id, name := range map[string]string{"d1": "Dup", "d2": "Dup", "d3": "DUP"} {
			g.call("store_entity", object{"entity_id": id, "entity_type": "t" + id, "properties": object{"name": name}})
		}
		g.answers([]any{named("Dup", "other", "")})
		r := g.call("extract", object{"text": "x"})
		same(t, "the first", field(r["entities"], "entity_id"), []any{"d1"})
		same(t, "a note", r["notes"], []any{`2 entities have the name "Dup"; "d1" was used, not "d2"`})
		g.answers([]any{named("Dup", "td2", "")})
		r = g.call("extract", object{"text": "x"})
		same(t, "the one of the type", field(r["entities"], "entity_id"), []any{"d2"})
		same(t, "no note", r["notes"], []any{})
	})
}

func TestAnExtractionDoesNotChangeNames(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.call("store_entity", object{"entity_id": "p:1", "entity_type": "pessoa", "properties": object{"name": "Ana Conceição"}})
		g.answers([]any{
			named("Ana Conceição", "Cliente", "Uma cliente.", "name", "Hack", "aliases", "Outra", "", "x", "cidade", "Porto", "cidade", "Faro"),
			named("Eva", "pessoa", "", "name", "Other"), named(strings.Repeat("n", 3000), "x", ""),
		})
		r := g.call("extract", object{"text": "x"})
		first := r["entities"].([]any)[0].(object)
		e := g.call("get_entity", object{"entity_id": "p:1"})["entity"].(object)
		same(t, "stored", []any{e["type"], e["text"], e["properties"]}, []any{"pessoa", "Uma cliente.", object{"name": "Ana Conceição", "cidade": "Porto"}})
		same(t, "result", []any{first["type"], first["description"], first["properties"]}, []any{"pessoa", "Uma cliente.", object{"cidade": "Porto"}})
		same(t, "a new one", g.properties("Eva"), object{"name": "Eva"})
		same(t, "notes", r["notes"], []any{
			`the property "name" of "Ana Conceição" was left out: a text does not change names`,
			`the property "aliases" of "Ana Conceição" was left out: a text does not change names`,
			`a property of "Ana Conceição" without a name was left out`,
			`the property "cidade" of "Ana Conceição" appears twice; the first value was used`,
			`the property "name" of "Eva" was left out: a text does not change names`,
			`an entity with the name "` + strings.Repeat("n", 80) + `... [cut off: 80 of 3000 bytes shown]" was left out`,
		})
		// The next text does not replace the text, and the result says so.
		g.answers([]any{named("ana conceição", "Cliente", "Outra descrição.")})
		first = g.call("extract", object{"text": "y"})["entities"].([]any)[0].(object)
		same(t, "again", []any{first["entity_id"], first["description"]}, []any{"p:1", "Uma cliente."})
	})
}

func TestARelationToAStoredEntityThatTheModelDidNotRepeat(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.call("store_entities", object{"entities": []any{
			object{"entity_id": "p1", "entity_type": "person", "properties": object{"name": "Ana"}, "source": "staff"},
			object{"entity_id": "s1", "properties": object{"title": "STRASSE 7"}},
			object{"entity_id": "d1", "properties": object{"name": "Dup"}},
			object{"entity_id": "d2", "properties": object{"name": "Dup"}},
		}})
		g.answers([]any{named("Rio", "company", ""), named("New Co", "company", "")},
			"Ana-works_at-Rio", "Rio-employs-p1", "ana-knows-Nobody", "Rio-in-Straße 7", "Dup-in-Rio", "Dup-near-Rio", "New Co-is-new co", "Rio-owns-Rio", "New Co--p1")
		r := g.call("extract", object{"text": "x", "source": "mail"})
		same(t, "entities", field(r["entities"], "entity_id"), []any{"Rio", "New Co"})
		same(t, "relations", short(r["relations"]), "p1-works_at-Rio Rio-employs-p1 Rio-in-s1 d1-in-Rio d1-near-Rio Rio-owns-Rio")
		same(t, "notes", r["notes"], []any{
			`a relation "ana" -knows-> "Nobody" was left out: an end is neither among the entities of the text nor stored`,
			`2 entities have the name "Dup"; "d1" was used, not "d2"`,
			`a relation "New Co" -is-> "new co" was left out: both names mean "New Co"`,
			`a relation "New Co" --> "p1" was left out: its type is empty or not valid`,
		})
		same(t, "stored", short(g.call("get_relations", object{"entity_id": "p1"})["relations"]), "Rio-employs-p1 p1-works_at-Rio")
		same(t, "a stored entity does not change", g.call("get_entity", object{"entity_id": "p1"})["entity"].(object)["source"], "staff")
	})
}

func TestAnAnswerWithCharactersThatNamesCannotHave(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.answers([]any{named("Ana\u200b", "per\nson", "", "ro\u200ble", "engineer"), named("Acme", "company", "")}, "Ana-works\u200b_at-Acme")
		r := g.call("extract", object{"text": "Ana works at Acme."})
		same(t, "notes", r["notes"], []any{})
		e := g.call("get_entity", object{"entity_id": "Ana"})["entity"].(object)
		same(t, "entity", []any{e["type"], e["properties"]}, []any{"per son", object{"name": "Ana", "role": "engineer"}})
		same(t, "relations", short(r["relations"]), "Ana-works_at-Acme")
	})
}
