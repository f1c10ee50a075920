package keyed_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/keyed"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// databases has a database for each test.
type databases struct {
	mu     sync.Mutex
	byTest map[string]*memoryDB
}

func (d *databases) open(t *testing.T, now func() time.Time) *store.Stores {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byTest == nil {
		d.byTest = map[string]*memoryDB{}
	}
	if d.byTest[t.Name()] == nil {
		d.byTest[t.Name()] = newMemoryDB()
	}
	opened := records.Open(keyed.Open(keyed.Options{DB: d.byTest[t.Name()], Now: now, InlineBytes: 1024}), store.Config{Now: now, Language: "english", InlineBytes: 1024, Logger: slog.New(slog.DiscardHandler)})
	return opened
}

func TestLongTermMemory(t *testing.T) {
	t.Parallel()
	var d databases
	var opened storetest.Opened[store.LongTermMemory]
	storetest.LongTermMemory(t, func(t *testing.T, now func() time.Time) store.LongTermMemory {
		return opened.Again(t, func() (store.LongTermMemory, error) { return d.open(t, now).LongTerm, nil })
	})
}

func TestMetadataStore(t *testing.T) {
	t.Parallel()
	var d databases
	storetest.MetadataStore(t, func(t *testing.T) store.MetadataStore { return d.open(t, time.Now).Metadata })
}

func TestVectorIndex(t *testing.T) {
	t.Parallel()
	var d databases
	var opened storetest.Opened[store.VectorIndex]
	storetest.VectorIndex(t, func(t *testing.T) store.VectorIndex {
		return opened.Again(t, func() (store.VectorIndex, error) { return d.open(t, time.Now).Vectors, nil })
	})
}

func TestBlobStorage(t *testing.T) {
	t.Parallel()
	var d databases
	storetest.BlobStorage(t, func(t *testing.T) store.BlobStorage { return d.open(t, time.Now).Blobs })
}

func TestReplica(t *testing.T) {
	t.Parallel()
	var d databases
	storetest.Replica(t, func(t *testing.T) store.Replica { return d.open(t, time.Now).Replica })
}

func TestContext(t *testing.T) {
	t.Parallel()
	var d databases
	storetest.Context(t, func(t *testing.T) *store.Stores { return d.open(t, time.Now) })
}
