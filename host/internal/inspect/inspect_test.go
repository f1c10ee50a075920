package inspect_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/graph"
	"github.com/the-edge-agent/tea/host/internal/inspect"
	"github.com/the-edge-agent/tea/host/internal/script"
	"github.com/the-edge-agent/tea/host/internal/spec"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func diagram(t *testing.T, text string) *inspect.Diagram {
	t.Helper()
	wf, diags := spec.Parse("every.yaml", []byte(text), spec.Options{})
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	lua := script.New(script.Options{})
	g, diags := graph.Compile(wf, graph.Env{Lua: lua})
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	return inspect.New(g)
}

// Every kind of node and edge in every format.
func TestGolden(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/every.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := diagram(t, string(text))
	for _, format := range append(inspect.Formats(), "svg-horizontal", "svg-horizontal-collapsed") {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			got, err := d.Draw(format)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "every."+format)
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// hostile has what each format must quote.
const hostile = `
name: "<q>\" & \\ ]\n"
nodes:
  - {name: 'a"b<c>&]', description: "|x|", run: "return {}", goto: [{if: '{{ state.x < 1 and "y|" }}', to: 'a"b<c>&]'}, {to: END}]}
`

func TestHostileNamesKeepSVGWellFormed(t *testing.T) {
	t.Parallel()
	svg, err := diagram(t, hostile).Draw("svg")
	if err != nil {
		t.Fatal(err)
	}
	for dec := xml.NewDecoder(bytes.NewReader(svg)); ; {
		_, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
}

func TestHostileNamesAreQuoted(t *testing.T) {
	t.Parallel()
	d := diagram(t, hostile)
	dot, err := d.Draw("dot")
	if err != nil {
		t.Fatal(err)
	}
	if want := `label="a\"b<c>&]\nlua"`; !strings.Contains(string(dot), want) {
		t.Errorf("DOT lacks %s:\n%s", want, dot)
	}
	mermaid, err := d.Draw("mermaid")
	if err != nil {
		t.Fatal(err)
	}
	if want := `["a#quot;b#lt;c#gt;#amp;]<br/>lua"]`; !strings.Contains(string(mermaid), want) {
		t.Errorf("Mermaid lacks %s:\n%s", want, mermaid)
	}
	var back inspect.Diagram
	raw, err := d.Draw("json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*d, back); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownFormat(t *testing.T) {
	t.Parallel()
	_, err := diagram(t, hostile).Draw("svgg")
	if err == nil || !strings.Contains(err.Error(), `did you mean "svg"`) {
		t.Errorf("err = %v", err)
	}
}

// A chain of many nodes is laid out in reasonable time, back edges included.
func TestLongChain(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("nodes:\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "  - {name: n%d}\n", i)
	}
	b.WriteString("  - {name: last, goto: [{if: 'false', to: n0}, {to: END}]}\n")
	if _, err := diagram(t, b.String()).Draw("svg"); err != nil {
		t.Fatal(err)
	}
}

// A node called end is not mistaken for the end.
func TestTextDistinguishesANodeFromTheEnd(t *testing.T) {
	t.Parallel()
	d := diagram(t, "nodes: [{name: a}, {name: end, goto: [{if: state.x, to: a}, {to: END}]}]")
	text, err := d.Draw("text")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"└─▶ end\n", "└─▶ __end__  otherwise\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// Branches that say the same say it once, and a long name is cut but in the title.
func TestSVGOfAWideFanOutStaysReadable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	long := strings.Repeat("long", 40)
	fmt.Fprintf(&b, "nodes:\n  - name: %s\n", long)
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf("w%d", i))
		fmt.Fprintf(&b, "  - name: w%d\n", i)
	}
	fmt.Fprintf(&b, "  - name: 日本語\nedges:\n  - {from: %s, parallel: [%s], fan_in: 日本語}\n", long, strings.Join(names, ", "))
	for _, name := range names {
		fmt.Fprintf(&b, "  - {from: %s, to: 日本語}\n", name)
	}
	svg, err := diagram(t, b.String()).Draw("svg")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(svg), ">parallel<"); n != 1 {
		t.Errorf("parallel stands there %d times", n)
	}
	if strings.Contains(string(svg), long+"</text>") || !strings.Contains(string(svg), `data-name="`+long+`"><title>`+long+`</title>`) {
		t.Error("the long name is not cut, or is not in the title")
	}
}
