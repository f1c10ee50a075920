package memory

import (
	"context"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Bundle is the set of actions, for serve.Main or to be linked into a host.
// Instances of one bundle that have the same folder share its database.
func Bundle() tea.Bundle {
	shared := newFolders()
	return tea.Bundle{
		Name:        "memory",
		Version:     "0.1.0",
		Description: "What an agent remembers: short-term and long-term memory, vectors, sessions, files, tables, context; in one embedded database.",
		Settings: map[string]*schema.Schema{
			memoryKey: schema.Of[Settings](),
			ltmKey:    schema.Of[LTMSettings](),
			vectorKey: schema.Of[VectorSettings](),
		},
		Open: func(ctx context.Context, settings tea.Settings) (any, error) { return shared.open(ctx, settings) },
		Actions: slices.Concat(
			shortTermActions(),
			summarizeActions(),
			ltmActions(),
			vectorActions(),
			recallActions(),
			contextActions(),
			sessionActions(),
			fileActions(),
			searchActions(),
			catalogActions(),
			dataActions(),
			sqlActions(),
			maintenanceActions(),
		),
	}
}
