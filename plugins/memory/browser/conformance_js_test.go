package browser

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// openStores opens the database of a test.
func openStores(t *testing.T, now func() time.Time) *store.Stores {
	t.Helper()
	stores, err := open(t.Context(), store.Config{
		Options: []byte(`{"database":"` + t.Name() + `"}`), Now: now, Language: "english", InlineBytes: 1024, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return stores
}

// longTerm closes the database with the store.
type longTerm struct {
	store.LongTermMemory
	stores *store.Stores
}

func (l longTerm) Close() error {
	return errors.Join(l.LongTermMemory.Close(), l.stores.Close())
}

// vectorIndex closes the database with the store.
type vectorIndex struct {
	store.VectorIndex
	stores *store.Stores
}

func (v vectorIndex) Close() error {
	return errors.Join(v.VectorIndex.Close(), v.stores.Close())
}

// opened opens the database of a test again, after closing it.
type opened struct{ storetest.Opened[*handle] }

type handle struct{ *store.Stores }

func (h *handle) Close() error { return h.Stores.Close() }

func (o *opened) stores(t *testing.T) *store.Stores {
	t.Helper()
	return o.Again(t, func() (*handle, error) { return &handle{openStores(t, time.Now)}, nil }).Stores
}

func TestLongTermMemory(t *testing.T) {
	var opened storetest.Opened[longTerm]
	storetest.LongTermMemory(t, func(t *testing.T, now func() time.Time) store.LongTermMemory {
		return opened.Again(t, func() (longTerm, error) {
			stores := openStores(t, now)
			return longTerm{stores.LongTerm, stores}, nil
		})
	})
}

func TestMetadataStore(t *testing.T) {
	var o opened
	storetest.MetadataStore(t, func(t *testing.T) store.MetadataStore { return o.stores(t).Metadata })
}

func TestVectorIndex(t *testing.T) {
	var opened storetest.Opened[vectorIndex]
	storetest.VectorIndex(t, func(t *testing.T) store.VectorIndex {
		return opened.Again(t, func() (vectorIndex, error) {
			stores := openStores(t, time.Now)
			return vectorIndex{stores.Vectors, stores}, nil
		})
	})
}

func TestBlobStorage(t *testing.T) {
	var o opened
	storetest.BlobStorage(t, func(t *testing.T) store.BlobStorage { return o.stores(t).Blobs })
}

func TestReplica(t *testing.T) {
	var o opened
	storetest.Replica(t, func(t *testing.T) store.Replica { return o.stores(t).Replica })
}
