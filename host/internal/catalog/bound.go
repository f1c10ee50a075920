package catalog

import (
	"context"
	"errors"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Bound is a view of a catalog that opens the bundles with other settings. It is
// safe for concurrent use. The caller must close it.
type Bound struct {
	*Catalog
	settings map[string]any

	mu      sync.Mutex
	sources map[*source]*source
}

// Bind returns a view of the catalog with other settings.
func (c *Catalog) Bind(settings map[string]any) *Bound {
	return &Bound{Catalog: c, settings: settings, sources: map[*source]*source{}}
}

// Invoke calls an action. It sets req.Action to the action's canonical name.
func (b *Bound) Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	e := b.callable(ctx, req.Action)
	if e == nil {
		return b.Catalog.Invoke(ctx, req)
	}
	return b.invoke(ctx, e, b.source(e.source), req)
}

func (b *Bound) source(s *source) *source {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sources[s] == nil {
		b.sources[s] = &source{name: s.name, open: s.open, settings: b.settings}
	}
	return b.sources[s]
}

// Close closes only the bundles that were opened for these settings.
func (b *Bound) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all error
	for _, s := range b.sources {
		all = errors.Join(all, s.release(true))
	}
	return all
}
