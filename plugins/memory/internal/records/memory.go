package records

import (
	"context"
	"errors"
	"sync/atomic"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/mirror"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// memory is what the stores of a driver share.
type memory struct {
	store.Config
	driver store.Driver
}

// Open returns the stores of a driver's database, without reading it. They take ownership of the driver.
func Open(d store.Driver, c store.Config) *store.Stores {
	m := &memory{c, d}
	cacher, ok := d.(store.VectorCacher)
	instead := substitutes{documents: selector{m}, vectors: mirror.New(source{d, ok && cacher.CachesVectors()})}
	if files, ok := d.(store.FileStore); ok {
		instead.texts = &textIndex{m: m, files: files}
	}
	return m.open(instead)
}

// Finder is a driver that finds documents, texts and vectors.
type Finder interface {
	store.Driver
	store.DocumentFinder
	store.TextSearcher
	store.NearestSearcher
}

// OpenFinder is Open for a Finder. A program that opens no other drivers does not link the substitutes.
func OpenFinder(d Finder, c store.Config) *store.Stores { return (&memory{c, d}).open(substitutes{}) }

// substitutes search where the driver cannot. They are interfaces so that the linker can leave them out.
type substitutes struct {
	documents documentSelector
	texts     textSearcher // nil if the driver stores no files
	vectors   vectorSearcher
}

type documentSelector interface {
	query(ctx context.Context, q store.DocumentQuery) ([]store.Document, error)
	count(ctx context.Context, q store.DocumentQuery) (int, error)
}

type textSearcher interface {
	search(ctx context.Context, q store.Search, required []string, wanted func(*store.Row) bool, c *collector) (store.Results, error)
	statistics(ctx context.Context, text string) (fulltext.Statistics, error)
	close() error
}

type vectorSearcher interface {
	Search(ctx context.Context, collection string, q store.VectorQuery) ([]store.VectorHit, error)
	Close() error
}

func (m *memory) open(instead substitutes) *store.Stores {
	c, d := m.Config, m.driver
	s := &store.Stores{
		LongTerm: &entries{m: m, index: instead.texts}, Metadata: &documents{m, instead.documents}, Vectors: &vectors{m: m, mirrors: instead.vectors}, Blobs: c.Blobs, Close: d.Close,
	}
	if s.Blobs == nil {
		s.Blobs = noContents{c.Engine}
		if d, ok := d.(store.ContentStore); ok {
			s.Blobs = d.Contents()
		}
	}
	if d, ok := d.(store.Inspector); ok {
		s.Inspect = d.Inspect
	}
	if d, ok := d.(store.Resetter); ok {
		s.Reset = func(ctx context.Context) error {
			if err := m.writable(); err != nil {
				return err
			}
			return d.Reset(ctx)
		}
	}
	s.Replica = newReplica(m, s)
	return s
}

func (m *memory) micro() int64 { return m.Now().UnixMicro() }

func (m *memory) expired(r *store.Row) bool { return r.Expires != 0 && r.Expires <= m.micro() }

func (m *memory) writable() error {
	if m.ReadOnly == "" {
		return nil
	}
	return tea.Errorf(tea.PermissionDenied, "the memory is %w: %s", store.ErrReadOnly, m.ReadOnly)
}

func (m *memory) write(ctx context.Context, b *store.Batch) error {
	if err := errors.Join(ctx.Err(), m.writable()); err != nil || len(b.Writes) == 0 {
		return err
	}
	for _, w := range b.Writes {
		if err := m.tooLarge(&w.Row); err != nil {
			return err
		}
	}
	b.Now = m.micro()
	if err := m.driver.Write(ctx, b); err != nil {
		return err
	}
	for _, w := range b.Writes {
		if w.Result.Err != nil {
			return w.Result.Err
		}
	}
	return nil
}

// tooLarge returns the error of a row that the driver does not store.
func (m *memory) tooLarge(r *store.Row) error {
	d, ok := m.driver.(store.Bounded)
	if !ok {
		return nil
	}
	metadata, document := d.Bounds()
	switch {
	case r.Feed == store.EntryFeed && metadata > 0 && len(r.Metadata) > metadata:
		return tea.Errorf(tea.ValidationError, "the metadata of key %q is too large: %d bytes (limit %d); store them as a part of the value", r.Key, len(r.Metadata), metadata)
	case r.Feed == store.DocumentFeed && document > 0 && len(r.Body) > document:
		return tea.Errorf(tea.ValidationError, "the body of %s %s is too large: %d bytes (limit %d)", r.Space, r.Key, len(r.Body), document)
	}
	return nil
}

func (m *memory) one(ctx context.Context, n store.RecordName) (*store.Row, error) {
	rows, err := m.driver.Get(ctx, store.RowQuery{Feed: n.Feed, Names: []store.RecordName{n}})
	for i := range rows {
		if !rows[i].Deleted {
			return &rows[i], err
		}
	}
	return nil, err
}

// batchRows is how many rows are read or written together.
const batchRows = 1000

// each calls fn with the rows of a range until it returns false. q.Limit limits the first read; 0 = batchRows.
func (m *memory) each(ctx context.Context, q store.RowRange, fn func(r *store.Row) (bool, error)) error {
	if q.Limit <= 0 {
		q.Limit = batchRows
	}
	for {
		page, err := m.driver.Scan(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Rows {
			if more, err := fn(&page.Rows[i]); err != nil || !more {
				return err
			}
		}
		if !page.More || len(page.Rows) == 0 {
			return nil
		}
		q.After, q.Limit = page.Rows[len(page.Rows)-1].Key, min(4*q.Limit, batchRows)
	}
}

// closing is the state of a store that can be closed.
type closing struct{ closed atomic.Bool }

func (c *closing) check(ctx context.Context) error {
	if c.closed.Load() {
		return errClosed()
	}
	return ctx.Err()
}

func errClosed() error { return tea.Errorf(tea.ConnectionError, "the memory is closed") }
