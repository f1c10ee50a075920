package embedded_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/embedded"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// withContents is a driver that also stores the contents of files, and closes its database.
type withContents struct {
	*embedded.Driver
	engine *engine.Engine
	blobs  *blob.Folder
}

func (d *withContents) Contents() store.BlobStorage { return d.blobs }

func (d *withContents) Close() error {
	return errors.Join(d.Driver.Close(), d.engine.Close(), d.blobs.Close())
}

func TestDriverConformance(t *testing.T) {
	devicetest.EachDriver(t, func(t *testing.T, driver engine.Driver) {
		storetest.Driver(t, func(t *testing.T, c store.Config) (store.Driver, error) {
			e, err := engine.Open(t.Context(), engine.Options{Dir: c.Dir, Driver: driver})
			if err != nil {
				return nil, err
			}
			blobs, err := blob.Open(filepath.Join(c.Dir, "blobs"))
			if err != nil {
				return nil, errors.Join(err, e.Close())
			}
			c.Blobs = blobs
			return &withContents{embedded.New(e, c, vector.Options{}), e, blobs}, nil
		})
	})
}

func TestVectorIndexConformanceOfGraphs(t *testing.T) {
	devicetest.EachDriver(t, func(t *testing.T, driver engine.Driver) {
		var opened storetest.Opened[*devicetest.Memory]
		var dirs storetest.Dirs
		storetest.VectorIndex(t, func(t *testing.T) store.VectorIndex {
			return opened.Again(t, func() (*devicetest.Memory, error) {
				return devicetest.OpenMemory(t.Context(), driver, store.Config{Dir: dirs.Of(t)}, vector.Options{Exact: -1, EfSearch: 1000})
			}).Vectors
		})
	})
}
