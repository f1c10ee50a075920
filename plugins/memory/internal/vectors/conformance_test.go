package vectors_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// backend is an index that closes its engine.
type backend struct {
	*vectors.Index
	engine *engine.Engine
}

func (b *backend) Close() error { return errors.Join(b.Index.Close(), b.engine.Close()) }

func TestVectorIndexConformance(t *testing.T) {
	t.Parallel()
	for name, search := range map[string]vector.Options{"exact": {}, "graph": {Exact: -1, EfSearch: 1000}} {
		t.Run(name, func(t *testing.T) {
			devicetest.EachDriver(t, func(t *testing.T, driver engine.Driver) {
				var opened storetest.Opened[*backend]
				var dirs storetest.Dirs
				storetest.VectorIndex(t, func(t *testing.T) store.VectorIndex {
					return opened.Again(t, func() (*backend, error) {
						dir := dirs.Of(t)
						e, err := engine.Open(t.Context(), engine.Options{Dir: dir, Driver: driver})
						if err != nil {
							return nil, err
						}
						return &backend{vectors.New(vectors.Options{Engine: e, Dir: filepath.Join(dir, "vectors"), Search: search}), e}, nil
					})
				})
			})
		})
	}
}
