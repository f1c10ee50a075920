package vectors

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Options configure an Index. Engine and Dir are required.
type Options struct {
	Engine store.QueryEngine
	// Dir is the folder of the companion files.
	Dir string
	// Search has the options of the indexes; Dimension, Owner and Logger are not used.
	Search vector.Options
	// ReadOnly prevents writes to the engine and to Dir.
	ReadOnly bool
	Logger   *slog.Logger
}

// Index stores vectors in a database. It is safe for concurrent use.
type Index struct {
	o     Options
	clock *clock.Clock

	opening sync.Mutex // held while a collection is opened
	mu      sync.Mutex // guards the fields below
	known   bool       // seq and id were read
	seq, id int64
	open    map[string]*collection
	closed  bool
	// stale are the collections whose files may lack a change; see markStale.
	stale map[string]bool
	// marked are the collections that have the mark of this process; see mark.
	marked map[string]bool
	// background waits for running flushes.
	background sync.WaitGroup
}

var _ store.VectorIndex = (*Index)(nil)

// New returns an index. The caller closes the engine after the index.
func New(o Options) *Index {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Index{o: o, clock: clock.New(), open: map[string]*collection{}, stale: map[string]bool{}, marked: map[string]bool{}}
}

// Close writes the companion files.
func (x *Index) Close() error {
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
func (x *Index) ready(ctx context.Context) error {
	x.mu.Lock()
	known, closed := x.known, x.closed
	x.mu.Unlock()
	switch {
	case closed:
		return errClosed()
	case known:
		return nil
	}
	rows, err := x.o.Engine.Query(ctx, `SELECT coalesce(max(seq), 0), coalesce(max(id), 0) FROM (
		SELECT max(seq) AS seq, max(id) AS id FROM vectors UNION ALL SELECT max(seq), max(id) FROM vectors_gone) AS taken`)
	var seq, id int64
	if err := store.Scan(rows, err, func() {}, &seq, &id); err != nil {
		return fmt.Errorf("read the last number: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.known {
		x.known, x.seq, x.id = true, seq, id
	}
	return nil
}

// nextSeq and nextID may only be called in a transaction, because transactions do not
// run concurrently.
func (x *Index) nextSeq() int64 { return x.takeSeq(1) + 1 }

// takeSeq assigns the next n numbers and returns the number before them.
func (x *Index) takeSeq(n int64) (before int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before = x.seq
	x.seq += n
	return before
}

func (x *Index) nextID() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.id++
	return x.id
}

func (x *Index) lastID() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.id
}

// collection returns an open collection, complete up to the last commit. The error of a
// collection that does not exist wraps store.ErrNotFound.
func (x *Index) collection(ctx context.Context, name string) (*collection, error) {
	if c, err := x.opened(name); c != nil || err != nil {
		return c, err
	}
	x.opening.Lock()
	defer x.opening.Unlock()
	if c, err := x.opened(name); c != nil || err != nil {
		return c, err
	}
	dimension, err := x.dimension(ctx, x.o.Engine.Query, name)
	if err != nil {
		return nil, err
	}
	if dimension == 0 {
		return nil, fmt.Errorf("collection %q: %w", name, store.ErrNotFound)
	}
	if err := x.ready(ctx); err != nil {
		return nil, err
	}
	if !x.o.ReadOnly {
		if err := os.MkdirAll(x.o.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the folder of the vector indexes: %w", err)
		}
	}
	c, err := x.openCollection(ctx, name, dimension)
	if err != nil {
		return nil, fmt.Errorf("open the vector index of %q: %w", name, err)
	}
	return c, nil
}

// WaitBuilt waits until the graph of a collection is complete. Searches work without it.
func (x *Index) WaitBuilt(ctx context.Context, collection string) error {
	c, err := x.collection(ctx, collection)
	if err != nil {
		return err
	}
	return c.index.WaitBuilt(ctx)
}

func (x *Index) opened(name string) (*collection, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, errClosed()
	}
	return x.open[name], nil
}

// errClosed is the error of calls after Close.
func errClosed() error { return tea.Errorf(tea.ConnectionError, "the memory is closed") }

// markStale handles the error of a write. If the database failed, the rows may have been
// written although the index does not have them. The next change would move the
// watermark of the index beyond them.
func (x *Index) markStale(name string, err error) error {
	if e := new(tea.Error); !errors.As(err, &e) || e.Type != tea.ConnectionError {
		return err
	}
	x.mu.Lock()
	x.stale[name] = true
	c := x.open[name]
	x.mu.Unlock()
	if c != nil {
		c.drop(err)
	}
	return err
}

// path returns the path of a collection's companion file. Any name is allowed.
func (x *Index) path(name string) string {
	return filepath.Join(x.o.Dir, hex.EncodeToString([]byte(name))+".vectors")
}

type queryFunc func(ctx context.Context, query string, args ...any) (store.Rows, error)

// dimension returns the dimension of a collection, 0 if it does not exist.
func (x *Index) dimension(ctx context.Context, query queryFunc, name string) (int, error) {
	dimension, err := store.Int(query(ctx, "SELECT dimension FROM vector_collections WHERE name = ?", name))
	if err != nil {
		return 0, fmt.Errorf("read collection %q: %w", name, err)
	}
	return int(dimension), nil
}

// Collections describes the collections in the order of their names.
func (x *Index) Collections(ctx context.Context) ([]store.Collection, error) {
	if err := x.ready(ctx); err != nil {
		return nil, err
	}
	rows, err := x.o.Engine.Query(ctx, `SELECT name, dimension, (SELECT count(*) FROM vectors WHERE collection = vector_collections.name) FROM vector_collections ORDER BY name`)
	var all []store.Collection
	var c store.Collection
	if err := store.Scan(rows, err, func() { all = append(all, c) }, &c.Name, &c.Dimension, &c.Count); err != nil {
		return nil, fmt.Errorf("list the collections: %w", err)
	}
	return all, nil
}

// View returns the table vectors for queries of users, without the embeddings; see
// Query.
func View(dialect store.Dialect) store.View {
	metadata := "v.metadata"
	if dialect == store.DuckDB {
		metadata = "try_cast(v.metadata AS JSON)" // NULL if it is damaged
	}
	return store.View{
		Name:    "vectors",
		Columns: []store.Column{{Name: "collection"}, {Name: "id"}, {Name: "text"}, {Name: "metadata", Type: store.JSON}, {Name: "dimension"}},
		Query:   "SELECT v.collection, v.name, v.text, " + metadata + ", c.dimension FROM main.vectors AS v JOIN main.vector_collections AS c ON c.name = v.collection",
	}
}
