package inspect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/sdk/diag"
)

// Formats are the names of what [Diagram.Draw] can draw.
func Formats() []string { return []string{"text", "json", "dot", "mermaid", "svg"} }

// Draw gives the diagram in a format. The error lists the formats.
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
		return d.svg(), nil
	}
	err := fmt.Errorf("the format %q is none of %s", format, strings.Join(Formats(), ", "))
	if hint := diag.Suggest(format, Formats()); hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	return nil, err
}

func (d *Diagram) json() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(d)
	return b.Bytes(), err
}

// numbering gives every node of a diagram and of the bodies inside an id that
// any format accepts.
type numbering struct{ next int }

func (n *numbering) of(d *Diagram) map[string]string {
	ids := map[string]string{}
	for _, name := range d.names() {
		ids[name] = fmt.Sprintf("n%d", n.next)
		n.next++
	}
	return ids
}

// names lists the ends and the nodes of a diagram that edges touch.
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
