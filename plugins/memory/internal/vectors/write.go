package vectors

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/the-edge-agent/tea/plugins/memory/internal/deletion"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// lookUp is the maximum number of ids that one statement looks up.
const lookUp = 200

// identity is the id and the number of an existing row.
type identity struct{ id, seq int64 }

// batch are the writes to a collection in a transaction.
type batch struct {
	x          *Index
	tx         store.Tx
	now        int64
	collection string
	dimension  int // 0 = the collection does not exist
	known      map[string]identity
	writes     []*store.RowWrite
}

// Begin sets the results of writes before they are done, and returns the function that
// does those that are not refused.
func (x *Index) Begin(ctx context.Context, tx store.Tx, writes []*store.RowWrite, now int64) (func(context.Context) error, error) {
	if err := x.ready(ctx); err != nil {
		return nil, err
	}
	var all []*batch
	byName := map[string]*batch{}
	for _, w := range writes {
		b := byName[w.Space]
		if b == nil {
			b = &batch{x: x, tx: tx, now: now, collection: w.Space}
			byName[w.Space], all = b, append(all, b)
		}
		b.writes = append(b.writes, w)
	}
	for _, b := range all {
		if err := b.check(ctx); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		for _, b := range all {
			if err := b.write(ctx); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// check sets the results of the writes.
func (b *batch) check(ctx context.Context) (err error) {
	if b.dimension, err = b.x.dimension(ctx, b.tx.Query, b.collection); err != nil {
		return err
	}
	names := make([]string, len(b.writes))
	for i, w := range b.writes {
		names[i] = w.Key
	}
	if b.known, err = b.x.find(ctx, b.tx.Query, b.collection, names); err != nil {
		return err
	}
	dimension := b.dimension
	for _, w := range b.writes {
		have, exists := b.known[w.Key]
		w.Result = store.RowResult{Seq: have.seq, Live: exists, Unmet: !w.If.Met(exists, have.seq, 0)}
		if w.Result.Unmet || w.Deleted {
			continue
		}
		if dimension == 0 {
			dimension = len(w.Body) / 4
		}
		if len(w.Body)/4 != dimension {
			w.Result.Dimension = dimension
		}
	}
	return nil
}

func (b *batch) write(ctx context.Context) error {
	var changes []change
	var added, deleted [][]any
	for _, w := range b.writes {
		if w.Result.Refused() || w.Deleted && !w.Result.Live {
			continue
		}
		if changes == nil {
			var err error
			if changes, err = b.x.mark(ctx, b.tx, b.collection); err != nil {
				return err
			}
		}
		one := change{seq: b.x.nextSeq(), id: b.known[w.Key].id}
		if w.Deleted {
			w.Result.Seq = 0
			if err := b.remove(ctx, one); err != nil {
				return err
			}
			deleted = append(deleted, deletion.Row(store.VectorFeed, one.seq, b.collection, w.Key, b.now))
			changes = append(changes, one)
			continue
		}
		if err := b.create(ctx, len(w.Body)/4); err != nil {
			return err
		}
		w.Result.Seq = one.seq
		one.vector, one.metadata = Decode(w.Body), w.Metadata
		if w.Result.Live {
			if _, err := b.tx.Exec(ctx, "UPDATE vectors SET seq = ?, text = ?, embedding = ?, metadata = ? WHERE id = ?", one.seq, w.Text, w.Body, orNull(w.Metadata), one.id); err != nil {
				return err
			}
		} else {
			one.id = b.x.nextID()
			added = append(added, []any{one.id, b.collection, w.Key, one.seq, w.Text, w.Body, orNull(w.Metadata)})
		}
		changes = append(changes, one)
	}
	if err := b.tx.Append(ctx, deletion.Table, deleted...); err != nil {
		return err
	}
	if err := b.tx.Append(ctx, "vectors", added...); err != nil {
		return err
	}
	b.x.notifyAfterCommit(b.tx, b.collection, changes)
	return nil
}

// remove deletes a row.
func (b *batch) remove(ctx context.Context, gone change) error {
	if _, err := b.tx.Exec(ctx, "DELETE FROM vectors WHERE id = ?", gone.id); err != nil {
		return err
	}
	_, err := b.tx.Exec(ctx, "INSERT INTO vectors_gone VALUES (?, ?, ?)", gone.id, b.collection, gone.seq)
	return err
}

// create adds the collection if it is new.
func (b *batch) create(ctx context.Context, dimension int) error {
	if b.dimension > 0 {
		return nil
	}
	b.dimension = dimension
	// A companion file would be of a dropped collection with this name.
	if err := os.Remove(b.x.path(b.collection)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("create collection %q: %w", b.collection, err)
	}
	if _, err := b.tx.Exec(ctx, "INSERT INTO vector_collections VALUES (?, ?)", b.collection, dimension); err != nil {
		return err
	}
	b.tx.AfterCommit(func() {
		b.x.mu.Lock()
		defer b.x.mu.Unlock()
		b.x.created = append(b.x.created, b.collection)
	})
	return nil
}

// OpenCreated opens the indexes of new collections, so that their graphs are built
// before the first search.
func (x *Index) OpenCreated(ctx context.Context) {
	x.mu.Lock()
	created := x.created
	x.created = nil
	x.mu.Unlock()
	for _, collection := range created {
		if _, err := x.collection(ctx, collection); err != nil {
			x.o.Logger.Warn("open the index of a new collection", "collection", collection, "error", err.Error())
		}
	}
}

// mark returns the first change of this process to a collection: a row of vectors_gone
// with a negative id, chosen at random. The companion file has the last mark, too, and
// so recognizes rows that were replaced by those of a copy, in which other changes have
// the same numbers.
func (x *Index) mark(ctx context.Context, tx store.Tx, collection string) ([]change, error) {
	x.mu.Lock()
	marked := x.marked[collection]
	x.mu.Unlock()
	if marked {
		return nil, nil
	}
	one := change{seq: x.nextSeq(), id: -1 - rand.Int64()}
	if _, err := tx.Exec(ctx, "INSERT INTO vectors_gone VALUES (?, ?, ?)", one.id, collection, one.seq); err != nil {
		return nil, err
	}
	tx.AfterCommit(func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.marked[collection] = true
	})
	return []change{one}, nil
}

// notifyAfterCommit applies changes to the index after the commit, if it is open.
func (x *Index) notifyAfterCommit(tx store.Tx, collection string, changes []change) {
	tx.AfterCommit(func() {
		x.mu.Lock()
		c := x.open[collection]
		x.mu.Unlock()
		if c != nil {
			c.applyCommitted(changes)
		}
	})
}

// Drop removes a collection, its rows and its companion file.
func (x *Index) Drop(ctx context.Context, collection string) (items int, existed bool, err error) {
	if err := x.ready(ctx); err != nil {
		return 0, false, err
	}
	x.opening.Lock() // do not open an index with removed rows
	defer x.opening.Unlock()
	err = x.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		dimension, err := x.dimension(ctx, tx.Query, collection)
		if existed = dimension > 0; err != nil || !existed {
			return err
		}
		n, err := store.Int(tx.Query(ctx, "SELECT count(*) FROM vectors WHERE collection = ?", collection))
		if err != nil {
			return err
		}
		items = int(n)
		// The numbers have the order of the items' previous numbers.
		if _, err := tx.Exec(ctx, "INSERT INTO tea_deleted SELECT ?, ? + row_number() OVER (ORDER BY seq), collection, name, ? FROM vectors WHERE collection = ?",
			string(store.VectorFeed), x.takeSeq(n), x.o.Now().UnixMicro(), collection); err != nil {
			return err
		}
		for _, statement := range []string{"DELETE FROM vectors WHERE collection = ?", "DELETE FROM vectors_gone WHERE collection = ?", "DELETE FROM vector_collections WHERE name = ?"} {
			if _, err := tx.Exec(ctx, statement, collection); err != nil {
				return err
			}
		}
		// The last numbers stay, so that they are not assigned again.
		seq := x.nextSeq()
		if _, err := tx.Exec(ctx, "INSERT INTO vectors_gone VALUES (?, ?, ?)", x.lastID(), collection, seq); err != nil {
			return err
		}
		tx.AfterCommit(func() { x.forget(collection) })
		return nil
	})
	if err != nil {
		x.markStale(collection, err)
		return 0, false, err
	}
	return items, existed, nil
}

// forget closes the index of a dropped collection and removes its file. Writers wait,
// since they could create the collection again.
func (x *Index) forget(collection string) {
	x.mu.Lock()
	c := x.open[collection]
	delete(x.open, collection)
	delete(x.stale, collection)
	delete(x.marked, collection)
	x.mu.Unlock()
	var err error
	if c != nil {
		err = c.index.Close()
	}
	if removed := os.Remove(x.path(collection)); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	if err != nil {
		x.o.Logger.Warn("remove the vector index of a dropped collection", "collection", collection, "error", err.Error())
	}
}

// find returns the rows that exist, by the items' names.
func (x *Index) find(ctx context.Context, query queryFunc, collection string, names []string) (map[string]identity, error) {
	known := make(map[string]identity, len(names))
	for part := range slices.Chunk(names, lookUp) {
		list, args := store.InList(part)
		find := "SELECT name, id, seq FROM vectors WHERE name IN " + list + " AND collection = ?"
		if x.o.Engine.Dialect() == store.DuckDB {
			// DuckDB uses an index only for a condition on its column alone.
			find = "WITH named AS MATERIALIZED (SELECT collection, name, id, seq FROM vectors WHERE name IN " + list + ") SELECT name, id, seq FROM named WHERE collection = ?"
		}
		rows, err := query(ctx, find, append(args, collection)...)
		var name string
		var one identity
		if err := store.Scan(rows, err, func() { known[name] = one }, &name, &one.id, &one.seq); err != nil {
			return nil, err
		}
	}
	return known, nil
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
