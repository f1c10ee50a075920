package storetest

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Driver runs the suites of all stores that are built on a driver. The first call
// of open in a test returns an empty database; each later call reopens the same
// database after it was closed. Config.Dir is a folder of the test.
func Driver(t *testing.T, open func(t *testing.T, c store.Config) (store.Driver, error)) {
	t.Helper()
	o := &driverStores{open: open}
	t.Run("LongTermMemory", func(t *testing.T) {
		var lacks []store.Capability
		d := o.stores(t, time.Now).driver
		_, indexed := d.(store.FileStore)
		if _, searches := d.(store.TextSearcher); !indexed && !searches {
			lacks = append(lacks, store.FullText)
		}
		LongTermMemory(t, func(t *testing.T, now func() time.Time) store.LongTermMemory { return o.stores(t, now).LongTerm }, lacks...)
	})
	t.Run("MetadataStore", func(t *testing.T) {
		MetadataStore(t, func(t *testing.T) store.MetadataStore { return o.stores(t, time.Now).Metadata })
	})
	t.Run("VectorIndex", func(t *testing.T) {
		VectorIndex(t, func(t *testing.T) store.VectorIndex { return o.stores(t, time.Now).Vectors })
	})
	t.Run("Replica", func(t *testing.T) {
		Replica(t, func(t *testing.T) store.Replica { return o.stores(t, time.Now).Replica })
	})
	t.Run("Context", func(t *testing.T) {
		Context(t, func(t *testing.T) *store.Stores { return o.stores(t, time.Now).Stores })
	})
	t.Run("BlobStorage", func(t *testing.T) {
		if _, ok := o.stores(t, time.Now).driver.(store.ContentStore); ok {
			BlobStorage(t, func(t *testing.T) store.BlobStorage { return o.stores(t, time.Now).Blobs })
		}
	})
}

// driverStores keeps one open database per test.
type driverStores struct {
	open   func(t *testing.T, c store.Config) (store.Driver, error)
	opened Opened[*opened]
	dirs   Dirs
}

type opened struct {
	*store.Stores
	driver store.Driver
	blobs  store.BlobStorage
}

func (o *opened) Close() error {
	return errors.Join(o.LongTerm.Close(), o.Vectors.Close(), o.Stores.Close(), store.CloseBlobs(o.blobs))
}

func (o *driverStores) stores(t *testing.T, now func() time.Time) *opened {
	t.Helper()
	return o.opened.Again(t, func() (*opened, error) {
		dir := o.dirs.Of(t)
		c := store.Config{Engine: "test", Dir: dir, Timeout: time.Minute, Language: "english", InlineBytes: 1024, Now: now, Logger: slog.New(slog.DiscardHandler)}
		d, err := o.open(t, c)
		if err != nil {
			return nil, err
		}
		if _, ok := d.(store.ContentStore); !ok {
			if c.Blobs, err = blob.Open(filepath.Join(dir, "blobs")); err != nil {
				return nil, errors.Join(err, d.Close())
			}
		}
		return &opened{records.Open(d, c), d, c.Blobs}, nil
	})
}
