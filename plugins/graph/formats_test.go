package graph_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/parquet-go/parquet-go"

	tea "github.com/the-edge-agent/tea/sdk"
)

// imported opens an empty graph and imports a text.
func imported(t *testing.T, format, text string) (*opened, object) {
	t.Helper()
	g := open(t, object{"backend": "memory", "path": t.TempDir()})
	return g, g.call("import", object{"format": format, "data": text})
}

func (g *opened) propertiesOf(id string) any {
	g.t.Helper()
	return g.call("get_entity", object{"entity_id": id})["entity"].(object)["properties"]
}

func utf16le(text string) string {
	var b strings.Builder
	for _, u := range append([]uint16{0xFEFF}, utf16.Encode([]rune(text))...) {
		b.WriteByte(byte(u))
		b.WriteByte(byte(u >> 8))
	}
	return b.String()
}

func TestTablesOfOtherPrograms(t *testing.T) {
	t.Parallel()
	g, root := inRoot(t, "memory")
	write := func(entities, relations string) object {
		g.writeTable(root, entities, relations)
		return object{"path": ".", "format": "csv"}
	}
	// Excel and Python write a byte order mark.
	g.call("import", write("\ufeffid,type,age:int,ok:bool,f:float,tags:json,note:string,a:b\nana,person,30,True,2,\"[1,\"\"x\"\"]\",7,c\n", "\ufefffrom,type,to,since:int\nana,knows,bob,2020\n"))
	same(t, "types", g.propertiesOf("ana"), object{"age": int64(30), "ok": true, "f": 2.0, "tags": []any{int64(1), "x"}, "note": "7", "a:b": "c"})
	same(t, "relation", field(g.call("get_relations", object{"entity_id": "ana"})["relations"], "properties"), []any{object{"since": int64(2020)}})
	g.call("import", write(utf16le("id,nome\nzé,São Paulo\n"), "from,type,to\n"))
	same(t, "UTF-16", g.propertiesOf("zé"), object{"nome": "São Paulo"})
	r := g.call("import", write("id,n\nx,1\nx,2\n", "from,type,to\n"))
	same(t, "two rows with one id", []any{r["entities"], r["notes"]}, []any{int64(1), []any{"rows with a duplicate key: 1; the last one of each key is stored"}})
	const none = "from,type,to\n"
	for _, c := range []struct{ entities, relations, want string }{
		{"name,age\nx,1\n", none, `entities.csv: line 1: the column "id" is missing; the columns are ["name" "age"]`},
		{"id;name\nx;1\n", none, `Columns are separated by commas`},
		{"id,name,name\nx,1,2\n", none, `entities.csv: line 1: two columns have the name "name"`},
		{"", none, "entities.csv: the file is empty"},
		{"id\nx\n", "from,to\na,b\n", `relations.csv: line 1: the column "type" is missing; the columns are ["from" "to"]`},
		{"id,name\nb,ok\na,S\xe3o\n", none, "entities.csv: line 3: name: the text is not valid UTF-8; save the file as UTF-8"},
		{"id,age:int\nx,3.5\n", none, `entities.csv: line 2: age: "3.5" is not an integer`},
		{"id,ok:bool\nx,yes\n", none, `line 2: ok: "yes" is not true or false`},
		{"id,f:float\nx,inf\n", none, `line 2: f: "inf" is not a finite number`},
		{"id,x,properties\na,1,\"{\"\"x\"\":2}\"\n", none, "line 2: x appears twice: in properties, and alone"},
		{"id,embedding\na,NaN\n", none, `line 2: embedding: "NaN" is not a JSON list of numbers`},
		{"id\na\n", "from,type,to,weight\na,r,b,abc\n", `relations.csv: line 2: weight: "abc" is not a number`},
		{"id\na\n", "from,type,to,weight\na,r,b,0x1p4\n", `weight: "0x1p4" is not a number`},
	} {
		g.fails("import", write(c.entities, c.relations), tea.ValidationError, c.want)
	}
}

func TestLinesThatEndInCarriageReturns(t *testing.T) {
	t.Parallel()
	g, root := inRoot(t, "memory")
	g.writeTable(root, "\ufeffid,type,note\ra,x,\"one\rtwo\"\rb,y,\r", "from,type,to\ra,knows,b\r")
	r := g.call("import", object{"path": ".", "format": "csv"})
	same(t, "import", []any{r["entities"], r["relations"], r["notes"]}, []any{int64(2), int64(1), []any{}})
	same(t, "a cell of two lines", g.propertiesOf("a"), object{"note": "one\ntwo"})
}

func TestAFileThatIsNotParquet(t *testing.T) {
	t.Parallel()
	g, root := inRoot(t, "memory")
	for _, name := range []string{"entities.parquet", "relations.parquet"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte("PAR1 this is not one"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g.fails("import", object{"path": ".", "format": "parquet"}, tea.ValidationError, "entities.parquet: it is not a Parquet file, or it is damaged: ")
}

func TestNamesOfColumnsThatAreProbablyMistakes(t *testing.T) {
	t.Parallel()
	g, root := inRoot(t, "memory")
	g.writeTable(root, "id,born:date, name\na,2020-01-01,x\n", "from,type,to\n")
	same(t, "notes", g.call("import", object{"path": ".", "format": "csv"})["notes"], []any{
		`entities.csv: the column "born:date" is a property with this name; the types of columns are string, int, float, bool, json`,
		`entities.csv: the name of the column " name" begins or ends with a space`,
	})
	g.writeTable(root, ",id\n0,a\n", "from,type,to\n")
	g.fails("import", object{"path": ".", "format": "csv"}, tea.ValidationError, "a column has no name; name or remove it (pandas writes its index without one: use index=False)")
}

func TestJSONThatMeansSomethingElseToOthers(t *testing.T) {
	t.Parallel()
	g, root := inRoot(t, "memory")
	for text, want := range map[string]string{
		`{"id":"x"}` + "\n" + `{"id":"a","properties":{"a":1,"b":{"c":1,"\u0063":2}}}`: `line 2: an object has the member "c" twice`,
		`{"id":"a","id":"b"}`:              `line 1: an object has the member "id" twice`,
		`{"id":"a","text":"a \ud800"}`:     `the escape \ud800 is half of a character`,
		`{"id":"a","text":"\udc00\ud800"}`: `the escape \udc00 is half of a character`,
	} {
		g.fails("import", object{"data": text}, tea.ValidationError, want)
	}
	g.call("import", object{"data": `{"id":"a","text":"\ud83d\ude00 \\ud800","properties":{"x":[{"a":1},{"a":2}],"a":{"a":"{\"a\":1,\"a\":2}"}}}`})
	same(t, "what is not", g.call("get_entity", object{"entity_id": "a"})["entity"].(object)["text"], "😀 \\ud800")
	g.writeTable(root, "id,properties\na,\"{\"\"n\"\":1,\"\"n\"\":2}\"\n", "from,type,to\n")
	g.fails("import", object{"path": ".", "format": "csv"}, tea.ValidationError, `entities.csv: line 2: properties: an object has the member "n" twice`)
}

// A member that would be dropped is an error.
func TestLinesThatAreNotUnderstood(t *testing.T) {
	t.Parallel()
	g := open(t, object{"backend": "memory", "path": t.TempDir()})
	for text, want := range map[string]string{
		`{"kind":"entity","id":"a","propertis":{"a":1}}`:              `import data: line 1: an entity does not have a member "propertis"; did you mean "properties"? (nothing was stored)`,
		`{"kind":"entity","id":"a","weight":1}`:                       `an entity does not have a member "weight"`,
		`{"kind":"relation","from":"a","to":"b","type":"r","id":"x"}`: `a relation does not have a member "id"`,
		`{"id":"a","weight":"1"}`:                                     "weight: a JSON string is not a valid value",
		`{"id":"a","properties":{}} {"id":"b"}`:                       "line 1: the line has more than one JSON value",
		`["a"]`:                                                       "a JSON array is not an entity or a relation, which are objects",
		"{\"id\":\"a\",\"text\":\"S\xe3o\"}":                          "line 1: the text is not valid UTF-8",
		`{"id":"a","source":"s\nt"}`:                                  "has a control character",
		"{\"id\":\"a\"}\n\n{\"id\":":                                  "line 3: not valid JSON",
	} {
		g.fails("import", object{"data": text}, tea.ValidationError, want)
	}
	same(t, "nothing is stored", g.call("stats", object{})["entities"], int64(0))
	g.call("import", object{"data": "\ufeff{\"id\":\"a\"}\r\n \n{\"from\":\"a\",\"type\":\"r\",\"to\":\"b\"}\n"})
	same(t, "with a byte order mark", g.call("stats", object{})["entities"], int64(2))
}

// The times of facts are readable in an export, and an import accepts the form of
// earlier ones.
func TestTimesOfFactsInAnExport(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		g.call("store_entity", object{"entity_id": "a", "properties": object{"city": "Faro", "n": int64(1)}})
		g.call("update_entity", object{"entity_id": "a", "properties": object{"city": "Porto"}, "valid_from": "2020-01-01", "source": "mail"})
		text := g.call("export", object{})["data"].(string)
		for _, want := range []string{`"from":"2020-01-01T00:00:00Z"`, `"to":"2020-01-01T00:00:00Z"`, `"from":""`} {
			if !strings.Contains(text, want) {
				t.Errorf("the export does not have %s: %s", want, text)
			}
		}
		want := g.call("get_entity", object{"entity_id": "a", "history": true})["facts"]
		other, _ := imported(t, "jsonl", text)
		same(t, "facts", other.call("get_entity", object{"entity_id": "a", "history": true})["facts"], want)
		earlier := strings.NewReplacer(`"from":""`, `"from":-9223372036854775808`, `"2020-01-01T00:00:00Z"`, "1577836800000000").Replace(text)
		other, _ = imported(t, "jsonl", earlier)
		same(t, "facts of an earlier export", other.call("get_entity", object{"entity_id": "a", "history": true})["facts"], want)
	})
}

const keysOfGraphML = `<key id="d0" for="node" attr.name="name" attr.type="string"><default>unknown</default></key>
<key id="d1" for="node" attr.name="n" attr.type="int"/>
<key id="d2" for="edge" attr.name="weight" attr.type="double"><default>0.5</default></key>
<key id="d3" for="node" yfiles.type="nodegraphics"/>
<key id="d4" for="graph" attr.name="author" attr.type="string"/>`

func graphMLText(graph string) string {
	return "<graphml>\n" + keysOfGraphML + "\n" + graph + "</graphml>"
}

// Everything of a GraphML file is kept, noted or refused.
func TestGraphMLOfOtherPrograms(t *testing.T) {
	t.Parallel()
	g, r := imported(t, "graphml", graphMLText(`<graph edgedefault="undirected"><data key="d4">me</data>
<node id="a"><desc>first</desc><data key="d0">Ana</data><data key="d1"> 7 </data></node>
<node id="b"><data key="d3"><y:ShapeNode xmlns:y="y"><y:NodeLabel x="1">A label<y:Model/></y:NodeLabel></y:ShapeNode></data><port name="p"/></node>
<edge id="e1" source="a" target="b" targetport="p"/><edge source="b" target="a" directed="true"><data key="d2">2</data></edge></graph>`))
	same(t, "a", g.propertiesOf("a"), object{"name": "Ana", "n": int64(7), "desc": "first"})
	same(t, "b", g.propertiesOf("b"), object{"name": "unknown", "label": "A label"})
	relations := g.call("get_relations", object{"entity_id": "a"})["relations"]
	same(t, "relations", short(relations), "a-related_to-b b-related_to-a")
	same(t, "weights", field(relations, "weight"), []any{0.5, 2.0})
	same(t, "ports", field(relations, "properties"), []any{object{"target_port": "p"}, object{}})
	same(t, "notes", r["notes"], []any{
		"edges without a direction: 1; they are stored as relations from source to target, and direction: both follows them both ways",
		"graphics are left out, except labels, which become the property label", "the ids of edges are left out", "attributes of the graph itself are left out: author",
	})
	g, _ = imported(t, "graphml", `<?xml version="1.0" encoding="iso-8859-1"?><graphml><graph><node id="S`+"\xe3"+`o"/></graph></graphml>`)
	g.propertiesOf("São")
	g, _ = imported(t, "graphml", utf16le(`<?xml version="1.0" encoding="UTF-16"?><graphml><graph><node id="São"/></graph></graphml>`))
	g.propertiesOf("São")
	for graph, want := range map[string]string{
		`<graph><node id="a"><graph><node id="b"/></graph></node></graph>`:                    "line 7: the node \"a\" has a graph in it, which is not supported",
		`<graph><hyperedge/></graph>`:                                                         "line 7: hyperedges are not supported",
		`<graph/><graph/>`:                                                                    "the file has two graphs",
		`<graph><node id="a"/><node id="a"/></graph>`:                                         `the file has the node "a" twice`,
		"<graph>\n<edge source=\"a\" target=\"b\"/><edge source=\"a\" target=\"b\"/></graph>": `line 8: the file has the edge "a" -related_to-> "b" twice`,
		`<graph><node id="a"><data key="d1">abc</data></node></graph>`:                        `line 7: n: "abc" is not an integer`,
		`<graph><edge source="a" target="b"><data key="d2">x</data></edge></graph>`:           `line 7: weight: "x" is not a number`,
		`<graph><node id="a">`:                                                                "line 7: not valid XML",
		`<graph><thing/></graph>`:                                                             "the element thing is not supported",
		``:                                                                                    "does not have an element graph",
		`<graph><node id="a"><locator/></node></graph>`:                                       "is in another file",
		`<graph><edge source="a" target="b" directed="no"/></graph>`:                          `line 7: directed is "no", which is neither true nor false`,
		`<graph/><key id="late" for="node" attr.name="x" attr.type="string"/>`:                `the key "late" comes after the graph`,
		`<graph><node id="a"><port name="p"><data key="d0">x</data></port></node></graph>`:    "has a port with data",
	} {
		open(t, object{"backend": "memory", "path": t.TempDir()}).fails("import", object{"format": "graphml", "data": graphMLText(graph)}, tea.ValidationError, want)
	}
	for text, want := range map[string]string{
		`<x/>`:                  "import data: the file is not GraphML: its first element is x",
		`{"a": 1}`:              "the file is not GraphML",
		`<gexf><graph/></gexf>`: "its first element is gexf",
		`<?xml version="1.0" encoding="big5"?><graphml/>`: `the encoding "big5" is not supported; save the file as UTF-8`,
	} {
		g.fails("import", object{"format": "graphml", "data": text}, tea.ValidationError, want)
	}
}

// The direction of an edge is a boolean of XML, and NetworkX writes a key for each type
// of the values of an attribute.
func TestGraphMLWithNumbersForTruthAndKeysOfOneName(t *testing.T) {
	t.Parallel()
	g, r := imported(t, "graphml", graphMLText(`<graph><edge source="a" target="b" directed="0"/><edge source="b" target="a" directed=" 1 "/></graph>`))
	same(t, "notes", r["notes"], []any{"edges without a direction: 1; they are stored as relations from source to target, and direction: both follows them both ways"})
	same(t, "relations", short(g.call("get_relations", object{"entity_id": "a"})["relations"]), "a-related_to-b b-related_to-a")

	keys := `<graphml><key id="d0" for="node" attr.name="size" attr.type="long"/><key id="d1" for="node" attr.name="size" attr.type="double"/>
<key id="d2" for="node" attr.name="size" attr.type="string"><default>unknown</default></key><key id="d3" for="edge" attr.name="size" attr.type="int"/><graph>`
	g, _ = imported(t, "graphml", keys+`<node id="a"><data key="d0">3</data></node><node id="b"><data key="d1">2.5</data></node><node id="c"/><edge source="a" target="b"><data key="d3">1</data></edge></graph></graphml>`)
	same(t, "sizes", []any{g.propertiesOf("a"), g.propertiesOf("b"), g.propertiesOf("c")}, []any{object{"size": int64(3)}, object{"size": 2.5}, object{"size": "unknown"}})
	g.fails("import", object{"format": "graphml", "data": keys + `<node id="a"><data key="d0">3</data><data key="d1">2.5</data></node></graph></graphml>`},
		tea.ValidationError, `line 2: the attribute "size" appears twice, under the keys "d0" and "d1"; rename one of them`)
	g.fails("import", object{"format": "graphml", "data": keys + `<node id="a"><data key="d0">3</data><data key="d0">4</data></node></graph></graphml>`}, tea.ValidationError, `the attribute "size" appears twice`)
	same(t, "stored", g.propertiesOf("a"), object{"size": int64(3)})
}

// Other programs see properties as attributes with types, and what they write
// again is the same graph.
func TestGraphMLRoundTripThroughNetworkX(t *testing.T) {
	t.Parallel()
	python := networkX(t)
	g, root := inRoot(t, "memory")
	g.call("store_entities", object{"entities": []any{
		object{"entity_id": "é <&\">", "entity_type": "person", "text": "two\nlines\t\n of & 東京", "source": "s", "properties": object{
			"age": int64(30), "big": int64(9007199254740993), "huge": json.Number("123456789012345678901234567890"), "f": 2.0, "small": 1e-300, "ok": true, "empty": "", "name": "Ana",
			"type": "of a property", "esc": "\x1b[31m", "tags": []any{"a", object{"b": nil}}, "a&b": "x", "properties": int64(1),
		}},
		object{"entity_id": "b", "properties": object{"age": "thirty"}},
		object{"entity_id": "c"},
	}})
	g.call("store_relations", object{"relations": []any{
		object{"from_entity": "b", "relation_type": "r", "to_entity": "c", "valid_from": "2020-01-01", "valid_to": "2021-01-01", "weight": 2.5, "properties": object{"n": int64(1), "weight": "heavy"}},
		object{"from_entity": "b", "relation_type": "r", "to_entity": "c", "valid_from": "2022-01-01", "source": "cv"},
		object{"from_entity": "b", "relation_type": "q", "to_entity": "é <&\">", "properties": object{"n": 1.5}},
	}})
	want := withoutFacts(g.contents())
	g.call("export", object{"path": "out.graphml"})
	cmd := exec.CommandContext(t.Context(), python, "-c", `
import networkx as nx, json
g = nx.read_graphml("out.graphml")
a = g.nodes['é <&">']
assert a["age"] == 30 and a["big"] == 9007199254740993 and a["f"] == 2.0 and type(a["f"]) is float and a["ok"] is True and a["name"] == "Ana" and a["small"] == 1e-300, a
assert a["type"] == "person" and json.loads(a["properties"])["tags"] == ["a", {"b": None}], a
assert g.nodes["b"]["age"] == "thirty" and g.is_multigraph() and g.is_directed()
nx.write_graphml(g, "in.graphml")
`)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"out", "in"} {
		other := openWith(t, object{"graph": object{"backend": "memory", "path": t.TempDir()}, "file": object{"root": root}})
		other.call("import", object{"path": name + ".graphml"})
		same(t, name, withoutFacts(other.contents()), want)
		same(t, "types", other.propertiesOf("é <&\">").(object)["f"], 2.0)
	}
	g.call("store_entity", object{"entity_id": "esc", "text": "a\x1b"})
	g.fails("export", object{"format": "graphml"}, tea.ValidationError, `the text "a\x1b" has a character that XML cannot represent; export it as jsonl`)
}

// withoutFacts removes what GraphML does not have.
func withoutFacts(contents []any) []any {
	for _, item := range contents {
		delete(item.(object), "facts")
	}
	return contents
}

// NetworkX reads a picture in the format of Cytoscape.
func TestCytoscapeThroughNetworkX(t *testing.T) {
	t.Parallel()
	python := networkX(t)
	g, root := inRoot(t, "memory")
	g.link("a-knows-b", "a-likes-b")
	g.call("store_entity", object{"entity_id": "a", "properties": object{"age": int64(30), "id": "x", "tags": []any{"t"}}})
	g.call("export", object{"path": "v.cyjs"})
	cmd := exec.CommandContext(t.Context(), python, "-c", `
import networkx as nx, json
g = nx.cytoscape_graph(json.load(open("v.cyjs")))
assert sorted(g) == ["a", "b"] and g.number_of_edges() == 2 and g.is_directed(), g
assert g.nodes["a"]["name"] == "a" and g.nodes["a"]["age"] == 30, g.nodes["a"]
assert g.nodes["a"]["properties"] == {"id": "x", "tags": ["t"]} and "properties" not in g.nodes["b"], g.nodes
`)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestAnExportWithoutAPathHasData(t *testing.T) {
	t.Parallel()
	g := open(t, object{"backend": "memory", "path": t.TempDir()})
	data, ok := g.call("export", object{})["data"]
	same(t, "data of an empty graph", []any{data, ok}, []any{"", true})
	same(t, "notes", g.call("export", object{"namespace": "typo"})["notes"], []any{`the namespace "typo" of the graph has no entities`})
	g.sample()
	same(t, "no notes", g.call("export", object{})["notes"], []any{})
	same(t, "notes of GraphML", g.call("export", object{"format": "graphml"})["notes"], []any{
		"GraphML cannot store embeddings; entities: 1", "GraphML cannot store the former values of properties, nor their times and sources; entities: 1",
	})
	g = openWith(t, object{"graph": object{"backend": "memory", "path": t.TempDir()}, "file": object{"root": t.TempDir()}})
	_, ok = g.call("export", object{"path": "x.jsonl"})["data"]
	same(t, "data of an export to a file", ok, false)
}

// A file of ordinary size is imported whole or not.
func TestAnImportThatFailsStoresNothing(t *testing.T) {
	on(t, func(t *testing.T, g *opened) {
		const text = `{"id":"a"}` + "\n" + `{"from":"a","type":"next","to":"b"}` + "\n" + `{"id":"c"}` + "\n"
		g.fails("import", object{"data": text + "{"}, tea.ValidationError, "line 4: not valid JSON: unexpected EOF (nothing was stored)")
		same(t, "entities", g.call("stats", object{})["entities"], int64(0))
		r := g.call("import", object{"data": text})
		same(t, "imported", []any{r["entities"], r["relations"], r["created_entities"]}, []any{int64(2), int64(1), int64(1)})
	})
}

// Of a larger one, the error says what is stored.
func TestAnImportThatFailsSaysWhatIsStored(t *testing.T) {
	t.Parallel()
	g := open(t, object{"backend": "memory", "path": t.TempDir()})
	var lines strings.Builder
	for i := range 9999 {
		fmt.Fprintf(&lines, `{"id":"e%d"}`+"\n", i)
	}
	g.fails("import", object{"data": lines.String() + "{"}, tea.ValidationError, "(nothing was stored)")
	same(t, "entities", g.call("stats", object{})["entities"], int64(0))
	lines.WriteString(`{"from":"e0","type":"next","to":"new"}` + "\n")
	g.fails("import", object{"data": lines.String() + "{"}, tea.ValidationError, "(9999 entities and 1 relations before it were stored; importing again replaces them)")
	same(t, "stored", g.call("stats", object{})["entities"], int64(10_000))
}

// Files of pandas and DuckDB have columns that can be null, lists and times.
func TestParquetOfOtherPrograms(t *testing.T) {
	t.Parallel()
	g, root := inRoot(t, "memory")
	type entity struct {
		ID        string    `parquet:"id"`
		Type      *string   `parquet:"type,optional"`
		Embedding []float64 `parquet:"embedding,list"`
		CreatedAt int64     `parquet:"created_at,timestamp(microsecond)"`
		Age       *int32    `parquet:"age,optional"`
		OK        bool      `parquet:"ok"`
		Tags      []string  `parquet:"tags,list"`
		Seen      int32     `parquet:"seen,date"`
		Score     float32   `parquet:"score"`
	}
	type relation struct {
		From   string `parquet:"from"`
		Type   string `parquet:"type"`
		To     string `parquet:"to"`
		Weight int64  `parquet:"weight"`
		Since  int64  `parquet:"since,timestamp(millisecond)"`
	}
	kind, age := "person", int32(-30)
	writeParquet(t, filepath.Join(root, "entities.parquet"),
		entity{ID: "ana", Type: &kind, Embedding: []float64{1, 0.5}, CreatedAt: 1577836800000000, Age: &age, OK: true, Tags: []string{"a", "b"}, Seen: 18262, Score: 0.5}, entity{ID: "bob"})
	writeParquet(t, filepath.Join(root, "relations.parquet"), relation{"ana", "knows", "bob", 2, 1577836800123})
	p := object{"path": ".", "format": "parquet"}
	g.call("import", p)
	e := g.call("get_entity", object{"entity_id": "ana", "include_embedding": true})["entity"].(object)
	same(t, "ana", []any{e["type"], e["created_at"], e["embedding"]}, []any{"person", "2020-01-01T00:00:00Z", []any{1.0, 0.5}})
	same(t, "properties", e["properties"], object{"age": int64(-30), "ok": true, "tags": []any{"a", "b"}, "seen": "2020-01-01", "score": 0.5})
	same(t, "what is null", g.propertiesOf("bob"), object{"ok": false, "tags": []any{}, "seen": "1970-01-01", "score": 0.0})
	relations := g.call("get_relations", object{"entity_id": "ana"})["relations"]
	same(t, "relation", []any{field(relations, "weight"), field(relations, "properties")}, []any{[]any{2.0}, []any{object{"since": "2020-01-01T00:00:00.123Z"}}})

	type unsigned struct {
		ID    uint32   `parquet:"id"`
		Small uint32   `parquet:"small"`
		Large uint64   `parquet:"large"`
		Bytes []uint32 `parquet:"bytes,list"`
	}
	type heavy struct {
		From   uint32 `parquet:"from"`
		Type   string `parquet:"type"`
		To     uint32 `parquet:"to"`
		Weight uint64 `parquet:"weight"`
	}
	writeParquet(t, filepath.Join(root, "entities.parquet"), unsigned{math.MaxUint32, 1 << 31, math.MaxUint64, []uint32{1, math.MaxUint32}})
	writeParquet(t, filepath.Join(root, "relations.parquet"), heavy{math.MaxUint32, "r", 1 << 31, 1 << 63})
	g.call("import", p)
	same(t, "unsigned integers", g.propertiesOf("4294967295"), object{"small": int64(1 << 31), "large": json.Number("18446744073709551615"), "bytes": []any{int64(1), int64(math.MaxUint32)}})
	same(t, "weight of an unsigned integer", field(g.call("get_relations", object{"entity_id": "2147483648"})["relations"], "weight"), []any{float64(1 << 63)})

	type nameless struct {
		Name string `parquet:"name"`
	}
	type nested struct {
		ID  string            `parquet:"id"`
		Map map[string]string `parquet:"map"`
	}
	type decimal struct {
		ID    string `parquet:"id"`
		Price int64  `parquet:"price,decimal(2:10)"`
	}
	writeParquet(t, filepath.Join(root, "entities.parquet"), nameless{"x"})
	g.fails("import", p, tea.ValidationError, `entities.parquet: the column "id" is missing; the columns are ["name"]`)
	writeParquet(t, filepath.Join(root, "entities.parquet"), nested{"x", map[string]string{"a": "b"}})
	g.fails("import", p, tea.ValidationError, `the column "map" has objects or lists of lists, which are not supported`)
	writeParquet(t, filepath.Join(root, "entities.parquet"), decimal{"x", 7})
	g.fails("import", p, tea.ValidationError, `entities.parquet: row 1: price: values of the type DECIMAL`)

	schema := parquet.NewSchema("entity", parquet.Group{"id": parquet.String(), "price": parquet.Decimal(2, 10, parquet.ByteArrayType)})
	var file bytes.Buffer
	w := parquet.NewWriter(&file, schema)
	_, err := w.WriteRows([]parquet.Row{{parquet.ByteArrayValue([]byte("x")).Level(0, 0, 0), parquet.ByteArrayValue([]byte{7}).Level(0, 0, 1)}})
	if err = errors.Join(err, w.Close(), os.WriteFile(filepath.Join(root, "entities.parquet"), file.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	g.fails("import", p, tea.ValidationError, `entities.parquet: row 1: price: values of the type DECIMAL`)
}

// The file was written by testdata/parquet/entities.py.
func TestParquetOfPyArrow(t *testing.T) {
	t.Parallel()
	g, root := inRoot(t, "memory")
	data, err := os.ReadFile("testdata/parquet/entities.parquet")
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "entities.parquet"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.call("import", object{"path": "entities.parquet"})
	same(t, "full", g.propertiesOf("full"), object{
		"scores": []any{1.5, nil, 2.0}, "words": []any{"a", nil}, "millis": "12:34:56.789", "micros": "12:34:56.789012",
		"half": -1.5, "largest": 65504.0, "uuid": "00000000-0000-0000-0000-000000000102",
	})
	same(t, "null", g.propertiesOf("null"), object{})
	same(t, "empty", g.propertiesOf("empty"), object{
		"scores": []any{}, "words": []any{}, "millis": "00:00:00", "micros": "00:00:00",
		"half": 0x1p-24, "largest": 0.0, "uuid": "00000000-0000-0000-0000-000000000000",
	})
}
