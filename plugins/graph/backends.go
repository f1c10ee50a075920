package graph

import "github.com/the-edge-agent/tea/plugins/graph/internal/sqlite"

// backends are those of this build, the preferred one first.
func backends() []backend {
	return []backend{
		{name: "memory", open: sqlite.Open},
	}
}
