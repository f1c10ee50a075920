//go:build !linux || !(amd64 || arm64) || lite

package kuzu

import (
	"context"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// Missing returns why the build cannot open a database.
func Missing() error {
	return tea.Errorf(tea.DependencyMissing, "this build of the graph plugin does not include the backend cypher: use the plugin for linux/amd64 or linux/arm64 that is not built with the tag lite, or set settings.graph.backend: memory")
}

// Installed reports whether the library is in its place.
func Installed() bool { return false }

// Open returns the error of [Missing].
func Open(context.Context, store.Options) (store.Store, error) { return nil, Missing() }
