package embedded

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Memory is the stores on an embedded database.
type Memory struct {
	*store.Stores
	Driver *Driver
	config store.Config
}

const defaultInline = 1024

// Open opens the stores of a database, without reading it. The caller closes Driver, and
// then the engine and the blobs.
func Open(o Options) *Memory {
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.InlineBytes <= 0 {
		o.InlineBytes = defaultInline
	}
	c := store.Config{
		Engine: string(o.Engine.Dialect()), Language: cmp.Or(o.Language, "english"), InlineBytes: o.InlineBytes, Dir: o.Dir, ReadOnly: o.ReadOnly, Blobs: o.Blobs, Now: o.Clock.Now, Logger: o.Logger,
	}
	o.Language = c.Language
	d := newDriver(o)
	return &Memory{records.Open(d, c), d, c}
}

// Documents are the documents of an embedded database.
type Documents struct {
	store.MetadataStore
	m *Memory
}

// Documents returns the metadata store, which can be used in transactions.
func (m *Memory) Documents() Documents { return Documents{m.Metadata, m} }

// In returns the documents as a transaction of the database sees them. Its changes are
// committed with it.
func (d Documents) In(tx store.Tx) store.MetadataStore {
	return records.Documents(inTx{d.m.Driver, tx}, d.m.config)
}

// Views are the tables memories and vectors for queries of workflows.
func (m *Memory) Views() []store.View {
	return []store.View{m.Driver.entries.View(), vectors.View(m.Driver.engine.Dialect())}
}

// Replica returns the records of the memory with its files and sessions.
func (m *Memory) Replica(catalog *catalog.Catalog, files *file.Files, sessions *session.Sessions) *Replica {
	return &Replica{records.NewDevice(m.Driver, m.config, catalog, files), files, sessions}
}

// Replica is the records of an embedded memory. It does not include data that stays on
// the device: the tables of data.* with their catalog, and the documents that identify
// repeated calls of data.*.
type Replica struct {
	syncing.Device
	files    *file.Files
	sessions *session.Sessions
}

// Put writes records.
func (r *Replica) Put(ctx context.Context, writes ...store.RecordWrite) ([]store.PutResult, error) {
	return r.PutWith(ctx, writes, nil)
}

// PutWith is Put, and writes what also returns in the same transaction, which can run
// more than once. The contents of files are not swept meanwhile.
func (r *Replica) PutWith(ctx context.Context, writes []store.RecordWrite, also func(results []store.PutResult) []syncing.SyncedRecord) ([]store.PutResult, error) {
	var paths []string
	for _, w := range writes {
		if w.Feed == store.DocumentFeed && w.Space == file.Kind {
			paths = append(paths, w.Key)
		}
	}
	defer r.files.Hold(paths)()
	results, err := r.Device.PutWith(ctx, writes, also)
	if err == nil && slices.ContainsFunc(writes, func(w store.RecordWrite) bool { return w.Feed == store.DocumentFeed && w.Space == session.Kind }) {
		r.sessions.Replaced()
	}
	return results, err
}

// Statistics returns the statistics of the text index for a query.
func (m *Memory) Statistics(ctx context.Context, text string) (fulltext.Statistics, error) {
	return m.LongTerm.(interface {
		Statistics(ctx context.Context, text string) (fulltext.Statistics, error)
	}).Statistics(ctx, text)
}
