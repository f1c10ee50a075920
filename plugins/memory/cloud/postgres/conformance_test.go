package postgres

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

var (
	server sharedServer
	// pgvector has the extension vector.
	pgvector = sharedServer{Pgvector: true}
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

func TestDriverConformance(t *testing.T) {
	t.Parallel()
	storetest.Driver(t, func(t *testing.T, c store.Config) (store.Driver, error) {
		t.Helper()
		return open(t.Context(), configOf(t, c.Now), nil)
	})
}

func TestTableStoreConformance(t *testing.T) {
	t.Parallel()
	var opened storetest.Opened[*backend[store.TableStore]]
	storetest.TableStore(t, func(t *testing.T) store.TableStore {
		t.Helper()
		return opened.Again(t, func() (*backend[store.TableStore], error) {
			stores, err := openStores(t, time.Now)
			if err != nil {
				return nil, err
			}
			return &backend[store.TableStore]{stores.Tables, stores}, nil
		}).store
	})
}
