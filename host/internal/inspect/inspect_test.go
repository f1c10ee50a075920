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

var update = flag.Bool("update", false, "write the golden files anew")

func diagram(t *testing.T, text string) *inspect.Diagram {
	t.Helper()
	wf, diags := spec.Parse("every.yaml", []byte(text), spec.Options{})
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	lua := script.New(script.Options{})
	t.Cleanup(lua.Close)
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
	for _, format := range inspect.Formats() {
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
