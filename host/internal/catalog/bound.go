package catalog

import (
	"context"
	"errors"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Bound is a catalog whose bundles are opened again, for other settings. It is
// safe for concurrent use; the caller closes it.
type Bound struct {
	*Catalog
	settings map[string]any

	mu      sync.Mutex
	sources map[*source]*source
}

// Bind returns the catalog for other settings.
func (c *Catalog) Bind(settings map[string]any) *Bound {
	return &Bound{Catalog: c, settings: settings, sources: map[*source]*source{}}
}

// Invoke calls an action. The name it was called by becomes its own.
func (b *Bound) Invoke(ctx context.Context, req *tea.Request) (*tea.Response, error) {
	e := b.find(ctx, req.Action)
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

// Close closes the bundles that were opened for these settings, and no others.
func (b *Bound) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all error
	for _, s := range b.sources {
		all = errors.Join(all, s.close())
	}
	return all
}
