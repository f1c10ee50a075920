package vectors

import (
	"context"
	"errors"
	"fmt"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Search returns the items nearest to the query, none if the collection does not exist.
func (x *Index) Search(ctx context.Context, collection string, query store.VectorQuery) ([]store.VectorHit, error) {
	if query.K < 1 || !named(collection) {
		return nil, x.ready(ctx)
	}
	for try := 0; ; try++ {
		hits, err := x.search(ctx, collection, query)
		// A failed index was closed; the next search opens it again.
		if try > 0 || !errors.Is(err, vector.ErrClosed) {
			return hits, err
		}
	}
}

func (x *Index) search(ctx context.Context, collection string, query store.VectorQuery) ([]store.VectorHit, error) {
	c, err := x.collection(ctx, collection)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(query.Embedding) > 0 && !slices.ContainsFunc(query.Embedding, func(f float32) bool { return f != 0 }) {
		return nil, tea.Errorf(tea.ValidationError, "the embedding of the query is all zeros, which are similar to nothing")
	}
	options := vector.SearchOptions{Exact: query.Exact}
	if len(query.Filter) > 0 {
		options.Among, err = c.metadata.Matching(ctx, query.Filter, func(ctx context.Context) (store.Rows, error) {
			return x.o.Engine.Query(ctx, "SELECT id, metadata FROM vectors WHERE collection = ?", c.name)
		})
		if err != nil {
			return nil, fmt.Errorf("filter collection %q: %w", collection, err)
		}
	}
	hits, err := c.index.Search(ctx, query.Embedding, query.K, options)
	switch {
	case errors.Is(err, vector.ErrDimension):
		dimension, _ := x.dimension(ctx, x.o.Engine.Query, collection)
		return nil, wrongDimension(collection, len(query.Embedding), dimension)
	case errors.Is(err, vector.ErrNotFinite):
		return nil, tea.Errorf(tea.ValidationError, "the embedding of the query: %w", err)
	case err != nil:
		return nil, fmt.Errorf("search collection %q: %w", collection, err)
	}
	return x.items(ctx, collection, hits, query)
}

// items reads the rows of hits.
func (x *Index) items(ctx context.Context, collection string, hits []vector.Hit, query store.VectorQuery) ([]store.VectorHit, error) {
	ids := make([]any, 0, len(hits))
	for _, hit := range hits {
		if float64(hit.Similarity) >= query.MinScore {
			ids = append(ids, hit.ID)
		}
	}
	// The id is unique in the database. With a second condition DuckDB scans the table,
	// and SQLite may scan the collection.
	byID, err := x.read(ctx, collection, query.Embeddings, ids)
	if err != nil {
		return nil, err
	}
	found := make([]store.VectorHit, 0, len(ids))
	for _, hit := range hits[:len(ids)] {
		// The row may have changed since the search.
		if item, ok := byID[hit.ID]; ok && query.Filter.MatchesObject(item.Metadata) {
			found = append(found, store.VectorHit{VectorItem: item, Score: float64(hit.Similarity)})
		}
	}
	return found, nil
}

// Get returns the existing items with these ids.
func (x *Index) Get(ctx context.Context, collection string, ids ...string) ([]store.VectorItem, error) {
	if err := x.ready(ctx); err != nil {
		return nil, err
	}
	if ids = storable(ids); !named(collection) || len(ids) == 0 {
		return nil, nil
	}
	known, err := x.idsOf(ctx, x.o.Engine.Query, collection, ids)
	if err != nil {
		return nil, fmt.Errorf("read collection %q: %w", collection, err)
	}
	numbers := make([]any, 0, len(known))
	for _, id := range known {
		numbers = append(numbers, id)
	}
	byID, err := x.read(ctx, collection, true, numbers)
	if err != nil {
		return nil, err
	}
	var items []store.VectorItem
	for _, id := range ids {
		if item, ok := byID[known[id]]; ok {
			items = append(items, item)
		}
	}
	return items, nil
}

// List returns the items of a collection in the order of their ids.
func (x *Index) List(ctx context.Context, collection string, page store.VectorPage) ([]store.VectorItem, error) {
	if err := x.ready(ctx); err != nil || page.Limit < 1 || !named(collection) {
		return nil, err
	}
	rows, err := x.o.Engine.Query(ctx, "SELECT "+columns(page.Embeddings)+" FROM vectors WHERE collection = ? AND name > ? ORDER BY name LIMIT ?", collection, page.After, page.Limit)
	var items []store.VectorItem
	if err := scanItems(rows, err, func(_ int64, item store.VectorItem) { items = append(items, item) }); err != nil {
		return nil, fmt.Errorf("list collection %q: %w", collection, err)
	}
	return items, nil
}

// columns are the columns that scanItems reads.
func columns(embeddings bool) string {
	if embeddings {
		return "id, name, text, metadata, embedding"
	}
	return "id, name, text, metadata, NULL"
}

// read returns the items of the rows with these ids, by the ids.
func (x *Index) read(ctx context.Context, collection string, embeddings bool, ids []any) (map[int64]store.VectorItem, error) {
	found := make(map[int64]store.VectorItem, len(ids))
	for part := range slices.Chunk(ids, lookUp) {
		list, args := store.InList(part)
		rows, err := x.o.Engine.Query(ctx, "SELECT "+columns(embeddings)+" FROM vectors WHERE id IN "+list, args...)
		if err := scanItems(rows, err, func(id int64, item store.VectorItem) { found[id] = item }); err != nil {
			return nil, fmt.Errorf("read collection %q: %w", collection, err)
		}
	}
	return found, nil
}

func scanItems(rows store.Rows, err error, add func(id int64, item store.VectorItem)) error {
	var id int64
	var name, text string
	var raw, metadata []byte
	return store.Scan(rows, err, func() {
		item := store.VectorItem{ID: name, Text: text, Embedding: fromBytes(raw)}
		if metadata != nil {
			decoded, err := value.Decode(metadata)
			object, ok := decoded.(map[string]any)
			item.Metadata, item.Damaged = object, err != nil || !ok
		}
		add(id, item)
	}, &id, &name, &text, &metadata, &raw)
}
