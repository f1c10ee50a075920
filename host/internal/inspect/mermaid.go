package inspect

import (
	"bytes"
	"fmt"
	"strings"
)

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

// mermaidQuote writes what is special in labels as entities.
func mermaidQuote(text string) string {
	return `"` + strings.NewReplacer("&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "#", "#35;", "\n", "<br/>").Replace(text) + `"`
}
