//go:build !wasm

package memory

import (
	"context"
	"errors"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/replica"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

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

func (e *embedded) sweep(ctx context.Context) error {
	return errors.Join(e.blobs.Sweep(), e.tables.Sweep(ctx))
}

func (e *embedded) sweepContents(ctx context.Context) error { return e.longterm.SweepContents(ctx) }

func (f *folder) embeddedReplica() *replica.Replica {
	e := f.embedded
	return replica.New(replica.Options{Engine: e.engine, LongTerm: e.longterm, Vectors: e.vectors, Documents: e.documents, Catalog: f.catalog, Files: f.files, Sessions: f.sessions})
}

// deviceTables are the tables of an embedded memory.
type deviceTables struct {
	syncing.Tables
	own *tabular.Tables
}

func (f *folder) deviceTables() syncing.DeviceTables {
	if f.embedded == nil {
		return nil
	}
	return deviceTables{f.syncedTables(), f.embedded.tables}
}

// PutRowsWith writes rows and, in the same transaction, the agreements that also
// returns.
func (t deviceTables) PutRowsWith(ctx context.Context, table string, writes []store.RecordWrite, also func([]store.PutResult) []syncing.SyncedRecord) ([]store.PutResult, error) {
	return t.own.PutRowsWith(ctx, table, writes, func(ctx context.Context, tx store.Tx, results []store.PutResult) error {
		return replica.SetSyncedIn(ctx, tx, also(results))
	})
}
