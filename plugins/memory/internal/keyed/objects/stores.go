package objects

import (
	"github.com/the-edge-agent/tea/plugins/memory/internal/keyed"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Engine is the value of settings.memory.engine for a memory in a Storage.
const Engine = "objects"

// Stores opens the memory in a storage, without reading it.
func Stores(storage Storage, c store.Config) *store.Stores {
	s := records.Open(keyed.Open(keyed.Options{DB: Open(storage), Now: c.Now, InlineBytes: c.InlineBytes, ReadOnly: c.ReadOnly}), c)
	s.Acknowledged = "remote"
	return s
}
