package manifest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/devicetest"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/manifest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// betweenPages calls a function after the first page of records was read.
type betweenPages struct {
	store.MetadataStore
	then func()
}

func (b *betweenPages) Query(ctx context.Context, q store.DocumentQuery) ([]store.Document, error) {
	found, err := b.MetadataStore.Query(ctx, q)
	if then := b.then; then != nil && q.Kind == manifest.Kind && q.OrderBy == "id" {
		b.then = nil
		then()
	}
	return found, err
}

// TestChangesWhileAParquetFileIsWritten are in the next one.
func TestChangesWhileAParquetFileIsWritten(t *testing.T) {
	t.Parallel()
	if !duckdb.Available {
		t.Skip("this build has no DuckDB")
	}
	e, err := engine.Open(t.Context(), engine.Options{Dir: t.TempDir(), Driver: sqlite.Driver{}})
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := blob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = blobs.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	now := clock.New()
	docs := &betweenPages{MetadataStore: devicetest.Documents(e)}
	files := &manifest.Manifest{Documents: docs, Blobs: blobs, Base: "/", Clock: now}
	set := func(path, content string) {
		t.Helper()
		if _, err := files.Store(t.Context(), path, []byte(content), nil); err != nil {
			t.Fatal(err)
		}
	}
	const last = 501 // on the second page
	for n := range last {
		set(fmt.Sprintf("%03d", n), "1")
	}
	docs.then = func() {
		set("000", "2")
		set("500", "2") // with a later number, and read after it
	}
	tables := catalog.New(docs, now)
	if _, err := files.SyncParquet(t.Context(), tables, ""); err != nil {
		t.Fatal(err)
	}
	s, err := files.SyncParquet(t.Context(), tables, "")
	if err != nil {
		t.Fatal(err)
	}
	if s.Changed < 1 {
		t.Errorf("the change of 000 is missing: %d files were changed", s.Changed)
	}
}
