package graph

import (
	"github.com/the-edge-agent/tea/plugins/graph/internal/cozo"
	"github.com/the-edge-agent/tea/plugins/graph/internal/kuzu"
	"github.com/the-edge-agent/tea/plugins/graph/internal/sqlite"
)

// backends are those of this build, the preferred one first.
func backends() []backend {
	return []backend{
		{name: "cozo", open: cozo.Open, missing: cozo.Missing()},
		{name: "memory", open: sqlite.Open},
		{name: "cypher", open: kuzu.Open, missing: kuzu.Missing(), installed: kuzu.Installed},
	}
}

// Available returns the names of the backends that this build can open on this
// machine.
func Available() []string {
	var names []string
	for _, b := range backends() {
		if b.missing == nil && (b.installed == nil || b.installed()) {
			names = append(names, string(b.name))
		}
	}
	return names
}
