package spec

import (
	"strings"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/diag"
)

// overlay lays the overlays and the configuration over a document.
func (l *loader) overlay(root *source.Node) *source.Node {
	for _, file := range l.options.Overlays {
		data, err := l.read(file)
		if err != nil {
			l.diags.Errorf(diagcode.FileUnreadable, diag.Pos{File: file}, "", "cannot read the overlay: %v", withoutPath(err))
			continue
		}
		root = l.lay(root, file, data)
	}
	if l.options.Config != "" {
		root = l.lay(root, ConfigFile, []byte(l.options.Config))
	}
	return root
}

func (l *loader) lay(root *source.Node, file string, data []byte) *source.Node {
	over := source.Parse(file, data, l.diags)
	switch {
	case over == nil:
		return root
	case over.Kind != source.Map:
		l.diags.Errorf(diagcode.DocumentNoMapping, over.Pos(""), "write it like a workflow: with keys such as nodes: and config:", "the overlay is %s, not a mapping", over.Kind)
		return root
	}
	merger := source.Merger{Identity: identities, NameKey: "name", Spelling: theGrammar().node.canonical, Diags: l.diags}
	return merger.Merge(root, over)
}

// identities tell which nodes and which edges of an overlay are those of the
// file: nodes have one name, edges one source and the same targets.
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
