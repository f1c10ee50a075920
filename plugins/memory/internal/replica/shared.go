package replica

import (
	"context"
	"fmt"
	"io"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/content"
	"github.com/the-edge-agent/tea/plugins/memory/internal/deletion"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// KeptDeletions is how long tombstones are kept, for devices that were offline.
const KeptDeletions = 90 * 24 * 60 * 60 // seconds

// Tables are the tables of a database that devices share, for [NewShared]. They return
// the contents of rows without verifying them.
type Tables interface {
	// Identity implements [store.Replica].
	Identity(ctx context.Context) (string, error)
	// Page returns the first records of a feed after a number in order, at least one if
	// there are any. It can return more records than the query's limit. more reports
	// whether further records exist.
	Page(ctx context.Context, query store.ChangeQuery) (records []store.Record, more bool, err error)
	// Bounds returns the number up to which tombstones of a feed were removed, and
	// the last number that was assigned.
	Bounds(ctx context.Context, feed store.Feed) (forgotten, last int64, err error)
	// Named returns the existing records of a feed with these names, and the last
	// tombstones of the others, in any order.
	Named(ctx context.Context, feed store.Feed, names []store.RecordName) ([]store.Record, error)
	// Put does the writes in one transaction and sets their results.
	Put(ctx context.Context, w *Writes) error
}

// Writes are the writes of a Put that can be stored.
type Writes struct {
	Entries, Vectors, Documents []*Write

	all []*Write // in the order of the Put
}

// Write is a write with a validated record.
type Write struct {
	store.RecordWrite
	// Entry is set for existing records of the EntryFeed.
	Entry longterm.Canonical
	// Item is set for existing records of the VectorFeed, with its metadata as canonical
	// JSON, "" for none.
	Item     store.VectorItem
	Metadata string

	Result store.PutResult
}

// Shared is the replica of a database that devices share. It is safe for
// concurrent use.
type Shared struct {
	tables   Tables
	contents *content.Store
	catalog  *catalog.Catalog
	inline   int
}

var _ store.Replica = (*Shared)(nil)

// NewShared returns the replica of tables, with the catalog and the contents of files in
// the other stores of the same database. Values of at least inlineBytes are not stored
// in their rows.
func NewShared(tables Tables, metadata store.MetadataStore, blobs store.BlobStorage, inlineBytes int) *Shared {
	return &Shared{tables: tables, contents: file.Contents(blobs), catalog: catalog.New(metadata, clock.New()), inline: inlineBytes}
}

// Identity identifies the contents.
func (s *Shared) Identity(ctx context.Context) (string, error) { return s.tables.Identity(ctx) }

// Changes returns the records of a feed that changed after a number.
func (s *Shared) Changes(ctx context.Context, query store.ChangeQuery) (store.ChangePage, error) {
	if !slices.Contains(store.Feeds(), query.Feed) {
		return store.ChangePage{}, unknownFeed(query.Feed)
	}
	var kept documents.Kept
	if query.Feed == store.DocumentFeed {
		var err error
		if kept, err = keptOf(ctx, s.catalog, false); err != nil {
			return store.ChangePage{}, err
		}
	}
	records, more, err := s.tables.Page(ctx, query)
	if err != nil {
		return store.ChangePage{}, fmt.Errorf("read the changes of %s: %w", query.Feed, err)
	}
	if query.After > 0 { // read after the page, which lacks the tombstones removed before
		forgotten, last, err := s.tables.Bounds(ctx, query.Feed)
		if err != nil {
			return store.ChangePage{}, fmt.Errorf("read the deletions of %s: %w", query.Feed, err)
		}
		if err := deletion.CheckBounds(query, forgotten, last); err != nil {
			return store.ChangePage{}, err
		}
	}
	page, err := deletion.Page(query, records, func(r store.Record) int64 { return r.Seq }, func(r store.Record) (store.Record, bool, error) {
		addContent(&r)
		return r, kept == nil || r.Deleted || kept(store.Document{Kind: r.Space, ID: r.Key, Body: r.Body}), nil
	})
	page.More = page.More || more
	return page, err
}

// Records returns the current records with these names.
func (s *Shared) Records(ctx context.Context, names ...store.RecordName) ([]store.Record, error) {
	return eachFeed(names, func(feed store.Feed, some []store.RecordName) ([]store.Record, error) {
		var kept documents.Kept
		if feed == store.DocumentFeed {
			var err error
			if kept, err = keptOf(ctx, s.catalog, true); err != nil {
				return nil, err
			}
		}
		found, err := s.tables.Named(ctx, feed, some)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", feed, err)
		}
		byName := make(map[store.RecordName]store.Record, len(found))
		for _, r := range found {
			if have, twice := byName[r.RecordName]; twice && (!have.Deleted || r.Deleted && r.Seq < have.Seq) {
				continue // a tombstone of a record that was stored again
			}
			if addContent(&r); feed == store.DocumentFeed && !r.Deleted && !kept(store.Document{Kind: r.Space, ID: r.Key, Body: r.Body}) {
				continue
			}
			byName[r.RecordName] = r
		}
		all := make([]store.Record, len(some))
		for i, name := range some {
			r, ok := byName[name]
			if !ok {
				r = store.Record{RecordName: name, Deleted: true}
			}
			all[i] = r
		}
		return all, nil
	})
}

// Content opens the content of a file.
func (s *Shared) Content(ctx context.Context, hash string) (io.ReadCloser, error) {
	if !isHash(hash) {
		return nil, fmt.Errorf("content %q: %w", hash, store.ErrNotFound)
	}
	return s.contents.Open(ctx, hash)
}

// Put writes records.
func (s *Shared) Put(ctx context.Context, writes ...store.RecordWrite) ([]store.PutResult, error) {
	return s.put(ctx, writes, false)
}

// PutAll is Put, but calls Tables.Put even without writes. The returned Writes have the
// results in the order of writes.
func (s *Shared) PutAll(ctx context.Context, writes []store.RecordWrite) ([]store.PutResult, error) {
	return s.put(ctx, writes, true)
}

func (s *Shared) put(ctx context.Context, writes []store.RecordWrite, always bool) ([]store.PutResult, error) {
	all := make([]*Write, len(writes))
	var ready Writes
	for i, w := range writes {
		one := &Write{RecordWrite: w}
		if all[i] = one; !slices.Contains(store.Feeds(), w.Feed) {
			return nil, unknownFeed(w.Feed)
		}
		refused, err := s.prepare(ctx, one)
		if err != nil {
			return nil, err
		}
		if one.Result.Err = refused; refused == nil {
			ready.add(one)
		}
	}
	ready.all = all
	if always || len(ready.Entries)+len(ready.Vectors)+len(ready.Documents) > 0 {
		if err := s.tables.Put(ctx, &ready); err != nil {
			return nil, err
		}
	}
	return ready.Results(), nil
}

// Results returns the results of all writes of the Put, including refused ones.
func (w *Writes) Results() []store.PutResult {
	results := make([]store.PutResult, len(w.all))
	for i, one := range w.all {
		results[i] = one.Result
	}
	return results
}

func (w *Writes) add(one *Write) {
	switch one.Feed {
	case store.EntryFeed:
		w.Entries = append(w.Entries, one)
	case store.VectorFeed:
		w.Vectors = append(w.Vectors, one)
	case store.DocumentFeed:
		w.Documents = append(w.Documents, one)
	}
}

// prepare validates a write and stores the content of its file. refused is the error of a
// record that cannot be stored.
func (s *Shared) prepare(ctx context.Context, w *Write) (refused, err error) {
	switch w.Feed {
	case store.EntryFeed:
		if w.Deleted {
			return longterm.CheckName(w.Space, w.Key), nil
		}
		w.Entry, refused = longterm.FromRecord(w.Record, s.inline)
		return refused, nil
	case store.VectorFeed:
		if w.Deleted {
			return nil, nil
		}
		w.Item, w.Metadata, refused = vectors.FromRecord(w.Record)
		return refused, nil
	}
	c := store.Change{Kind: w.Space, ID: w.Key, Body: w.Body}
	if w.Deleted {
		c.Body = nil
	} else if c.Body == nil {
		c.Body = []byte{} // Put refuses it
	}
	if refused = documents.Check(c); refused != nil || w.Deleted || w.Space != file.Kind {
		return refused, nil
	}
	described := w.Record
	if addContent(&described); described.Damaged {
		return tea.Errorf(tea.ValidationError, "the record of the file %q is damaged", w.Key), nil
	}
	return refusal(s.saveContent(ctx, described.Content, w.RecordWrite))
}

// saveContent stores the content of a file unless it is there.
func (s *Shared) saveContent(ctx context.Context, hash string, w store.RecordWrite) error {
	if _, err := s.contents.Stat(ctx, hash); err == nil {
		return nil
	}
	data, err := contentOf(ctx, w)
	if err != nil {
		return err
	}
	return s.contents.Save(ctx, hash, data)
}
