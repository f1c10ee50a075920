package storekit_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// files has a file for each test.
type files struct{ dirs storetest.Dirs }

func (f *files) open(t *testing.T, now func() time.Time) *store.Stores {
	t.Helper()
	dir := f.dirs.Of(t)
	blobs, err := blob.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blobs.Close() })
	stores, err := openJSON(t.Context(), store.Config{URL: "jsonfile:" + filepath.ToSlash(filepath.Join(dir, "memory.json")), Now: now, InlineBytes: 1024, Blobs: blobs})
	if err != nil {
		t.Fatal(err)
	}
	return stores
}

func TestLongTermMemory(t *testing.T) {
	t.Parallel()
	var f files
	var opened storetest.Opened[store.LongTermMemory]
	storetest.LongTermMemory(t, func(t *testing.T, now func() time.Time) store.LongTermMemory {
		return opened.Again(t, func() (store.LongTermMemory, error) { return f.open(t, now).LongTerm, nil })
	}, store.FullText)
}

func TestMetadataStore(t *testing.T) {
	t.Parallel()
	var f files
	storetest.MetadataStore(t, func(t *testing.T) store.MetadataStore { return f.open(t, time.Now).Metadata })
}

func TestVectorIndex(t *testing.T) {
	t.Parallel()
	var f files
	var opened storetest.Opened[store.VectorIndex]
	storetest.VectorIndex(t, func(t *testing.T) store.VectorIndex {
		return opened.Again(t, func() (store.VectorIndex, error) { return f.open(t, time.Now).Vectors, nil })
	})
}

// A context is assembled without full-text search.
func TestContext(t *testing.T) {
	t.Parallel()
	var f files
	storetest.Context(t, func(t *testing.T) *store.Stores { return f.open(t, time.Now) })
}
