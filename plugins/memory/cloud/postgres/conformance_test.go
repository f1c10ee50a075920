package postgres

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/pgtest"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

var (
	server pgtest.Shared
	// pgvector has the extension vector.
	pgvector = pgtest.Shared{Pgvector: true}
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := errors.Join(server.Stop(), pgvector.Stop()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func configOf(t testing.TB, now func() time.Time) store.Config {
	t.Helper()
	return configFor(server.URL(t), server.Schema(t), now)
}

func configFor(url, schema string, now func() time.Time) store.Config {
	return store.Config{
		URL: url, Options: fmt.Appendf(nil, `{"schema": %q}`, schema), Connections: 8, Timeout: time.Minute, Language: "english", InlineBytes: 1024,
		Now: now, Logger: slog.New(slog.DiscardHandler),
	}
}

func openStores(t testing.TB, now func() time.Time) (*store.Stores, error) {
	t.Helper()
	return Open(t.Context(), configOf(t, now))
}

// backend closes what a store is part of.
type backend[S any] struct {
	store  S
	stores *store.Stores
}

func (b *backend[S]) Close() error {
	return errors.Join(b.stores.LongTerm.Close(), b.stores.Vectors.Close(), b.stores.Close())
}

func again[S any](t *testing.T, opened *storetest.Opened[*backend[S]], now func() time.Time, of func(*store.Stores) S) S {
	t.Helper()
	return opened.Again(t, func() (*backend[S], error) {
		stores, err := openStores(t, now)
		if err != nil {
			return nil, err
		}
		return &backend[S]{of(stores), stores}, nil
	}).store
}

func TestLongTermMemoryConformance(t *testing.T) {
	t.Parallel()
	var opened storetest.Opened[*backend[store.LongTermMemory]]
	storetest.LongTermMemory(t, func(t *testing.T, now func() time.Time) store.LongTermMemory {
		return again(t, &opened, now, func(s *store.Stores) store.LongTermMemory { return s.LongTerm })
	})
}

func TestMetadataStoreConformance(t *testing.T) {
	t.Parallel()
	var opened storetest.Opened[*backend[store.MetadataStore]]
	storetest.MetadataStore(t, func(t *testing.T) store.MetadataStore {
		return again(t, &opened, time.Now, func(s *store.Stores) store.MetadataStore { return s.Metadata })
	})
}

func TestVectorIndexConformance(t *testing.T) {
	t.Parallel()
	var opened storetest.Opened[*backend[store.VectorIndex]]
	storetest.VectorIndex(t, func(t *testing.T) store.VectorIndex {
		return again(t, &opened, time.Now, func(s *store.Stores) store.VectorIndex { return s.Vectors })
	})
}

func TestBlobStorageConformance(t *testing.T) {
	t.Parallel()
	var opened storetest.Opened[*backend[store.BlobStorage]]
	storetest.BlobStorage(t, func(t *testing.T) store.BlobStorage {
		return again(t, &opened, time.Now, func(s *store.Stores) store.BlobStorage { return s.Blobs })
	})
}

func TestReplicaConformance(t *testing.T) {
	t.Parallel()
	var opened storetest.Opened[*backend[store.Replica]]
	storetest.Replica(t, func(t *testing.T) store.Replica {
		return again(t, &opened, time.Now, func(s *store.Stores) store.Replica { return s.Replica })
	})
}

func TestTableStoreConformance(t *testing.T) {
	t.Parallel()
	var opened storetest.Opened[*backend[store.TableStore]]
	storetest.TableStore(t, func(t *testing.T) store.TableStore {
		return again(t, &opened, time.Now, func(s *store.Stores) store.TableStore { return s.Tables })
	})
}

func TestContextConformance(t *testing.T) {
	t.Parallel()
	storetest.Context(t, func(t *testing.T) *store.Stores {
		stores, err := openStores(t, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stores.Close() })
		return stores
	})
}
