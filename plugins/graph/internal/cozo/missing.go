//go:build !cozo || !cgo

package cozo

import (
	"context"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// Missing returns why this build cannot open a database.
func Missing() error {
	return tea.Errorf(tea.DependencyMissing, "this build of the graph plugin does not include the backend cozo; use the plugin of a release for linux/amd64 or linux/arm64, or build it where cargo and a C compiler are installed: scripts/build in the source of tea, or tea build --with graph[cozo]")
}

// Open fails: this build does not include the backend.
func Open(context.Context, store.Options) (store.Store, error) { return nil, Missing() }
