package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Formats returns the names of the formats of [Diagram.Draw]. -horizontal can be appended to
// svg for a drawing from left to right, and -collapsed for one without the insides of nodes.
func Formats() []string { return []string{"text", "json", "dot", "mermaid", "svg"} }

// Draw renders the diagram in a format. The error of an unknown format lists
// the formats.
func (d *Diagram) Draw(format string) ([]byte, error) {
	switch format {
	case "text":
		return d.text(), nil
	case "json":
		return d.json()
	case "dot":
		return d.dot(), nil
	case "mermaid":
		return d.mermaid(), nil
	case "svg":
		return d.svg(false), nil
	case "svg-horizontal":
		return d.svg(true), nil
	case "svg-collapsed":
		return d.collapsed().svg(false), nil
	case "svg-horizontal-collapsed":
		return d.collapsed().svg(true), nil
	}
	return nil, fmt.Errorf("unknown format %q: use one of %s%s", format, strings.Join(Formats(), ", "), diag.Ending(format, Formats()))
}

func (d *Diagram) json() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(d)
	return b.Bytes(), err
}

// numbering assigns an id that is valid in any format to every node of a diagram
// and of the bodies inside.
type numbering struct{ next int }

func (n *numbering) of(d *Diagram) map[string]string {
	ids := map[string]string{}
	for _, name := range d.names() {
		ids[name] = fmt.Sprintf("n%d", n.next)
		n.next++
	}
	return ids
}

// names returns the ends and the nodes of a diagram that have edges.
func (d *Diagram) names() []string {
	touched := map[string]bool{}
	for _, e := range d.Edges {
		touched[e.From], touched[e.To] = true, true
	}
	var names []string
	if touched[start] {
		names = append(names, start)
	}
	for _, n := range d.Nodes {
		names = append(names, n.Name)
	}
	if touched[end] {
		names = append(names, end)
	}
	return names
}

// dot draws for Graphviz.
func (d *Diagram) dot() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "digraph %s {\n", dotQuote(d.Name))
	b.WriteString("  rankdir=TB;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n")
	d.dotInside(&b, &numbering{}, "  ")
	b.WriteString("}\n")
	return b.Bytes()
}

// dotInside draws the nodes and edges; a body becomes a cluster.
func (d *Diagram) dotInside(b *bytes.Buffer, num *numbering, indent string) {
	ids := num.of(d)
	for _, name := range []string{start, end} {
		if id, ok := ids[name]; ok {
			fmt.Fprintf(b, "%s%s [label=%s, shape=circle, style=filled];\n", indent, id, dotQuote(endName(name)))
		}
	}
	for _, n := range d.Nodes {
		id := ids[n.Name]
		if n.Body == nil {
			fmt.Fprintf(b, "%s%s [label=%s];\n", indent, id, dotQuote(strings.Join(n.labels(), "\n")))
			continue
		}
		fmt.Fprintf(b, "%ssubgraph cluster_%s {\n%s  label=%s;\n", indent, id, indent, dotQuote(strings.Join(n.labels(), " - ")))
		fmt.Fprintf(b, "%s  %s [label=%s, shape=plaintext];\n", indent, id, dotQuote(n.Name))
		n.Body.dotInside(b, num, indent+"  ")
		fmt.Fprintf(b, "%s}\n", indent)
	}
	for _, e := range d.Edges {
		fmt.Fprintf(b, "%s%s -> %s [label=%s%s];\n", indent, ids[e.From], ids[e.To], dotQuote(e.about()), dotStyle(e.Kind))
	}
}

func dotStyle(kind string) string {
	switch kind {
	case parallel, each:
		return ", style=bold"
	case fallback, repeat:
		return ", style=dashed"
	}
	return ""
}

// labels returns the lines in a node's box.
func (n *Node) labels() []string {
	lines := []string{oneLine(n.Name), n.what()}
	for _, step := range n.Steps {
		lines = append(lines, "• "+step.Name+": "+step.what())
	}
	if n.If != "" {
		lines = append(lines, "if "+n.If)
	}
	return append(lines, n.Notes...)
}

func dotQuote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", "").Replace(text) + `"`
}

// mermaid draws a flowchart.
func (d *Diagram) mermaid() []byte {
	var b bytes.Buffer
	b.WriteString("flowchart TD\n")
	d.mermaidInside(&b, &numbering{}, "  ")
	return b.Bytes()
}

func (d *Diagram) mermaidInside(b *bytes.Buffer, num *numbering, indent string) {
	ids := num.of(d)
	for _, name := range []string{start, end} {
		if id, ok := ids[name]; ok {
			fmt.Fprintf(b, "%s%s((%s))\n", indent, id, mermaidQuote(endName(name)))
		}
	}
	for _, n := range d.Nodes {
		id := ids[n.Name]
		if n.Body == nil {
			fmt.Fprintf(b, "%s%s[%s]\n", indent, id, mermaidQuote(strings.Join(n.labels(), "\n")))
			continue
		}
		fmt.Fprintf(b, "%ssubgraph %s[%s]\n", indent, id, mermaidQuote(strings.Join(n.labels(), "\n")))
		n.Body.mermaidInside(b, num, indent+"  ")
		fmt.Fprintf(b, "%send\n", indent)
	}
	for _, e := range d.Edges {
		arrow := "-->"
		switch e.Kind {
		case parallel, each:
			arrow = "==>"
		case fallback, repeat:
			arrow = "-.->"
		}
		if about := e.about(); about != "" {
			arrow += "|" + mermaidQuote(about) + "|"
		}
		fmt.Fprintf(b, "%s%s %s %s\n", indent, ids[e.From], arrow, ids[e.To])
	}
}

// mermaidQuote escapes special characters in labels as entities.
func mermaidQuote(text string) string {
	return `"` + strings.NewReplacer("&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "#", "#35;", "\n", "<br/>").Replace(text) + `"`
}
