// Package mirror searches the vectors of a database that cannot compare them. It keeps a copy of each collection in
// memory, and reads the changes before each search. Start with [Collections].
package mirror

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// KeepGone is the number of changes for which a database keeps removed items. A
// mirror that is further behind reads its collection again.
const KeepGone = 10_000

// Source reads the vectors of a database. Changes have increasing numbers: a
// reader that has seen a change has seen all changes with smaller numbers.
type Source interface {
	// Changes reads the changes after a number, in order, at most as many as fit
	// into one request.
	Changes(ctx context.Context, collection string, after int64) (Page, error)
	// Items reads rows by their ids. Ids that do not exist are left out.
	Items(ctx context.Context, ids []int64, embeddings bool) (map[int64]store.VectorItem, error)
}

// Page is a part of the changes of a collection.
type Page struct {
	// Dimension is the dimension of the vectors; 0 = the collection does not exist.
	Dimension int
	// Born is the number of the change that created the collection.
	Born int64
	// Last is the number of the last change of any collection.
	Last    int64
	Changes []Change
	// More reports whether there can be further changes.
	More bool
}

// Change is a change of an item.
type Change struct {
	Seq, ID int64
	// Embedding is as vectors.Encode returns it. Nil means that the item was
	// removed; an embedding of a different size is damaged, and the item is not
	// found.
	Embedding []byte
	// Metadata is an object as JSON, "" for none.
	Metadata string
	// Item, if set, is kept in memory and returned by searches without a call of Items.
	Item *store.VectorItem
}

// Collections are the mirrors of a database's collections. It is safe for
// concurrent use.
type Collections struct {
	source  Source
	mu      sync.Mutex
	mirrors map[string]*mirror
}

// New returns mirrors that are empty until the first search.
func New(source Source) *Collections {
	return &Collections{source: source, mirrors: map[string]*mirror{}}
}

// Close frees the vectors.
func (c *Collections) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for _, m := range c.mirrors {
		m.mu.Lock()
		err = errors.Join(err, m.drop())
		m.mu.Unlock()
	}
	c.mirrors = map[string]*mirror{}
	return err
}

func (c *Collections) mirror(collection string) *mirror {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.mirrors[collection]
	if m == nil {
		m = &mirror{}
		c.mirrors[collection] = m
	}
	return m
}

// Search returns the items nearest to the query, as store.VectorIndex does.
func (c *Collections) Search(ctx context.Context, collection string, q store.VectorQuery) ([]store.VectorHit, error) {
	if q.K < 1 || !vectors.Named(collection) {
		return nil, ctx.Err()
	}
	if err := vectors.CheckQuery(q.Embedding); err != nil {
		return nil, err
	}
	hits, items, err := c.nearest(ctx, collection, q)
	if err != nil || len(hits) == 0 {
		return nil, err
	}
	if items != nil {
		return toHits(hits, items, func(i *store.VectorItem) bool {
			if !q.Embeddings {
				i.Embedding = nil
			}
			return true
		}), nil
	}
	ids := make([]int64, len(hits))
	for i, hit := range hits {
		ids[i] = hit.ID
	}
	byID, err := c.source.Items(ctx, ids, q.Embeddings)
	if err != nil {
		return nil, err
	}
	// A row may have changed since the search.
	return toHits(hits, byID, func(i *store.VectorItem) bool { return q.Filter.MatchesObject(i.Metadata) }), nil
}

// toHits returns the items of hits that are wanted.
func toHits(hits []vector.Hit, items map[int64]store.VectorItem, wanted func(*store.VectorItem) bool) []store.VectorHit {
	found := make([]store.VectorHit, 0, len(hits))
	for _, hit := range hits {
		if item, ok := items[hit.ID]; ok && wanted(&item) {
			found = append(found, store.VectorHit{VectorItem: item, Score: float64(hit.Similarity)})
		}
	}
	return found
}

// nearest brings the mirror up to date and searches it. It returns the items of the hits if
// the mirror has them.
func (c *Collections) nearest(ctx context.Context, collection string, q store.VectorQuery) ([]vector.Hit, map[int64]store.VectorItem, error) {
	m := c.mirror(collection)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.refresh(ctx, c.source, collection); err != nil {
		// Some of the changes may be missing.
		return nil, nil, errors.Join(fmt.Errorf("read collection %q: %w", collection, err), m.drop())
	}
	if m.index == nil {
		return nil, nil, nil
	}
	options := vector.SearchOptions{Exact: true}
	if len(q.Filter) > 0 {
		options.Among = m.matching(q.Filter)
	}
	hits, err := m.index.Search(ctx, q.Embedding, q.K, options)
	if err != nil {
		return nil, nil, vectors.SearchError(collection, q.Embedding, m.dimension, err)
	}
	hits = slices.DeleteFunc(hits, func(hit vector.Hit) bool { return float64(hit.Similarity) < q.MinScore })
	if m.items == nil {
		return hits, nil, nil
	}
	items := make(map[int64]store.VectorItem, len(hits))
	for _, hit := range hits {
		items[hit.ID] = m.items[hit.ID]
	}
	return hits, items, nil
}

// mirror has the vectors of a collection.
type mirror struct {
	mu        sync.Mutex
	index     *vector.Index // nil before the first search, and without a collection
	born      int64
	dimension int
	last      int64 // the last change that is in the mirror
	metadata  map[int64]map[string]any
	items     map[int64]store.VectorItem // nil if the changes have none
}

// drop removes all vectors.
func (m *mirror) drop() error {
	index := m.index
	m.index, m.metadata, m.items, m.last = nil, nil, nil, 0
	if index == nil {
		return nil
	}
	return index.Close()
}

// refresh reads the changes that the mirror lacks.
func (m *mirror) refresh(ctx context.Context, source Source, collection string) error {
	for seen := m.last; ; { // the pages of one refresh follow each other
		page, err := source.Changes(ctx, collection, m.last)
		if err != nil {
			return err
		}
		if page.Dimension == 0 {
			return m.drop()
		}
		// A smaller number than before means that an older state of the database was
		// restored.
		if m.index != nil && (m.born != page.Born || page.Last < seen || seen < page.Last-KeepGone && seen > 0) {
			if err := m.drop(); err != nil {
				return err
			}
			seen = 0
			continue
		}
		if m.index == nil {
			m.born, m.dimension, m.metadata = page.Born, page.Dimension, map[int64]map[string]any{}
			if m.index, err = vector.Open("", vector.Options{Dimension: page.Dimension}); err != nil {
				return err
			}
		}
		for _, c := range page.Changes {
			if err := m.apply(c); err != nil {
				return err
			}
		}
		if !page.More {
			m.last = page.Last
			return nil
		}
	}
}

func (m *mirror) apply(c Change) error {
	m.last = c.Seq
	if len(c.Embedding) != 4*m.dimension { // removed, or damaged: List reports it
		delete(m.metadata, c.ID)
		delete(m.items, c.ID)
		return m.index.Delete(c.ID, c.Seq)
	}
	m.metadata[c.ID] = nil
	switch {
	case c.Item != nil:
		if m.items == nil {
			m.items = map[int64]store.VectorItem{}
		}
		m.items[c.ID], m.metadata[c.ID] = *c.Item, c.Item.Metadata
	case c.Metadata != "":
		decoded, _ := value.Decode([]byte(c.Metadata)) // damaged metadata match nothing
		m.metadata[c.ID], _ = decoded.(map[string]any)
	}
	return m.index.Put(c.ID, c.Seq, vectors.Decode(c.Embedding))
}

// matching returns the items that pass a filter; not nil.
func (m *mirror) matching(f filter.Filter) []int64 {
	ids := []int64{}
	for id, object := range m.metadata {
		if f.MatchesObject(object) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
