// Package objects adapts the schemes of package objstore to the graph.
package objects

import (
	"context"

	"github.com/the-edge-agent/tea/objstore"
	"github.com/the-edge-agent/tea/plugins/graph"
)

// Option makes addresses of a scheme usable as settings.graph.storage.
func Option(scheme objstore.Scheme) graph.Option {
	return graph.WithObjects(graph.Objects{Schemes: scheme.Names, Env: scheme.Env, Open: func(ctx context.Context, address string, settings objstore.Settings) (graph.Bucket, error) {
		bucket, err := objstore.Open(ctx, address, settings, scheme)
		if err != nil {
			return nil, err
		}
		return bucket, nil
	}})
}
