package vectors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/filter"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
)

// Search gives the items nearest to the query. A collection that does not
// exist has none.
func (x *Index) Search(ctx context.Context, collection string, query store.VectorQuery) ([]store.VectorHit, error) {
	if query.K < 1 || !named(collection) {
		return nil, x.ready(ctx)
	}
	for try := 0; ; try++ {
		hits, err := x.search(ctx, collection, query)
		// An index that failed is closed, and opened again by the next search.
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
	options := vector.SearchOptions{Exact: query.Exact}
	if len(query.Filter) > 0 {
		accepted, err := x.accepted(ctx, collection, query.Filter)
		if err != nil {
			return nil, err
		}
		options.Accept = func(id int64) bool { _, ok := accepted[id]; return ok }
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
	case !slices.ContainsFunc(query.Embedding, func(f float32) bool { return f != 0 }):
		return nil, nil // it has no direction: nothing is near it
	}
	return x.items(ctx, collection, hits, query.MinScore)
}

// accepted are the numbers of the items that pass the filter.
func (x *Index) accepted(ctx context.Context, collection string, wanted filter.Filter) (map[int64]struct{}, error) {
	rows, err := x.o.Engine.Query(ctx, "SELECT id, metadata FROM vectors WHERE collection = ?", collection)
	if err != nil {
		return nil, fmt.Errorf("filter collection %q: %w", collection, err)
	}
	defer rows.Close()
	accepted := map[int64]struct{}{}
	for rows.Next() {
		var id int64
		var metadata []byte
		if err := rows.Scan(&id, &metadata); err != nil {
			return nil, fmt.Errorf("filter collection %q: %w", collection, err)
		}
		if filter.Matches(metadata, wanted) {
			accepted[id] = struct{}{}
		}
	}
	return accepted, rows.Err()
}

// items reads the rows of hits.
func (x *Index) items(ctx context.Context, collection string, hits []vector.Hit, minScore float64) ([]store.VectorHit, error) {
	ids := make([]any, 0, len(hits))
	for _, hit := range hits {
		ids = append(ids, hit.ID)
	}
	byID, err := x.read(ctx, "id", collection, ids)
	if err != nil {
		return nil, err
	}
	found := make([]store.VectorHit, 0, len(hits))
	for _, hit := range hits {
		item, there := byID[hit.ID]
		if score := float64(hit.Similarity); there && score >= minScore {
			found = append(found, store.VectorHit{VectorItem: item, Score: score})
		}
	}
	return found, nil
}

// Get gives the items under these ids that are there.
func (x *Index) Get(ctx context.Context, collection string, ids ...string) ([]store.VectorItem, error) {
	if err := x.ready(ctx); err != nil {
		return nil, err
	}
	if ids = storable(ids); !named(collection) || len(ids) == 0 {
		return nil, nil
	}
	names := make([]any, 0, len(ids))
	for _, id := range ids {
		names = append(names, id)
	}
	byID, err := x.read(ctx, "name", collection, names)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]store.VectorItem, len(byID))
	for _, item := range byID {
		byName[item.ID] = item
	}
	var items []store.VectorItem
	for _, id := range ids {
		if item, ok := byName[id]; ok {
			items = append(items, item)
		}
	}
	return items, nil
}

// read gives the items whose column has one of the values, by their numbers.
func (x *Index) read(ctx context.Context, column, collection string, values []any) (map[int64]store.VectorItem, error) {
	found := make(map[int64]store.VectorItem, len(values))
	for len(values) > 0 {
		n := min(len(values), lookUp)
		args := append([]any{collection}, values[:n]...)
		values = values[n:]
		rows, err := x.o.Engine.Query(ctx, "SELECT id, name, text, embedding, metadata FROM vectors WHERE collection = ? AND "+column+" IN (?"+strings.Repeat(", ?", n-1)+")", args...)
		if err != nil {
			return nil, fmt.Errorf("read collection %q: %w", collection, err)
		}
		if err := scanItems(rows, found); err != nil {
			return nil, fmt.Errorf("read collection %q: %w", collection, err)
		}
	}
	return found, nil
}

func scanItems(rows store.Rows, found map[int64]store.VectorItem) error {
	defer rows.Close()
	for rows.Next() {
		var id int64
		var item store.VectorItem
		var raw, metadata []byte
		if err := rows.Scan(&id, &item.ID, &item.Text, &raw, &metadata); err != nil {
			return err
		}
		item.Embedding = fromBytes(raw)
		if metadata != nil {
			decoded, err := value.Decode(metadata)
			if err != nil {
				return fmt.Errorf("metadata of %q: %w", item.ID, err)
			}
			item.Metadata, _ = decoded.(map[string]any)
		}
		found[id] = item
	}
	return rows.Err()
}
