package graph

import (
	"context"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"

	"github.com/the-edge-agent/tea/plugins/graph/internal/kuzu"
)

const version = "0.1.0"

// Bundle is the set of actions, for serve.Main or for linking into a host. Instances
// of a bundle with the same folder share its database. Options add object storage.
func Bundle(with ...Option) tea.Bundle {
	shared := &databases{open: map[string]*database{}, options: &options{}}
	for _, option := range with {
		option(shared.options)
	}
	return tea.Bundle{
		Name:        "graph",
		Version:     version,
		Description: "A knowledge graph: entities and relations, traversals, search, algorithms and facts that change over time.",
		Settings: map[string]*schema.Schema{
			settingsKey:    schema.Of[Settings](),
			fileKey:        schema.Of[FileSettings](),
			backendKey:     backendSchema(),
			backendTypeKey: backendSchema(),
			pathKey:        pathSchema(),
			storageKey:     storageSchema(),
		},
		Env:       append(shared.options.env(), kuzu.LibraryVariable),
		Exclusive: []string{settingsKey + ".path", pathKey},
		Open:      func(ctx context.Context, s tea.Settings) (any, error) { return shared.take(ctx, s) },
		Actions: slices.Concat(
			entityActions(),
			relationActions(),
			traverseActions(),
			searchActions(),
			algorithmActions(),
			statsActions(),
			queryActions(),
			backupActions(),
			transferActions(),
			extractActions(),
		),
	}
}
