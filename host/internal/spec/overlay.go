package spec

import (
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// overlay applies the overlays and the configuration to a document.
func (l *loader) overlay(root *source.Node) *source.Node {
	for _, file := range l.options.Overlays {
		data, err := l.read(file)
		if err != nil {
			l.diags.Errorf(diagcode.FileUnreadable, diag.Pos{File: file}, "", "cannot read the overlay %s: %v", l.shown(file), withoutPath(err))
			continue
		}
		root = l.addOverlay(root, file, data)
	}
	if l.options.Config != "" {
		root = l.addOverlay(root, ConfigFile, []byte(l.options.Config))
	}
	return root
}

func (l *loader) addOverlay(root *source.Node, file string, data []byte) *source.Node {
	var found diag.List
	over := source.Parse(file, data, &found)
	if len(found) == 1 && found[0].Code == diagcode.FileEmpty {
		return root // the overlay has only comments
	}
	*l.diags = append(*l.diags, found...)
	switch {
	case over == nil:
		return root
	case over.Kind != source.Map:
		l.diags.Errorf(diagcode.DocumentNoMapping, over.Pos(""), "write it like a workflow: with keys such as nodes: and config:", "the overlay is %s, not a mapping", over.Kind)
		return root
	}
	merger := source.Merger{Identity: identities, NameKey: "name", Spelling: theGrammar().node.canonical, Diags: l.diags}
	merger.Deleted = func(list string, element, over *source.Node) {
		if list == "edges" {
			l.deleted = append(l.deleted, deletedEdge{element, over.Pos("")})
		}
	}
	return merger.Merge(root, over)
}

// deletedEdge is an edge that an overlay removed.
type deletedEdge struct {
	edge *source.Node
	pos  diag.Pos
}

// chainedAgain warns of deleted edges that have no effect, because a node without
// edges and goto continues with the next one in the list.
func (l *loader) chainedAgain(w *Workflow) {
	for _, d := range l.deleted {
		from := canonicalName(nodeText(d.edge.Get("from")))
		next, ok := w.implicitNext(from)
		if !ok {
			continue
		}
		for _, key := range []string{"to", "parallel"} {
			targets := d.edge.Get(key)
			if targets == nil {
				continue
			}
			for _, to := range append([]*source.Node{targets}, targets.Items...) {
				if canonicalName(nodeText(to)) == next {
					l.diags.Warnf(diagcode.BadDelete, d.pos, "write a goto: at the node, or another edge from it",
						"deleting the edge from %q to %q changes nothing: without an edge the run continues with the next node of the list, %q", from, next, next)
				}
			}
		}
	}
}

func nodeText(n *source.Node) string {
	if n == nil || n.Kind != source.String {
		return ""
	}
	return n.Text
}

// implicitNext returns the node that follows a node, or START, by implicit
// chaining.
func (w *Workflow) implicitNext(from string) (next string, ok bool) {
	for _, e := range w.Edges {
		if canonicalName(e.From.Value) == from {
			return "", false
		}
	}
	if from == Start && len(w.Nodes) > 0 {
		return w.Nodes[0].Name, true
	}
	for i, n := range w.Nodes {
		switch {
		case n.Name != from:
		case len(n.Goto) > 0:
			return "", false
		case i+1 < len(w.Nodes):
			return w.Nodes[i+1].Name, true
		default:
			return End, true
		}
	}
	return "", false
}

// identities match nodes and edges of an overlay with those of the file: nodes by
// name, edges by source and targets.
var identities = map[string]func(*source.Node) string{"nodes": nameOf, "edges": edgeIdentity}

func edgeIdentity(edge *source.Node) string {
	var parts []string
	for _, key := range []string{"from", "to", "parallel"} {
		n := edge.Get(key)
		if n == nil {
			continue
		}
		if n.Kind != source.List {
			parts = append(parts, canonicalName(n.Text))
		}
		for _, item := range n.Items {
			parts = append(parts, canonicalName(item.Text))
		}
	}
	return strings.Join(parts, "\x00")
}
