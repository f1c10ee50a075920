package browser

import (
	"cmp"
	"context"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/internal/keyed"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Engine is the value of settings.memory.engine and settings.ltm.backend.
const Engine = "wasm"

// Bundle returns the memory's bundle with the engine wasm, to be linked into a host
// for js/wasm.
func Bundle() tea.Bundle {
	return memory.Bundle(memory.WithBackend(Backend()), memory.WithBackend(objectsBackend()), memory.WithOnline(online))
}

// Backend returns the engine, for memory.WithBackend.
func Backend() store.Backend { return store.Backend{Name: Engine, Open: open, Identify: databaseOf} }

// options are settings.memory.options.
type options struct {
	Database string `json:"database,omitempty" doc:"name of the database in IndexedDB; default tea-memory"`
}

// open opens the stores of a database. The first call of a store connects.
func open(_ context.Context, c store.Config) (*store.Stores, error) {
	name, err := databaseOf(c)
	if err != nil {
		return nil, err
	}
	s := records.Open(keyed.Open(keyed.Options{DB: &database{name: name}, Now: c.Now, InlineBytes: c.InlineBytes, ReadOnly: c.ReadOnly}), c)
	s.Acknowledged = "local"
	return s, nil
}

// databaseOf returns the name of the database.
func databaseOf(c store.Config) (string, error) {
	if c.URL != "" {
		return "", tea.Errorf(tea.ValidationError, "the engine %s has no url: name the database with settings.memory.options.database, and a storage to synchronise with in settings.memory.sync.url", Engine)
	}
	var o options
	err := c.Decode(&o)
	return cmp.Or(o.Database, "tea-memory"), err
}
