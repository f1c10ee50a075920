package graph_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	tea "github.com/the-edge-agent/tea/sdk"
)

// sample stores a graph with every kind of value.
func (g *opened) sample() {
	g.t.Helper()
	g.call("store_entities", object{"entities": []any{
		object{
			"entity_id": "ana", "entity_type": "person", "text": "Ana, \"the\" <engineer>\nof & 東京", "source": "staff.md", "embedding": []any{0.25, -1.5},
			"properties": object{"age": int64(30), "big": int64(9007199254740993), "f": 2.0, "tags": []any{"a", "b,c"}, "name": "Ana"},
		},
		object{"entity_id": "acme", "entity_type": "firm"},
		object{"entity_id": "bolt"},
	}})
	g.call("update_entity", object{"entity_id": "ana", "properties": object{"age": int64(31)}, "valid_from": "2024-01-01"})
	g.call("store_relation", object{"from_entity": "ana", "relation_type": "works_at", "to_entity": "acme", "valid_from": "2020-01-01", "weight": 2.5, "properties": object{"role": "dev"}, "source": "cv"})
	g.call("store_relation", object{"from_entity": "ana", "relation_type": "works_at", "to_entity": "bolt", "valid_from": "2023-01-01", "exclusive": true})
}

// contents are what an export as JSON Lines has, without the times of writing.
func (g *opened) contents() []any {
	g.t.Helper()
	var all []any
	for line := range strings.Lines(g.call("export", object{})["data"].(string)) {
		var r object
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			g.t.Fatal(err)
		}
		delete(r, "updated_at")
		delete(r, "created_at")
		all = append(all, r)
	}
	return all
}

func TestAGraphIsExportedAndImported(t *testing.T) {
	t.Parallel()
	for _, name := range backends(t) {
		for format, path := range map[string]string{"jsonl": "dir/graph.jsonl", "csv": "dir/csv", "parquet": "parquet", "graphml": "graph.graphml"} {
			t.Run(name+"/"+format, func(t *testing.T) {
				t.Parallel()
				root := t.TempDir()
				g := openWith(t, object{"graph": object{"backend": name, "path": t.TempDir()}, "file": object{"root": root}})
				g.needLibrary()
				g.sample()
				want := g.contents()
				p := object{"path": path, "format": format}
				r := g.call("export", p)
				same(t, "entities", r["entities"], int64(3))
				same(t, "relations", r["relations"], int64(2))
				other := openWith(t, object{"graph": object{"backend": name, "path": t.TempDir()}, "file": object{"root": root}})
				r = other.call("import", p)
				same(t, "imported", r, object{"success": true, "entities": int64(3), "relations": int64(2), "created_entities": int64(0), "notes": []any{}})
				other.call("import", p)
				got := other.contents()
				for _, list := range [][]any{want, got} {
					for _, item := range list {
						e := item.(object)
						if format == "graphml" {
							delete(e, "facts")
							delete(e, "embedding")
						}
					}
				}
				same(t, "after the import", got, want)
				same(t, "search after the import", ids(other.call("search", object{"query": "engineer"})["results"]), "ana")
			})
		}
	}
}

func TestAGraphMovesToAnotherBackendAndBack(t *testing.T) {
	t.Parallel()
	for _, from := range backends(t) {
		for _, to := range backends(t) {
			if from == to {
				continue
			}
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				root := t.TempDir()
				on := func(backend string) *opened {
					g := openWith(t, object{"graph": object{"backend": backend, "path": t.TempDir()}, "file": object{"root": root}})
					g.needLibrary()
					return g
				}
				old, other, back := on(from), on(to), on(from)
				old.sample()
				old.call("export", object{"path": "there.jsonl"})
				other.call("import", object{"path": "there.jsonl"})
				other.call("export", object{"path": "back", "format": "parquet"})
				back.call("import", object{"path": "back", "format": "parquet"})
				same(t, "there", other.contents(), old.contents())
				same(t, "back", back.contents(), old.contents())
			})
		}
	}
}

func TestPartsOfAGraphAreExported(t *testing.T) {
	t.Parallel()
	g := openWith(t, object{"graph": object{"backend": "memory", "path": t.TempDir()}, "file": object{"root": t.TempDir()}})
	g.sample()
	r := g.call("export", object{"entity_types": []any{"person", "firm"}})
	same(t, "by type", []any{r["entities"], r["relations"]}, []any{int64(2), int64(1)})
	r = g.call("export", object{"current": true})
	same(t, "current relations", r["relations"], int64(1))
	r = g.call("export", object{"entity_ids": []any{"bolt"}, "format": "cytoscape"})
	same(t, "around an entity", []any{r["entities"], r["relations"]}, []any{int64(2), int64(1)})
	var picture struct {
		Elements struct{ Nodes, Edges []struct{ Data object } }
	}
	if err := json.Unmarshal([]byte(r["data"].(string)), &picture); err != nil {
		t.Fatal(err)
	}
	same(t, "edge", []any{picture.Elements.Edges[0].Data["source"], picture.Elements.Edges[0].Data["target"]}, []any{"ana", "bolt"})
	r = g.call("export", object{"namespace": "none", "format": "cytoscape"})
	same(t, "empty picture", json.Valid([]byte(r["data"].(string))), true)
}

func TestImportsThatAreRefused(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	g := openWith(t, object{"graph": object{"backend": "memory", "path": t.TempDir()}, "file": object{"root": root}})
	for text, want := range map[string]string{
		`{"kind":"entity","id":"a"}` + "\n{":                                         "line 2",
		`{"kind":"entity","id":""}`:                                                  "entity_id is empty",
		`{"kind":"thing","id":"a"}`:                                                  `the kind "thing" is neither entity nor relation`,
		`{"kind":"entity","id":"a","properties":[1]}`:                                "properties are not a JSON object",
		`{"kind":"entity","id":"a","facts":[1]}`:                                     `the facts of "a" are not valid`,
		`{"kind":"relation","from":"a","to":"b","type":"r","valid_from":"tomorrow"}`: "valid_from",
	} {
		g.fails("import", object{"data": text}, tea.ValidationError, want)
	}
	g.fails("import", object{"path": "../x.jsonl"}, tea.PermissionDenied, "")
	g.fails("import", object{"path": "none.jsonl"}, tea.NotFound, "none.jsonl")
	g.fails("import", object{"path": "x.txt"}, tea.ValidationError, "set format to")
	g.fails("import", object{"data": "{}", "format": "cytoscape"}, tea.ValidationError, "format")
	g.fails("import", object{"path": "x.cyjs"}, tea.ValidationError, "is for pictures")
	if err := os.Mkdir(filepath.Join(root, "p"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"entities.parquet", "relations.parquet"} {
		if err := os.WriteFile(filepath.Join(root, "p", name), []byte("PAR1 damaged PAR1"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g.fails("import", object{"path": "p", "format": "parquet"}, tea.ValidationError, "entities.parquet")
	r := g.call("import", object{"data": `{"kind":"relation","from":"a","to":"b","type":"r"}`})
	same(t, "ends that are created", r["created_entities"], int64(2))
}

// A number that is not finite could not be returned or exported again.
func TestNumbersThatAreNotFiniteAreNotImported(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	g := openWith(t, object{"graph": object{"backend": "memory", "path": t.TempDir()}, "file": object{"root": root}})
	const graphML = `<graphml><key id="w" for="edge" attr.name="weight" attr.type="double"/><graph><edge source="a" target="b"><data key="w">%s</data></edge></graph></graphml>`
	for _, weight := range []string{"inf", "-Infinity", "NaN"} {
		g.fails("import", object{"format": "graphml", "data": fmt.Sprintf(graphML, weight)}, tea.ValidationError, `the weight of "a" -related_to-> "b" is not a finite number`)
		g.writeTable(root, "id\n", "from,to,type,weight\na,b,k,"+weight+"\n")
		g.fails("import", object{"path": ".", "format": "csv"}, tea.ValidationError, `relations.csv: line 2: the weight of "a" -k-> "b" is not a finite number`)
	}
	g.fails("import", object{"data": `{"kind":"relation","from":"a","to":"b","type":"k","weight":1e999}`}, tea.ValidationError, "weight")
	g.fails("import", object{"data": `{"kind":"entity","id":"a","embedding":[1e39]}`}, tea.ValidationError, "embedding")
	g.writeTable(root, "id,embedding\na,[NaN]\n", "from,to,type\n")
	g.fails("import", object{"path": ".", "format": "csv"}, tea.ValidationError, "entities.csv: line 2: embedding")
	type row struct {
		From   string  `parquet:"from"`
		Type   string  `parquet:"type"`
		To     string  `parquet:"to"`
		Weight float64 `parquet:"weight"`
	}
	type entity struct {
		ID        string    `parquet:"id"`
		Embedding []float32 `parquet:"embedding"`
	}
	writeParquet(t, filepath.Join(root, "entities.parquet"), entity{ID: "a"})
	writeParquet(t, filepath.Join(root, "relations.parquet"), row{From: "a", Type: "k", To: "b", Weight: math.Inf(1)})
	g.fails("import", object{"path": ".", "format": "parquet"}, tea.ValidationError, "relations.parquet: row 1: the weight of")
	writeParquet(t, filepath.Join(root, "entities.parquet"), entity{ID: "a", Embedding: []float32{float32(math.NaN())}})
	g.fails("import", object{"path": ".", "format": "parquet"}, tea.ValidationError, `entities.parquet: row 1: dimension 0 of the embedding of "a" is too large, or not a number`)
	same(t, "relations", g.call("stats", object{})["relations"], int64(0))
}

func writeParquet[R any](t *testing.T, path string, rows ...R) {
	t.Helper()
	if err := parquet.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
}

// writeTable writes the files of the format csv.
func (g *opened) writeTable(dir, entities, relations string) {
	g.t.Helper()
	for name, text := range map[string]string{"entities.csv": entities, "relations.csv": relations} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			g.t.Fatal(err)
		}
	}
}

// A table of another program: other columns are properties.
func TestATableIsImported(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	g := openWith(t, object{"graph": object{"backend": "memory", "path": t.TempDir()}, "file": object{"root": root}})
	g.writeTable(root, "id,type,city\nana,person,Porto\nbob,person,\n", "from,to,type,since\nana,bob,knows,2020\n")
	g.call("import", object{"path": ".", "format": "csv"})
	same(t, "properties", g.call("get_entity", object{"entity_id": "ana"})["entity"].(object)["properties"], object{"city": "Porto"})
	same(t, "relations", short(g.call("get_relations", object{"entity_id": "bob"})["relations"]), "ana-knows-bob")
}

// NetworkX reads what was exported, and its own GraphML is imported.
func TestGraphMLOfNetworkX(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	g := openWith(t, object{"graph": object{"backend": "memory", "path": t.TempDir()}, "file": object{"root": root}})
	g.sample()
	g.call("export", object{"path": "out.graphml"})
	cmd := exec.CommandContext(t.Context(), networkX(t), "-c", `
import networkx as nx
g = nx.read_graphml("out.graphml")
assert set(g) == {"ana", "acme", "bolt"} and g["ana"]["acme"]["weight"] == 2.5, list(g.edges(data=True))
h = nx.DiGraph()
h.add_node("x", size=3, ok=True, name="X & Y", f=0.5)
h.add_edge("x", "y", weight=4.0, type="feeds")
nx.write_graphml(h, "in.graphml")
`)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := g.call("import", object{"path": "in.graphml"})
	same(t, "entities", r["entities"], int64(2))
	same(t, "properties", g.call("get_entity", object{"entity_id": "x"})["entity"].(object)["properties"], object{"size": int64(3), "ok": true, "name": "X & Y", "f": 0.5})
	same(t, "weight", field(g.call("get_relations", object{"entity_id": "x"})["relations"], "weight"), []any{4.0})
}
