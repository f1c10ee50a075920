package vectors

import (
	"context"
	"errors"
	"fmt"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/deletion"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Nearest returns the rows nearest to the query, none if the collection does not exist.
// See [store.NearestSearcher].
func (x *Index) Nearest(ctx context.Context, collection string, query store.VectorQuery) ([]store.Row, []float64, error) {
	if query.K < 1 || !Named(collection) {
		return nil, nil, x.ready(ctx)
	}
	for try := 0; ; try++ {
		rows, similarities, err := x.search(ctx, collection, query)
		// A failed index was closed; the next search opens it again.
		if try > 0 || !errors.Is(err, vector.ErrClosed) {
			return rows, similarities, err
		}
	}
}

func (x *Index) search(ctx context.Context, collection string, query store.VectorQuery) ([]store.Row, []float64, error) {
	c, err := x.collection(ctx, collection)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if len(query.Embedding) > 0 && !slices.ContainsFunc(query.Embedding, func(f float32) bool { return f != 0 }) {
		return nil, nil, tea.Errorf(tea.ValidationError, "the embedding of the query is all zeros, which are similar to nothing")
	}
	options := vector.SearchOptions{Exact: query.Exact}
	if len(query.Filter) > 0 {
		options.Among, err = c.metadata.Matching(ctx, query.Filter, func(ctx context.Context) (store.Rows, error) {
			return x.o.Engine.Query(ctx, "SELECT id, metadata FROM vectors WHERE collection = ?", c.name)
		})
		if err != nil {
			return nil, nil, fmt.Errorf("filter collection %q: %w", collection, err)
		}
	}
	hits, err := c.index.Search(ctx, query.Embedding, query.K, options)
	switch {
	case errors.Is(err, vector.ErrDimension):
		return nil, nil, WrongDimension(collection, len(query.Embedding), c.dimension)
	case errors.Is(err, vector.ErrNotFinite):
		return nil, nil, tea.Errorf(tea.ValidationError, "the embedding of the query: %w", err)
	case err != nil:
		return nil, nil, fmt.Errorf("search collection %q: %w", collection, err)
	}
	return x.rowsOf(ctx, collection, hits, query)
}

// rowsOf reads the rows of hits.
func (x *Index) rowsOf(ctx context.Context, collection string, hits []vector.Hit, query store.VectorQuery) (rows []store.Row, similarities []float64, err error) {
	ids := make([]int64, 0, len(hits))
	for _, hit := range hits {
		if float64(hit.Similarity) >= query.MinScore {
			ids = append(ids, hit.ID)
		}
	}
	found, err := x.byID(ctx, shape{collection, !query.Embeddings, len(ids)}, ids)
	if err != nil {
		return nil, nil, err
	}
	byID := make(map[int64]*store.Row, len(found))
	for i := range found {
		byID[found[i].ID] = &found[i]
	}
	for _, hit := range hits[:len(ids)] {
		// The row may have changed since the search.
		if r := byID[hit.ID]; r != nil && (len(query.Filter) == 0 || filter.Matches([]byte(r.Metadata), query.Filter)) {
			rows, similarities = append(rows, *r), append(similarities, float64(hit.Similarity))
		}
	}
	return rows, similarities, nil
}

// Get returns the existing rows.
func (x *Index) Get(ctx context.Context, q store.RowQuery) ([]store.Row, error) {
	if err := x.ready(ctx); err != nil {
		return nil, err
	}
	byCollection := map[string][]string{}
	for _, n := range q.Names {
		byCollection[n.Space] = append(byCollection[n.Space], n.Key)
	}
	all, err := x.byID(ctx, shape{"", q.NoBody, len(q.IDs)}, q.IDs)
	for collection, names := range byCollection {
		known, err := x.find(ctx, x.o.Engine.Query, collection, names)
		if err != nil {
			return nil, err
		}
		ids := make([]int64, 0, len(known))
		for _, one := range known {
			ids = append(ids, one.id)
		}
		s := shape{collection, q.NoBody, len(ids)}
		if q.Numbered {
			s.collection = ""
		}
		rows, err := x.byID(ctx, s, ids)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, err
}

// shape is how much of rows is read: each column takes time.
type shape struct {
	collection string // if it is known; "" = it is read, with the numbers
	noBody     bool
	rows       int // that are likely
}

func (s shape) columns() string {
	columns := "id, name, text, metadata, embedding"
	if s.noBody {
		columns = "id, name, text, metadata, NULL"
	}
	if s.collection == "" {
		columns += ", seq, collection"
	}
	return columns
}

func (s shape) scan(rows store.Rows, err error) (all []store.Row, _ error) {
	r := store.Row{RecordName: store.RecordName{Feed: store.VectorFeed, Space: s.collection}}
	all = make([]store.Row, 0, min(s.rows, 1000))
	var metadata []byte
	dest := []any{&r.ID, &r.Key, &r.Text, &metadata, &r.Body}
	if s.collection == "" {
		dest = append(dest, &r.Seq, &r.Space)
	}
	err = store.Scan(rows, err, func() {
		r.Metadata = string(metadata)
		all = append(all, r)
		r.Body = nil // not shared with the next row
	}, dest...)
	return all, err
}

// byID returns the rows with these ids. The id is unique in the database: with a second
// condition DuckDB scans the table, and SQLite may scan the collection.
func (x *Index) byID(ctx context.Context, s shape, ids []int64) (all []store.Row, err error) {
	for part := range slices.Chunk(ids, lookUp) {
		list, args := store.InList(part)
		rows, err := s.scan(x.o.Engine.Query(ctx, "SELECT "+s.columns()+" FROM vectors WHERE id IN "+list, args...))
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

// Scan returns the rows of a collection in the order of their names.
func (x *Index) Scan(ctx context.Context, q store.RowRange) (page store.RowPage, err error) {
	if err := x.ready(ctx); err != nil {
		return page, err
	}
	args, below := []any{q.Space, q.After}, ""
	if q.Prefix != "" {
		args, below = append(args, q.Prefix, q.Prefix), " AND substr(name, 1, length(?)) = ?"
	}
	s := shape{q.Space, q.NoBody, q.Limit}
	page.Rows, err = s.scan(x.o.Engine.Query(ctx, "SELECT "+s.columns()+" FROM vectors WHERE collection = ? AND name > ?"+below+" ORDER BY name LIMIT ?", append(args, q.Limit)...))
	page.More = len(page.Rows) == q.Limit
	return page, err
}

// Changes returns the rows and tombstones after a number.
func (x *Index) Changes(ctx context.Context, q store.RowChanges) (store.RowPage, error) {
	if err := x.ready(ctx); err != nil {
		return store.RowPage{}, err
	}
	// One statement, so that no change is missed between two.
	s := shape{}
	rows, err := s.scan(x.o.Engine.Query(ctx, "SELECT "+s.columns()+" FROM vectors WHERE seq > ? UNION ALL "+
		"SELECT 0, key, '', NULL, NULL, seq, space FROM tea_deleted WHERE feed = ? AND seq > ? ORDER BY 6 LIMIT ?", q.After, string(store.VectorFeed), q.After, q.Limit))
	for i := range rows {
		rows[i].Deleted = rows[i].Body == nil
	}
	return deletion.RowPage(q, rows), err
}
