package inspect_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host/internal/inspect"
)

func cytoscape(nodes, edges []string) []byte {
	return []byte(`{"elements":{"nodes":[` + strings.Join(nodes, ",") + `],"edges":[` + strings.Join(edges, ",") + `]}}`)
}

func TestAGraphOfEntitiesIsDrawn(t *testing.T) {
	t.Parallel()
	d, err := inspect.FromCytoscape("plant.cyjs", cytoscape(
		[]string{
			`{"data":{"id":"pump-1","label":"pump-1","type":"pump","properties":{"bar":3}}}`, `{"data":{"id":"__start__","type":"room"}}`,
			`{"data":{"id":"<script>alert(1)</script>\u0000\u202e\"' & ünï 水 ]]>","type":"</style><a href='x'>"}}`, `{"data":{"id":"alone","type":"pump"}}`,
		},
		[]string{
			`{"data":{"source":"pump-1","target":"__start__","type":"feeds","weight":1}}`, `{"data":{"source":"pump-1","target":"__start__","type":"feeds"}}`,
			`{"data":{"source":"__start__","target":"pump-1","type":"<b>"}}`, `{"data":{"source":"alone","target":"alone","type":"knows"}}`,
		},
	))
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range inspect.Formats() {
		got, err := d.Draw(format)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"pump-1", "feeds", "room", "水"} {
			if !strings.Contains(string(got), want) {
				t.Errorf("%s has no %q:\n%s", format, want, got)
			}
		}
		if format != "svg" {
			continue
		}
		if n := strings.Count(string(got), ">feeds<"); n != 1 {
			t.Errorf("the relation is drawn %d times", n)
		}
		if n := strings.Count(string(got), `<g class="type0">`); n != 2 {
			t.Errorf("%d pumps have their colour", n)
		}
		elements := map[string]bool{}
		for decoder := xml.NewDecoder(strings.NewReader(string(got))); ; {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := token.(xml.StartElement); ok {
				elements[e.Name.Local] = true
			}
		}
		if elements["script"] || elements["a"] || elements["b"] {
			t.Errorf("a name became an element: %v", elements)
		}
	}
}

func TestGraphsThatAreNotDrawn(t *testing.T) {
	t.Parallel()
	var many, dense []string
	for i := range 301 {
		many = append(many, fmt.Sprintf(`{"data":{"id":"n%d","type":"t"}}`, i))
	}
	for i := range 1001 {
		dense = append(dense, fmt.Sprintf(`{"data":{"source":"n0","target":"n1","type":"t%d"}}`, i))
	}
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"no JSON":      {[]byte("nodes: []"), "read the graph in g.cyjs"},
		"other JSON":   {[]byte(`{"nodes":[]}`), "is not a graph in the JSON of Cytoscape"},
		"a lost end":   {cytoscape(many[:1], []string{`{"data":{"source":"n0","target":"x","type":"t"}}`}), `"x" is not in the file`},
		"twice one id": {cytoscape([]string{many[0], many[0]}, nil), `two nodes with the id "n0"`},
		"many nodes":   {cytoscape(many, nil), "301 nodes and 0 edges; a drawing has at most 300 and 1000"},
		"many edges":   {cytoscape(many[:2], dense), "export a part of the graph"},
	} {
		if _, err := inspect.FromCytoscape("g.cyjs", c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The largest graph is drawn in linear space: each edge passes through lanes.
func TestTheLargestGraphIsDrawn(t *testing.T) {
	t.Parallel()
	var nodes, edges []string
	for i := range 300 {
		nodes = append(nodes, fmt.Sprintf(`{"data":{"id":"n%d","type":"t%d"}}`, i, i%9))
	}
	for i := range 1000 {
		edges = append(edges, fmt.Sprintf(`{"data":{"source":"n%d","target":"n%d","type":"r%d"}}`, i%300, (i*31+i/300*17)%300, i%5))
	}
	d, err := inspect.FromCytoscape("g.cyjs", cytoscape(nodes, edges))
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Draw("svg")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(got))
	if n := strings.Count(string(got), `<path class="edge`); n != len(d.Edges) || len(got) > 8<<20 {
		t.Errorf("%d edges in %d bytes", n, len(got))
	}
}
