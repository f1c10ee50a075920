//go:build !linux || !(amd64 || arm64) || lite

package kuzu

import (
	"context"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// Open is the backend's opener in a build that cannot load its library.
func Open(context.Context, store.Options) (store.Store, error) {
	return nil, tea.Errorf(tea.DependencyMissing, "this build of the graph plugin does not have the backend cypher: use the plugin for linux/amd64 or linux/arm64 that is not built with the tag lite, or set settings.graph.backend: memory")
}
