package memory

import (
	"context"
	"errors"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// database is an engine of an embedded memory, which not every platform has.
type database interface {
	store.QueryEngine
	store.Selector
	// Opened is closed at the first use.
	Opened() <-chan struct{}
	// Writable returns the error of every write to a memory that is only read.
	Writable() error
	WhileClosed(ctx context.Context, fn func() error) error
	Close() error
}

// embedded is a memory in a folder of this device.
type embedded struct {
	engine    database
	blobs     *blob.Folder
	longterm  *longterm.Memory
	vectors   *vectors.Index
	documents *documents.Documents
	tables    *tabular.Tables
}

func (e *embedded) close() error { return errors.Join(e.engine.Close(), e.blobs.Close()) }
