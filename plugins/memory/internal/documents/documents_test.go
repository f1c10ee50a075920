package documents_test

import (
	"path/filepath"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/duckdb"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

func drivers() []engine.Driver {
	all := []engine.Driver{sqlite.Driver{}}
	if d, err := duckdb.New(); err == nil {
		all = append(all, d)
	}
	return all
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, driver := range drivers() {
		t.Run(string(driver.Dialect()), func(t *testing.T) {
			t.Parallel()
			top := t.TempDir()
			opened := storetest.Opened[*engine.Engine]{}
			storetest.MetadataStore(t, func(t *testing.T) store.MetadataStore {
				t.Helper()
				return documents.New(opened.Again(t, func() (*engine.Engine, error) {
					return engine.Open(t.Context(), engine.Options{Dir: filepath.Join(top, filepath.Base(t.Name())), Driver: driver})
				}))
			})
		})
	}
}
