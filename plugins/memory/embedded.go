//go:build !wasm

package memory

import (
	"context"
	"errors"
	"slices"

	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	internal "github.com/the-edge-agent/tea/plugins/memory/internal/embedded"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// embedded is what a memory in a folder of this device has in addition to its stores.
type embedded struct {
	engine database
	blobs  *blob.Folder
	driver *internal.Driver
	tables *tabular.Tables
}

func (e *embedded) close() error {
	return errors.Join(e.driver.Close(), e.engine.Close(), e.blobs.Close())
}

func (e *embedded) sweep(ctx context.Context) error {
	return errors.Join(e.blobs.Sweep(), e.tables.Sweep(ctx))
}

func (e *embedded) sweepContents(ctx context.Context) error { return e.driver.SweepContents(ctx) }

// deviceRecords are the records of an embedded memory. Writes notify files and sessions.
type deviceRecords struct {
	syncing.Device
	f *folder
}

func (r deviceRecords) Put(ctx context.Context, writes ...store.RecordWrite) ([]store.PutResult, error) {
	return r.PutWith(ctx, writes, nil)
}

func (r deviceRecords) PutWith(ctx context.Context, writes []store.RecordWrite, also func([]store.PutResult) []syncing.SyncedRecord) ([]store.PutResult, error) {
	of := func(kind string) func(store.RecordWrite) bool {
		return func(w store.RecordWrite) bool { return w.Feed == store.DocumentFeed && w.Space == kind }
	}
	var paths []string
	for _, w := range writes {
		if of(file.Kind)(w) {
			paths = append(paths, w.Key)
		}
	}
	defer r.f.files.Hold(paths)()
	results, err := r.Device.PutWith(ctx, writes, also)
	if err == nil && slices.ContainsFunc(writes, of(session.Kind)) {
		r.f.sessions.Replaced()
	}
	return results, err
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
		return internal.SetSyncedIn(ctx, tx, also(results))
	})
}
