package inspect

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/host/internal/spec"
)

const (
	start = spec.Start
	end   = spec.End
)

// text draws each node with the arrows that leave it.
func (d *Diagram) text() []byte {
	var b bytes.Buffer
	b.WriteString(d.Name)
	if d.Description != "" {
		b.WriteString(": " + oneLine(d.Description))
	}
	b.WriteString("\n\n")
	d.outline(&b, "")
	return b.Bytes()
}

func (d *Diagram) outline(b *bytes.Buffer, indent string) {
	if slices.ContainsFunc(d.Edges, func(e Edge) bool { return e.From == start }) {
		fmt.Fprintf(b, "%s%s\n", indent, d.called(start))
		d.arrows(b, indent, start)
	}
	for _, n := range d.Nodes {
		n.outline(b, indent)
		d.arrows(b, indent, n.Name)
	}
}

func (n *Node) outline(b *bytes.Buffer, indent string) {
	fmt.Fprintf(b, "%s%s  [%s]", indent, n.Name, strings.Join(append([]string{n.what()}, n.Notes...), ", "))
	if n.Description != "" {
		b.WriteString("  " + oneLine(n.Description))
	}
	b.WriteByte('\n')
	if n.If != "" {
		fmt.Fprintf(b, "%s    if %s\n", indent, n.If)
	}
	for i := range n.Steps {
		n.Steps[i].outline(b, indent+"    ")
	}
	if n.Body != nil {
		n.Body.outline(b, indent+"    ")
	}
}

func (d *Diagram) arrows(b *bytes.Buffer, indent, from string) {
	var leaving []Edge
	width := 0
	for _, e := range d.Edges {
		if e.From == from {
			leaving = append(leaving, e)
			width = max(width, utf8.RuneCountInString(d.called(e.To)))
		}
	}
	for i, e := range leaving {
		joint := "├─"
		if i == len(leaving)-1 {
			joint = "└─"
		}
		arrow := "▶"
		if e.Kind == parallel || e.Kind == each {
			arrow = "▶▶"
		}
		line := fmt.Sprintf("%s  %s%s %s", indent, joint, arrow, d.called(e.To))
		if about := e.about(); about != "" {
			line += strings.Repeat(" ", width-utf8.RuneCountInString(d.called(e.To))) + "  " + about
		}
		b.WriteString(line + "\n")
	}
}

// about returns an arrow's label with a word for its kind.
func (e Edge) about() string {
	switch {
	case e.Kind == when || e.Kind == jump && e.Label != "" && e.Label != otherwise:
		return "when " + e.Label
	case e.Kind == choice && e.Label != otherwise:
		return "on " + e.Label
	case e.Kind == parallel && e.Label != "":
		return "parallel, when " + e.Label
	case e.Kind == parallel:
		return "parallel"
	case e.Kind == each:
		return "with all results"
	}
	return e.Label
}

// called returns endName unless a node of the diagram has that name.
func (d *Diagram) called(name string) string {
	plain := endName(name)
	if plain != name && slices.ContainsFunc(d.Nodes, func(n Node) bool { return n.Name == plain }) {
		return name
	}
	return plain
}

// endName returns a node's name, or plain words for the ends of the graph.
func endName(name string) string {
	switch name {
	case start:
		return "start"
	case end:
		return "end"
	}
	return name
}
