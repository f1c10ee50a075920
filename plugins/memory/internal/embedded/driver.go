// Package embedded is the driver of a memory in an embedded database, SQLite or DuckDB,
// and its stores. Start with [Open].
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/deletion"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/internal/replica"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Options configure a memory. Engine, Dir and Blobs are required. The caller closes
// Engine and Blobs after the memory.
type Options struct {
	Engine store.QueryEngine
	Blobs  store.BlobStorage
	// Dir has the folders of the indexes.
	Dir string
	// Clock is the clock for expiry; nil = a new one.
	Clock *clock.Clock
	// Search has the options of the vector indexes.
	Search vector.Options
	// Language and InlineBytes are those of store.Config; the defaults are english and
	// 1024.
	Language    string
	InlineBytes int
	// ReadOnly is the reason why the memory is read-only; "" = it is writable.
	ReadOnly string
	Logger   *slog.Logger
}

// Driver has the rows of a memory. It is safe for concurrent use.
type Driver struct {
	engine    store.QueryEngine
	entries   *longterm.Memory
	vectors   *vectors.Index
	documents *documents.Rows
}

var (
	_ store.Driver          = (*Driver)(nil)
	_ store.DocumentFinder  = (*Driver)(nil)
	_ store.NearestSearcher = (*Driver)(nil)
	_ store.PrefixDeleter   = (*Driver)(nil)
	_ records.Device        = (*Driver)(nil)
	_ records.Indexer       = (*Driver)(nil)
)

// part has the rows of a feed.
type part interface {
	Last(ctx context.Context) (int64, error)
	Changes(ctx context.Context, q store.RowChanges) (store.RowPage, error)
	Scan(ctx context.Context, q store.RowRange) (store.RowPage, error)
	// Begin sets the results of writes before they are done, and returns the function
	// that does those that are not refused.
	Begin(ctx context.Context, tx store.Tx, writes []*store.RowWrite, now int64) (func(context.Context) error, error)
}

func newDriver(o Options) *Driver {
	return &Driver{
		engine: o.Engine,
		entries: longterm.New(longterm.Options{
			Engine: o.Engine, Blobs: o.Blobs, Clock: o.Clock, IndexDir: filepath.Join(o.Dir, "index"), Language: o.Language, InlineBytes: o.InlineBytes, ReadOnly: o.ReadOnly != "", Logger: o.Logger,
		}),
		vectors:   vectors.New(vectors.Options{Engine: o.Engine, Dir: filepath.Join(o.Dir, "vectors"), Search: o.Search, ReadOnly: o.ReadOnly != "", Now: o.Clock.Now, Logger: o.Logger}),
		documents: documents.NewRows(o.Engine),
	}
}

func (d *Driver) part(feed store.Feed) part {
	switch feed {
	case store.EntryFeed:
		return d.entries
	case store.VectorFeed:
		return d.vectors
	}
	return d.documents
}

// State returns the state of a feed.
func (d *Driver) State(ctx context.Context, feed store.Feed) (s store.FeedState, err error) {
	if s.Identity, err = d.engine.Identity(ctx); err != nil {
		return s, err
	}
	if s.Last, err = d.part(feed).Last(ctx); err != nil {
		return s, err
	}
	s.Forgotten, err = deletion.Forgotten(ctx, d.engine, feed)
	return s, err
}

// Get returns rows and, if they are numbered, tombstones.
func (d *Driver) Get(ctx context.Context, q store.RowQuery) (rows []store.Row, err error) {
	switch q.Feed {
	case store.EntryFeed:
		rows, err = d.entries.Get(ctx, q)
	case store.VectorFeed:
		rows, err = d.vectors.Get(ctx, q)
	default:
		rows, err = d.documents.Get(ctx, d.engine, q)
	}
	if err != nil || !q.Numbered {
		return rows, err
	}
	deleted, err := deletion.Rows(ctx, d.engine, q.Names)
	return append(rows, deleted...), err
}

// Scan returns rows of a space.
func (d *Driver) Scan(ctx context.Context, q store.RowRange) (store.RowPage, error) {
	return d.part(q.Feed).Scan(ctx, q)
}

// Changes returns changes of a feed.
func (d *Driver) Changes(ctx context.Context, q store.RowChanges) (store.RowPage, error) {
	return d.part(q.Feed).Changes(ctx, q)
}

// Write does the writes of a batch.
func (d *Driver) Write(ctx context.Context, b *store.Batch) error { return d.WriteWith(ctx, b, nil) }

// WriteWith is Write, and stores what also returns in the same transaction, which can run
// more than once; nil = nothing.
func (d *Driver) WriteWith(ctx context.Context, b *store.Batch, also func() []syncing.SyncedRecord) error {
	release, err := d.entries.Save(ctx, b.Writes)
	if err != nil {
		return err
	}
	defer release()
	err = d.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		if err := d.writeIn(ctx, tx, b); err != nil || also == nil {
			return err
		}
		return replica.SetSyncedIn(ctx, tx, also())
	})
	if err != nil {
		if some := ofFeed(b, store.EntryFeed); len(some) > 0 {
			d.entries.Failed(some, err)
		}
		d.vectors.Failed(ofFeed(b, store.VectorFeed), err)
		return err
	}
	d.vectors.OpenCreated(ctx)
	return nil
}

// writeIn does the writes of a batch in a transaction. It checks all conditions first.
func (d *Driver) writeIn(ctx context.Context, tx store.Tx, b *store.Batch) error {
	var writes []func(context.Context) error
	for _, feed := range store.Feeds() {
		some := ofFeed(b, feed)
		if len(some) == 0 {
			continue
		}
		write, err := d.part(feed).Begin(ctx, tx, some, b.Now)
		if err != nil {
			return err
		}
		writes = append(writes, write)
	}
	if b.Atomic {
		for _, w := range b.Writes {
			if w.Result.Refused() {
				return nil
			}
		}
	}
	for _, write := range writes {
		if err := write(ctx); err != nil {
			return err
		}
	}
	return nil
}

func ofFeed(b *store.Batch, feed store.Feed) (some []*store.RowWrite) {
	for _, w := range b.Writes {
		if w.Feed == feed {
			some = append(some, w)
		}
	}
	return some
}

// Spaces describes vector collections.
func (d *Driver) Spaces(ctx context.Context, names ...string) ([]store.Space, error) {
	return d.vectors.Spaces(ctx, names...)
}

// Drop removes a vector collection.
func (d *Driver) Drop(ctx context.Context, space string) (rows int, existed bool, err error) {
	return d.vectors.Drop(ctx, space)
}

// Sweep removes expired entries, old tombstones, and values that no row refers to.
func (d *Driver) Sweep(ctx context.Context, expired, deleted int64) (entries int, err error) {
	entries, err = d.entries.Sweep(ctx, expired)
	return entries, errors.Join(err, deletion.Sweep(ctx, d.engine, time.UnixMicro(deleted)))
}

// SweepContents removes values that no row refers to. It needs no free space.
func (d *Driver) SweepContents(ctx context.Context) error { return d.entries.SweepContents(ctx) }

// DeletePrefix removes the entries whose keys have a prefix.
func (d *Driver) DeletePrefix(ctx context.Context, space, prefix string, now int64) (int, error) {
	return d.entries.DeletePrefix(ctx, space, prefix, now)
}

// FindDocuments returns the documents that match a query.
func (d *Driver) FindDocuments(ctx context.Context, q store.DocumentQuery) ([]store.Row, error) {
	return d.documents.Find(ctx, d.engine, q)
}

// CountDocuments returns the number of documents that match a query.
func (d *Driver) CountDocuments(ctx context.Context, q store.DocumentQuery) (int, error) {
	return d.documents.Count(ctx, d.engine, q)
}

// Nearest returns the rows nearest to a vector.
func (d *Driver) Nearest(ctx context.Context, space string, q store.VectorQuery) ([]store.Row, []float64, error) {
	return d.vectors.Nearest(ctx, space, q)
}

// Current returns the text index.
func (d *Driver) Current(ctx context.Context) (*fulltext.Index, error) { return d.entries.Current(ctx) }

// Discard empties a damaged text index.
func (d *Driver) Discard(index *fulltext.Index) error { return d.entries.Discard(index) }

// Below returns the ids of the entries with a prefix, nil if there are many.
func (d *Driver) Below(ctx context.Context, space, prefix string) ([]int64, error) {
	return d.entries.Below(ctx, space, prefix)
}

// Matching returns the ids of the entries whose metadata match a filter.
func (d *Driver) Matching(ctx context.Context, wanted filter.Filter) ([]int64, error) {
	return d.entries.Matching(ctx, wanted)
}

// WaitBuilt waits until the graph of a collection is complete. Searches work without it.
func (d *Driver) WaitBuilt(ctx context.Context, collection string) error {
	return d.vectors.WaitBuilt(ctx, collection)
}

// Base is what the memory has agreed on with others.
func (d *Driver) Base() syncing.Base { return replica.NewBase(d.engine) }

// Close ends background work and writes the indexes.
func (d *Driver) Close() error { return errors.Join(d.entries.Close(), d.vectors.Close()) }

// inTx is a driver whose documents are those that a transaction sees and changes.
type inTx struct {
	*Driver
	tx store.Tx
}

// Get returns rows.
func (d inTx) Get(ctx context.Context, q store.RowQuery) ([]store.Row, error) {
	return d.documents.Get(ctx, d.tx, q)
}

// FindDocuments returns the documents that match a query.
func (d inTx) FindDocuments(ctx context.Context, q store.DocumentQuery) ([]store.Row, error) {
	return d.documents.Find(ctx, d.tx, q)
}

// Write does the writes of a batch.
func (d inTx) Write(ctx context.Context, b *store.Batch) error {
	for _, w := range b.Writes {
		if w.Feed != store.DocumentFeed {
			return fmt.Errorf("a transaction of the caller cannot write %s", w.Feed)
		}
	}
	return d.writeIn(ctx, d.tx, b)
}
