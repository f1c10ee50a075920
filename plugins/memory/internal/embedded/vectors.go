package embedded

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	internal "github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// vectors are the rows of collections and their indexes.
type vectors struct {
	*options
	numbers numbers

	opening sync.Mutex // held while a collection is opened
	mu      sync.Mutex // guards the fields below
	open    map[string]*collection
	closed  bool
	// stale are the collections whose files may lack a change, see markStale, or are
	// damaged.
	stale map[string]bool
	// marked are the collections that have the mark of this process; see mark.
	marked map[string]bool
	// background waits for running flushes.
	background sync.WaitGroup
}

func newVectors(o *options) *vectors {
	return &vectors{options: o, open: map[string]*collection{}, stale: map[string]bool{}, marked: map[string]bool{}}
}

// close writes the companion files.
func (x *vectors) close() error {
	x.opening.Lock()
	defer x.opening.Unlock()
	x.mu.Lock()
	open := x.open
	x.open, x.closed = map[string]*collection{}, true
	x.mu.Unlock()
	x.background.Wait()
	for _, c := range open {
		c.close()
	}
	return nil
}

// ready reads the last assigned numbers, once.
func (x *vectors) ready(ctx context.Context) error {
	x.mu.Lock()
	closed := x.closed
	x.mu.Unlock()
	if closed {
		return errClosed()
	}
	return x.numbers.ready(func() (int64, int64, error) { return lastNumbers(ctx, x.engine, "vectors") })
}

// collection returns an open collection, complete up to the last commit. The error of a
// collection that does not exist wraps store.ErrNotFound.
func (x *vectors) collection(ctx context.Context, name string) (*collection, error) {
	if c, err := x.opened(name); c != nil || err != nil {
		return c, err
	}
	x.opening.Lock()
	defer x.opening.Unlock()
	if c, err := x.opened(name); c != nil || err != nil {
		return c, err
	}
	dimension, err := x.dimension(ctx, x.engine.Query, name)
	if err != nil {
		return nil, err
	}
	if dimension == 0 {
		return nil, fmt.Errorf("collection %q: %w", name, store.ErrNotFound)
	}
	if err := x.ready(ctx); err != nil {
		return nil, err
	}
	if !x.readOnly {
		if err := os.MkdirAll(filepath.Dir(x.path(name)), 0o700); err != nil {
			return nil, fmt.Errorf("make the folder of the vector indexes: %w", err)
		}
	}
	c, err := x.openCollection(ctx, name, dimension)
	if err != nil {
		return nil, fmt.Errorf("open the vector index of %q: %w", name, err)
	}
	return c, nil
}

func (x *vectors) opened(name string) (*collection, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, errClosed()
	}
	return x.open[name], nil
}

// path returns the path of a collection's companion file. Any name is allowed.
func (x *vectors) path(name string) string {
	return filepath.Join(x.Dir, "vectors", hex.EncodeToString([]byte(name))+".vectors")
}

type queryFunc func(ctx context.Context, query string, args ...any) (store.Rows, error)

// dimension returns the dimension of a collection, 0 if it does not exist.
func (x *vectors) dimension(ctx context.Context, query queryFunc, name string) (int, error) {
	dimension, err := store.Int(query(ctx, "SELECT dimension FROM vector_collections WHERE name = ?", name))
	if err != nil {
		return 0, fmt.Errorf("read collection %q: %w", name, err)
	}
	return int(dimension), nil
}

// idsOf returns the ids of the rows that exist, by the items' names.
func (x *vectors) idsOf(ctx context.Context, query queryFunc, collection string, names []string) (map[string]int64, error) {
	known := make(map[string]int64, len(names))
	err := eachPart(names, func(list string, args []any) error {
		find := "SELECT name, id FROM vectors WHERE name IN " + list + " AND collection = ?"
		if x.engine.Dialect() == store.DuckDB {
			// DuckDB uses an index only for a condition on its column alone.
			find = "WITH named AS MATERIALIZED (SELECT collection, name, id FROM vectors WHERE name IN " + list + ") SELECT name, id FROM named WHERE collection = ?"
		}
		rows, err := query(ctx, find, append(args, collection)...)
		var name string
		var id int64
		return store.Scan(rows, err, func() { known[name] = id }, &name, &id)
	})
	return known, err
}

func vectorColumns(noBody bool) string {
	if noBody {
		return "id, seq, collection, name, text, NULL, metadata"
	}
	return "id, seq, collection, name, text, embedding, metadata"
}

func scanVectors(rows store.Rows, err error, add func(*store.Row)) error {
	var r store.Row
	var raw []byte
	var metadata text
	return store.Scan(rows, err, func() {
		r.Feed, r.Body, r.Metadata = store.VectorFeed, raw, metadata.String
		add(&r)
		raw = nil // not shared with the next row
	}, &r.ID, &r.Seq, &r.Space, &r.Key, &r.Text, &raw, &metadata)
}

// byID reads the rows with these ids. The id is unique in the database. With a second condition DuckDB scans the table,
// and SQLite may scan the collection.
func (x *vectors) byID(ctx context.Context, noBody bool, ids []int64) (found []store.Row, err error) {
	found = make([]store.Row, 0, len(ids))
	err = eachPart(ids, func(list string, args []any) error {
		rows, err := x.engine.Query(ctx, "SELECT "+vectorColumns(noBody)+" FROM vectors WHERE id IN "+list, args...)
		return scanVectors(rows, err, func(r *store.Row) { found = append(found, *r) })
	})
	return found, err
}

func (x *vectors) get(ctx context.Context, q store.RowQuery) ([]store.Row, error) {
	if err := x.ready(ctx); err != nil {
		return nil, err
	}
	ids := q.IDs
	for collection, names := range keysOf(q.Names) {
		known, err := x.idsOf(ctx, x.engine.Query, collection, names)
		if err != nil {
			return nil, err
		}
		ids = slices.AppendSeq(ids, maps.Values(known))
	}
	return x.byID(ctx, q.NoBody, ids)
}

func (x *vectors) scan(ctx context.Context, q store.RowRange, p *page) error {
	rows, err := x.engine.Query(ctx, "SELECT "+vectorColumns(q.NoBody)+" FROM vectors WHERE collection = ? AND name > ? ORDER BY name LIMIT ?", q.Space, q.After, q.Limit)
	n := 0
	err = scanVectors(rows, err, func(r *store.Row) {
		n++
		p.add(r)
	})
	p.More = p.More || n == q.Limit
	return err
}

// changes reads rows and tombstones in one statement, so that no change is missed between two.
func (x *vectors) changes(ctx context.Context, q store.RowChanges, p *page) error {
	rows, err := x.engine.Query(ctx, "SELECT "+vectorColumns(false)+" FROM vectors WHERE seq > ? UNION ALL "+
		"SELECT 0, seq, space, key, '', NULL, NULL FROM tea_deleted WHERE feed = ? AND seq > ? ORDER BY 2 LIMIT ?",
		q.After, string(store.VectorFeed), q.After, q.Limit+1)
	return scanVectors(rows, err, func(r *store.Row) {
		r.Deleted = r.Body == nil
		p.add(r)
	})
}

// spaces describes collections in the order of their names.
func (x *vectors) spaces(ctx context.Context, names []string) (all []store.Space, err error) {
	if err := x.ready(ctx); err != nil {
		return nil, err
	}
	where, args := "", []any(nil)
	if len(names) > 0 {
		where, args = store.InList(names)
		where = " WHERE name IN " + where
	}
	rows, err := x.engine.Query(ctx, "SELECT name, dimension, (SELECT count(*) FROM vectors WHERE collection = vector_collections.name) FROM vector_collections"+where+" ORDER BY name", args...)
	var s store.Space
	if err := store.Scan(rows, err, func() { all = append(all, s) }, &s.Name, &s.Dimension, &s.Count); err != nil {
		return nil, fmt.Errorf("list the collections: %w", err)
	}
	return all, nil
}

// nearest returns the rows nearest to the query, none if the collection does not exist.
func (x *vectors) nearest(ctx context.Context, collection string, q store.VectorQuery) ([]store.Row, []float64, error) {
	if q.K < 1 || !internal.Named(collection) {
		return nil, nil, x.ready(ctx)
	}
	for try := 0; ; try++ {
		hits, err := x.hits(ctx, collection, q)
		// A failed index was closed; the next search opens it again.
		if err == nil {
			return x.rowsOf(ctx, collection, hits, q)
		}
		if try > 0 || !errors.Is(err, vector.ErrClosed) && !errors.Is(err, vector.ErrDamaged) {
			return nil, nil, err
		}
	}
}

func (x *vectors) hits(ctx context.Context, collection string, q store.VectorQuery) ([]vector.Hit, error) {
	c, err := x.collection(ctx, collection)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := internal.CheckQuery(q.Embedding); err != nil {
		return nil, err
	}
	options := vector.SearchOptions{Exact: q.Exact}
	if len(q.Filter) > 0 {
		options.Among, err = c.metadata.Matching(ctx, q.Filter, func(ctx context.Context) (store.Rows, error) {
			return x.engine.Query(ctx, "SELECT id, metadata FROM vectors WHERE collection = ?", c.name)
		})
		if err != nil {
			return nil, fmt.Errorf("filter collection %q: %w", collection, err)
		}
	}
	hits, err := c.index.Search(ctx, q.Embedding, q.K, options)
	if errors.Is(err, vector.ErrDamaged) {
		x.mu.Lock()
		if x.open[collection] == c {
			x.stale[collection] = true // to read all rows again
		}
		x.mu.Unlock()
		c.drop(err)
	}
	if err != nil {
		return nil, internal.SearchError(collection, q.Embedding, c.dimension, err)
	}
	return hits, nil
}

// rowsOf reads the rows of hits, which may have changed since the search.
func (x *vectors) rowsOf(ctx context.Context, collection string, hits []vector.Hit, q store.VectorQuery) (rows []store.Row, similarities []float64, err error) {
	ids := make([]int64, 0, len(hits))
	for _, hit := range hits {
		if float64(hit.Similarity) >= q.MinScore {
			ids = append(ids, hit.ID)
		}
	}
	found, err := x.byID(ctx, !q.Embeddings, ids)
	if err != nil {
		return nil, nil, fmt.Errorf("read collection %q: %w", collection, err)
	}
	byID := make(map[int64]*store.Row, len(found))
	for i := range found {
		byID[found[i].ID] = &found[i]
	}
	rows, similarities = make([]store.Row, 0, len(found)), make([]float64, 0, len(found))
	for _, hit := range hits[:len(ids)] {
		if r := byID[hit.ID]; r != nil {
			rows, similarities = append(rows, *r), append(similarities, float64(hit.Similarity))
		}
	}
	return rows, similarities, nil
}

// view returns the table vectors for queries of users, without the embeddings.
func (x *vectors) view() store.View {
	metadata := "v.metadata"
	if x.engine.Dialect() == store.DuckDB {
		metadata = "try_cast(v.metadata AS JSON)" // NULL if it is damaged
	}
	return store.View{
		Name:    "vectors",
		Columns: []store.Column{{Name: "collection"}, {Name: "id"}, {Name: "text"}, {Name: "metadata", Type: store.JSON}, {Name: "dimension"}},
		Query:   "SELECT v.collection, v.name, v.text, " + metadata + ", c.dimension FROM main.vectors AS v JOIN main.vector_collections AS c ON c.name = v.collection",
	}
}
