package records

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/the-edge-agent/tea/sdk/value"

	internal "github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// vectors is the vector index.
type vectors struct {
	closing
	m       *memory
	mirrors vectorSearcher // unless the driver searches all collections
}

var _ store.VectorIndex = (*vectors)(nil)

func vectorName(collection, id string) store.RecordName {
	return store.RecordName{Feed: store.VectorFeed, Space: collection, Key: id}
}

func vectorNames(collection string, ids []string) []store.RecordName {
	names := make([]store.RecordName, len(ids))
	for i, id := range ids {
		names[i] = vectorName(collection, id)
	}
	return names
}

// Close frees the copies of collections.
func (x *vectors) Close() error {
	if x.closed.Swap(true) || x.mirrors == nil {
		return nil
	}
	return x.mirrors.Close()
}

func (x *vectors) Store(ctx context.Context, collection string, items ...store.VectorItem) error {
	if err := x.check(ctx); err != nil {
		return err
	}
	metadata, err := internal.Check(collection, items)
	if err != nil {
		return err
	}
	b := &store.Batch{Atomic: true}
	for i, item := range items {
		if first := len(items[0].Embedding); len(item.Embedding) != first {
			return internal.WrongDimension(collection, len(item.Embedding), first)
		}
		b.Writes = append(b.Writes, &store.RowWrite{Row: vectorRow(vectorName(collection, item.ID), item, metadata[i])})
	}
	if err := x.m.write(ctx, b); err != nil {
		return err
	}
	for _, w := range b.Writes {
		if w.Result.Dimension != 0 {
			return internal.WrongDimension(collection, len(w.Body)/4, w.Result.Dimension)
		}
	}
	return nil
}

func vectorRow(n store.RecordName, item store.VectorItem, metadata string) store.Row {
	return store.Row{RecordName: n, Body: internal.Encode(item.Embedding), Text: item.Text, Metadata: metadata}
}

func toItem(r *store.Row, embedding bool) store.VectorItem {
	item := store.VectorItem{ID: r.Key, Text: r.Text}
	if r.Metadata != "" {
		decoded, err := value.Decode([]byte(r.Metadata))
		item.Metadata, _ = decoded.(map[string]any)
		item.Damaged = err != nil || item.Metadata == nil
	}
	if embedding {
		item.Embedding = internal.Decode(r.Body)
	}
	return item
}

func (x *vectors) Delete(ctx context.Context, collection string, ids ...string) (n int, err error) {
	if err := x.check(ctx); err != nil {
		return 0, err
	}
	if ids = internal.Storable(ids); !internal.Named(collection) {
		return 0, nil
	}
	slices.Sort(ids)
	b := &store.Batch{}
	for _, name := range vectorNames(collection, slices.Compact(ids)) {
		b.Writes = append(b.Writes, &store.RowWrite{Row: store.Row{RecordName: name, Deleted: true}})
	}
	if err := x.m.write(ctx, b); err != nil {
		return 0, err
	}
	for _, w := range b.Writes {
		if w.Result.Live {
			n++
		}
	}
	return n, nil
}

func (x *vectors) Drop(ctx context.Context, collection string) (items int, existed bool, err error) {
	if err := x.check(ctx); err != nil {
		return 0, false, err
	}
	if err := x.m.writable(); err != nil || !internal.Named(collection) {
		return 0, false, err
	}
	return x.m.driver.Drop(ctx, collection)
}

func (x *vectors) Collections(ctx context.Context) ([]store.Collection, error) {
	if err := x.check(ctx); err != nil {
		return nil, err
	}
	spaces, err := x.m.driver.Spaces(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]store.Collection, len(spaces))
	for i, s := range spaces {
		all[i] = store.Collection{Name: s.Name, Dimension: s.Dimension, Count: s.Count}
	}
	return all, nil
}

func (x *vectors) Get(ctx context.Context, collection string, ids ...string) (items []store.VectorItem, err error) {
	if err := x.check(ctx); err != nil {
		return nil, err
	}
	if ids = internal.Storable(ids); !internal.Named(collection) || len(ids) == 0 {
		return nil, nil
	}
	rows, err := x.m.driver.Get(ctx, store.RowQuery{Feed: store.VectorFeed, Names: vectorNames(collection, ids)})
	if err != nil {
		return nil, fmt.Errorf("read collection %q: %w", collection, err)
	}
	byID := make(map[string]*store.Row, len(rows))
	for i := range rows {
		if r := &rows[i]; !r.Deleted && r.Damaged == nil {
			byID[r.Key] = r
		}
	}
	for _, id := range ids {
		if r := byID[id]; r != nil {
			items = append(items, toItem(r, true))
		}
	}
	return items, nil
}

func (x *vectors) List(ctx context.Context, collection string, page store.VectorPage) (items []store.VectorItem, err error) {
	if err := x.check(ctx); err != nil {
		return nil, err
	}
	if page.Limit < 1 || !internal.Named(collection) {
		return nil, nil
	}
	q := store.RowRange{Feed: store.VectorFeed, Space: collection, After: page.After, Limit: min(page.Limit, batchRows), NoBody: !page.Embeddings}
	err = x.m.each(ctx, q, func(r *store.Row) (bool, error) {
		items = append(items, toItem(r, page.Embeddings))
		return len(items) < page.Limit, r.Damaged
	})
	return items, err
}

func (x *vectors) Search(ctx context.Context, collection string, q store.VectorQuery) ([]store.VectorHit, error) {
	if err := x.check(ctx); err != nil {
		return nil, err
	}
	searcher, ok := x.m.driver.(store.NearestSearcher)
	if !ok {
		return x.mirrors.Search(ctx, collection, q)
	}
	rows, similarities, err := searcher.Nearest(ctx, collection, q)
	if errors.Is(err, store.ErrUnsupported) {
		return x.mirrors.Search(ctx, collection, q)
	}
	hits := make([]store.VectorHit, 0, len(rows))
	for i := range rows {
		// A row may have changed since the search.
		if item := toItem(&rows[i], q.Embeddings); q.Filter.MatchesObject(item.Metadata) {
			hits = append(hits, store.VectorHit{VectorItem: item, Score: similarities[i]})
		}
	}
	return hits, err
}
