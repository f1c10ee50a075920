package inspect

import (
	"bytes"
	"fmt"
	"strings"
)

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

// labels are the lines in a node's box.
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
