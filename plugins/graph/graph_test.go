package graph_test

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/the-edge-agent/tea/plugins/graph"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(readFolder); dir != "" {
		_ = json.NewEncoder(os.Stdout).Encode(readAll(dir))
		return
	}
	goleak.VerifyTestMain(m)
}

type object = map[string]any

// backends are those that this build and machine have. In CI, Kuzu must be installed.
func backends(t testing.TB) []string {
	t.Helper()
	all := graph.Available()
	if os.Getenv("CI") == "true" && runtime.GOOS+"/"+runtime.GOARCH == "linux/amd64" && !slices.Contains(all, "cypher") {
		t.Fatal("Kuzu is missing; run scripts/kuzu install")
	}
	return all
}

// on runs a test on each backend.
func on(t *testing.T, test func(t *testing.T, g *opened)) {
	t.Helper()
	t.Parallel()
	for _, name := range backends(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := open(t, object{"backend": name, "path": t.TempDir()})
			g.needLibrary()
			test(t, g)
		})
	}
}

// needLibrary skips a test where the library of a backend is not installed.
func (g *opened) needLibrary() {
	g.t.Helper()
	_, err := g.try("stats", object{})
	if err == nil || tea.AsError(err).Type != tea.DependencyMissing {
		return
	}
	if os.Getenv("CI") == "true" {
		g.t.Fatal(err)
	}
	g.t.Skip(err)
}

// opened is an instance of the bundle.
type opened struct {
	t        testing.TB
	instance teatest.Instance
	settings object
	host     *teatest.Host
}

func open(t *testing.T, settings object) *opened {
	t.Helper()
	return openWith(t, object{"graph": settings})
}

func openWith(t testing.TB, settings object) *opened {
	t.Helper()
	bundle := graph.Bundle()
	raw := tea.Settings{}
	for key, v := range settings {
		raw[key] = encode(t, v)
	}
	instance, err := bundle.NewInstance(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	g := &opened{t: t, instance: instance, settings: settings, host: &teatest.Host{}}
	t.Cleanup(func() {
		if err := instance.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// try calls an action.
func (g *opened) try(action string, params object) (object, error) {
	g.t.Helper()
	return g.tryWith(g.t.Context(), action, params)
}

func (g *opened) tryWith(ctx context.Context, action string, params object) (object, error) {
	response, err := g.instance.Invoke(ctx, &tea.Request{Action: "graph." + action, Params: tea.ValuePayload(params), Host: g.host})
	if err != nil {
		return nil, err
	}
	v, err := response.Result.Value()
	result, _ := v.(map[string]any)
	return result, err
}

// call is try for a call that has to succeed.
func (g *opened) call(action string, params object) object {
	g.t.Helper()
	result, err := g.try(action, params)
	if err != nil {
		g.t.Fatalf("graph.%s: %v", action, err)
	}
	return result
}

// fails checks the error of a call.
func (g *opened) fails(action string, params object, kind tea.ErrorType, text string) {
	g.t.Helper()
	_, err := g.try(action, params)
	if err == nil || tea.AsError(err).Type != kind || !strings.Contains(err.Error(), text) {
		g.t.Errorf("graph.%s(%v) returned %v, not a %s with %q", action, params, err, kind, text)
	}
}

// link stores entities and relations written as "a-knows-b".
func (g *opened) link(relations ...string) {
	g.t.Helper()
	var all []any
	for _, r := range relations {
		ends := strings.Split(r, "-")
		all = append(all, object{"from_entity": ends[0], "relation_type": ends[1], "to_entity": ends[2]})
	}
	g.call("store_relations", object{"relations": all, "create_missing": true})
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// field collects a field of each object of a list.
func field(list any, name string) []any {
	items, _ := list.([]any)
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = item.(object)[name]
	}
	return all
}

// short writes relations as "a-knows-b".
func short(list any) string {
	items, _ := list.([]any)
	var all []string
	for _, item := range items {
		r := item.(object)
		all = append(all, r["from"].(string)+"-"+r["type"].(string)+"-"+r["to"].(string))
	}
	return strings.Join(all, " ")
}

// ids joins the ids of entities.
func ids(list any) string {
	items, _ := list.([]any)
	var all []string
	for _, item := range items {
		all = append(all, item.(object)["id"].(string))
	}
	return strings.Join(all, " ")
}

func TestAnEntityIsStoredChangedAndDeleted(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		r := g.call("store_entity", object{"entity_id": "ana", "entity_type": "person", "properties": object{"age": int64(30), "city": "Porto"}, "text": "Ana lives in Porto."})
		same(t, "result", r, object{"success": true, "entity_id": "ana", "type": "person", "has_embedding": false, "created": true})
		same(t, "again", g.call("store_entity", object{"entity_id": "ana", "properties": object{"age": int64(31)}, "merge": true})["created"], false)
		e := g.call("get_entity", object{"entity_id": "ana"})["entity"].(object)
		same(t, "merged", e["properties"], object{"age": int64(31), "city": "Porto"})
		same(t, "type", e["type"], "person")
		same(t, "text", e["text"], "Ana lives in Porto.")
		e = g.call("update_entity", object{"entity_id": "ana", "properties": object{"city": nil, "big": int64(9007199254740993)}})["entity"].(object)
		same(t, "updated", e["properties"], object{"age": int64(31), "big": int64(9007199254740993)})
		g.call("store_entity", object{"entity_id": "ana", "properties": object{"x": 2.0}})
		same(t, "replaced", g.call("get_entity", object{"entity_id": "ana"})["entity"].(object)["properties"], object{"x": 2.0})
		g.link("ana-knows-bob")
		g.fails("delete_entity", object{"entity_id": "ana"}, tea.ValidationError, `such as "ana" -knows-> "bob"; set detach: true`)
		r = g.call("delete_entity", object{"entity_ids": []any{"ana", "none"}, "detach": true})
		same(t, "deleted", r, object{"success": true, "deleted": int64(1), "deleted_relations": int64(1)})
		g.fails("get_entity", object{"entity_id": "ana"}, tea.NotFound, `there is no entity "ana" in the namespace "default"`)
		g.fails("update_entity", object{"entity_id": "ana"}, tea.NotFound, `there is no entity "ana"`)
	})
}

func TestAPropertyRemembersFormerValues(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		at := func(when string) any {
			return g.call("get_entity", object{"entity_id": "ana", "as_of": when})["entity"].(object)["properties"]
		}
		g.call("store_entity", object{"entity_id": "ana", "properties": object{"city": "Porto"}, "valid_from": "2020-01-01", "source": "letter"})
		g.call("update_entity", object{"entity_id": "ana", "properties": object{"city": "Lisboa"}, "valid_from": "2023-05-01", "source": "mail"})
		// A fact about the past that arrives late.
		g.call("update_entity", object{"entity_id": "ana", "properties": object{"city": "Braga"}, "valid_from": "2021-06-01"})
		for when, want := range map[string]object{"2019-01-01": {}, "2020-06-01": {"city": "Porto"}, "2022-01-01": {"city": "Braga"}, "2023-05-01": {"city": "Lisboa"}, "2030-01-01": {"city": "Lisboa"}} {
			same(t, when, at(when), want)
		}
		r := g.call("get_entity", object{"entity_id": "ana", "history": true})
		same(t, "now", r["entity"].(object)["properties"], object{"city": "Lisboa"})
		same(t, "values", field(r["facts"], "value"), []any{"Porto", "Braga", "Lisboa"})
		same(t, "ends", field(r["facts"], "valid_to"), []any{"2021-06-01T00:00:00Z", "2023-05-01T00:00:00Z", ""})
		same(t, "sources", field(r["facts"], "source"), []any{"letter", "", "mail"})
	})
}

func TestFormerValuesAreBounded(t *testing.T) {
	t.Parallel()
	g := open(t, object{"backend": "memory", "path": t.TempDir(), "history": 2})
	for i := range int64(5) {
		g.call("store_entity", object{"entity_id": "counter", "properties": object{"n": i}})
	}
	r := g.call("get_entity", object{"entity_id": "counter", "history": true})
	same(t, "values", field(r["facts"], "value"), []any{int64(2), int64(3), int64(4)})
	same(t, "dropped", r["dropped"], int64(2))
}

func TestRelationsThatChange(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		for _, id := range []string{"ana", "acme", "bolt", "zinc"} {
			g.call("store_entity", object{"entity_id": id})
		}
		works := func(at, from string, exclusive bool) object {
			return g.call("store_relation", object{"from_entity": "ana", "relation_type": "works_at", "to_entity": at, "valid_from": from, "exclusive": exclusive})
		}
		works("acme", "2020-01-01", true)
		same(t, "closed", works("bolt", "2023-01-01", true)["closed"], int64(1))
		same(t, "end of a fact that arrives late", works("zinc", "2022-01-01", true)["valid_to"], "2023-01-01T00:00:00Z")
		then := func(params object) string {
			params["from_entity"] = "ana"
			return short(g.call("get_relations", params)["relations"])
		}
		same(t, "now", then(object{}), "ana-works_at-bolt")
		same(t, "in 2021", then(object{"as_of": "2021-01-01"}), "ana-works_at-acme")
		same(t, "in 2022", then(object{"as_of": "2022-06-01"}), "ana-works_at-zinc")
		same(t, "in 2010", then(object{"as_of": "2010-01-01"}), "")
		same(t, "ever", then(object{"history": true}), "ana-works_at-acme ana-works_at-bolt ana-works_at-zinc")
		same(t, "the same said again", works("bolt", "2024-01-01", true)["created"], false)
		r := g.call("delete_relation", object{"from_entity": "ana", "relation_type": "works_at", "to_entity": "bolt", "valid_to": "2024-01-01"})
		same(t, "ended", r["closed"], int64(1))
		same(t, "after its end", then(object{}), "")
		r = g.call("delete_relation", object{"from_entity": "ana", "relation_type": "works_at", "to_entity": "bolt"})
		same(t, "removed", r["deleted"], int64(1))
		same(t, "what is left", then(object{"history": true}), "ana-works_at-acme ana-works_at-zinc")
		g.fails("store_relation", object{"from_entity": "ana", "relation_type": "knows", "to_entity": "bob"}, tea.NotFound, `there is no entity "bob"`)
		g.fails("store_relation", object{"from_entity": "ana", "relation_type": "knows", "to_entity": "acme", "valid_from": "soon"}, tea.ValidationError, `"soon" is not a time`)
	})
}

func TestNeighborsPathsAndSubgraphs(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.link("a-knows-b", "b-knows-c", "c-likes-d", "a-likes-e", "e-likes-d", "x-knows-a", "y-knows-y")
		near := func(p object) string {
			p["entity_id"] = "a"
			return ids(g.call("neighbors", p)["neighbors"])
		}
		same(t, "1 hop", near(object{}), "b e x")
		same(t, "2 hops", near(object{"depth": 2}), "b e x c d")
		same(t, "out", near(object{"depth": 3, "direction": "out"}), "b e c d")
		same(t, "in", near(object{"depth": 3, "direction": "in"}), "x")
		same(t, "of a type", near(object{"depth": 3, "direction": "out", "relation_types": []any{"knows"}}), "b c")
		r := g.call("neighbors", object{"entity_id": "a", "depth": 2, "limit": 2})
		same(t, "with a limit", ids(r["neighbors"]), "b e")
		same(t, "truncated", r["truncated"], true)
		g.call("update_entity", object{"entity_id": "d", "properties": object{"n": int64(5)}, "entity_type": "place"})
		same(t, "with a filter", near(object{"depth": 2, "filter": object{"n": object{"gt": int64(4)}}}), "d")
		same(t, "of an entity type", near(object{"depth": 2, "entity_types": []any{"place"}}), "d")
		g.fails("neighbors", object{"entity_id": "none"}, tea.NotFound, `there is no entity "none"`)

		path := func(p object) []any { return g.call("shortest_path", p)["path"].([]any) }
		same(t, "path", path(object{"from_entity": "a", "to_entity": "d"}), []any{"a", "e", "d"})
		same(t, "path by types", path(object{"from_entity": "x", "to_entity": "c", "relation_types": []any{"knows"}}), []any{"x", "a", "b", "c"})
		same(t, "path to itself", path(object{"from_entity": "a", "to_entity": "a"}), []any{"a"})
		same(t, "no path", path(object{"from_entity": "a", "to_entity": "x", "direction": "out"}), []any{})
		same(t, "too long a path", path(object{"from_entity": "x", "to_entity": "d", "max_depth": 2}), []any{})
		g.call("store_relation", object{"from_entity": "a", "relation_type": "likes", "to_entity": "e", "weight": 10.0})
		r = g.call("shortest_path", object{"from_entity": "a", "to_entity": "d", "weighted": true})
		same(t, "path by weight", r["path"], []any{"a", "b", "c", "d"})
		same(t, "its weight", r["weight"], 3.0)
		same(t, "its relations", short(r["relations"]), "a-knows-b b-knows-c c-likes-d")

		r = g.call("subgraph", object{"entity_id": "b"})
		same(t, "entities", ids(r["entities"]), "b a c")
		same(t, "relations", short(r["relations"]), "a-knows-b b-knows-c")
		r = g.call("subgraph", object{"entity_ids": []any{"y", "b"}, "depth": 0})
		same(t, "without hops", ids(r["entities"])+": "+short(r["relations"]), "b y: y-knows-y")
	})
}

func TestNeighborsHaveCompleteRelationsWhateverTheirNumber(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		var all []any
		for _, to := range []string{"b", "c", "d", "e", "f"} {
			all = append(all, object{"from_entity": "a", "relation_type": "knows", "to_entity": to, "properties": object{"since": to}, "source": "test"})
		}
		g.call("store_relations", object{"relations": all, "create_missing": true})
		for _, direction := range []string{"out", "both"} {
			few := g.call("neighbors", object{"entity_id": "a", "direction": direction, "limit": 2})["neighbors"].([]any)
			many := g.call("neighbors", object{"entity_id": "a", "direction": direction})["neighbors"].([]any)
			same(t, direction+", a limit below the number of relations", few, many[:2])
			for _, n := range many {
				via := n.(object)["via"].(object)
				same(t, direction+", relation to "+via["to"].(string), via["properties"], object{"since": via["to"]})
				same(t, "its source", via["source"], "test")
			}
		}
		via := g.call("neighbors", object{"entity_id": "c", "direction": "in"})["neighbors"].([]any)[0].(object)["via"].(object)
		same(t, "in", via["properties"], object{"since": "c"})
	})
}

func TestWeightsThatAddUpToMoreThanANumberAreRefused(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.link("a-r-b", "b-r-c")
		for _, ends := range [][2]string{{"a", "b"}, {"b", "c"}} {
			g.call("store_relation", object{"from_entity": ends[0], "to_entity": ends[1], "relation_type": "r", "weight": 1e308})
		}
		for _, weighted := range []bool{false, true} {
			g.fails("shortest_path", object{"from_entity": "a", "to_entity": "c", "weighted": weighted}, tea.ValidationError, `the path to "c" add up to more than a number can hold`)
		}
		for _, p := range []object{{"algorithm": "shortest_paths", "entity_id": "a"}, {"algorithm": "pagerank"}, {"algorithm": "community"}, {"algorithm": "centrality", "measure": "closeness"}} {
			p["weighted"] = true
			g.fails("algorithm", p, tea.ValidationError, "weighted needs smaller ones")
		}
		same(t, "without weights", g.call("algorithm", object{"algorithm": "shortest_paths", "entity_id": "a"})["total"], int64(3))
	})
}

func TestNamesThatAreNotValid(t *testing.T) {
	t.Parallel()
	g := open(t, object{"backend": "memory", "path": t.TempDir()})
	g.fails("store_entity", object{"entity_id": ""}, tea.ValidationError, "entity_id is empty")
	g.fails("store_entity", object{"entity_id": "a\x00b"}, tea.ValidationError, "control character")
	g.fails("store_entity", object{"entity_id": strings.Repeat("a", 2000)}, tea.ValidationError, "is too long: 2000 bytes (limit ")
	g.fails("store_entity", object{"entity_id": "a", "namespace": "\n"}, tea.ValidationError, "namespace")
	g.fails("store_entity", object{"entity_id": "a", "embedding": []any{1e300}}, tea.ValidationError, "too large")
	g.fails("store_entity", object{"entity_id": "ana\u200b"}, tea.ValidationError, "has the invisible character U+200B")
	g.fails("store_entity", object{"entity_id": "a", "properties": object{"na\u200bme": "x"}}, tea.ValidationError, `entity "a" has the property "na\u200bme" with the invisible character U+200B`)
	g.fails("store_relation", object{"from_entity": "a", "relation_type": "r", "to_entity": "b", "create_missing": true, "properties": object{"\ufeffx": int64(1)}}, tea.ValidationError, "invisible character U+FEFF")
	g.fails("import", object{"data": `{"id": "a", "properties": {"na\u200bme": 1}}`}, tea.ValidationError, "invisible character U+200B")
	g.call("store_entity", object{"entity_id": "👩\u200d🔧 می\u200cخواهم", "properties": object{"می\u200cخواهم": "a\u200bb"}})
	same(t, "in a context", g.call("retrieve_context", object{"entity_id": "👩\u200d🔧 می\u200cخواهم"})["context_summary"], "👩\u200d🔧 می\u200cخواهم (entity): می\u200cخواهم ab")
}

// CozoDB failed with an internal error where the other backends stored a value.
func TestPropertiesThatAreNestedTooDeep(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		nested := func(depth int) any {
			var v any = int64(1)
			for i := range depth {
				if v = []any{v}; i%2 == 1 {
					v = object{"in": v.([]any)[0]}
				}
			}
			return v
		}
		properties := object{"deep": nested(100)}
		g.call("store_entity", object{"entity_id": "a", "properties": properties})
		g.call("store_relation", object{"from_entity": "a", "to_entity": "a", "relation_type": "r", "properties": properties})
		read := g.call("get_entity", object{"entity_id": "a"})["entity"].(object)["properties"]
		same(t, "properties", string(encode(t, read)), string(encode(t, properties))) // cmp compares each level twice
		exported := g.call("export", object{"format": "jsonl"})["data"].(string)
		g.call("import", object{"data": exported})

		properties = object{"deep": nested(101)}
		for action, params := range map[string]object{
			"store_entity":   {"entity_id": "a", "properties": properties},
			"update_entity":  {"entity_id": "a", "properties": properties},
			"store_relation": {"from_entity": "a", "to_entity": "a", "relation_type": "r", "properties": properties},
			"import":         {"data": string(encode(t, object{"id": "b", "properties": properties}))},
		} {
			g.fails(action, params, tea.ValidationError, "100 lists and objects")
		}
	})
}
