package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"

	internal "github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// collectionWrites are the writes to a collection.
type collectionWrites struct {
	name      string
	keys      []string
	writes    []*store.RowWrite
	known     map[string]int64 // the ids of existing items
	dimension int              // 0 = the collection does not exist
}

// byCollection groups writes by their collections, in the order of the first writes.
func byCollection(writes []*store.RowWrite) (all []*collectionWrites) {
	at := map[string]*collectionWrites{}
	for _, w := range writes {
		c := at[w.Space]
		if c == nil {
			c = &collectionWrites{name: w.Space}
			at[w.Space], all = c, append(all, c)
		}
		c.keys, c.writes = append(c.keys, w.Key), append(c.writes, w)
	}
	return all
}

// write applies the writes of vectors in a transaction, and returns the new collections.
func (x *vectors) write(ctx context.Context, tx store.Tx, b *store.Batch, writes []*store.RowWrite) (created []string, err error) {
	all := byCollection(writes)
	for _, c := range all {
		if err := x.check(ctx, tx, b, c); err != nil {
			return nil, err
		}
	}
	if refused(b, writes) {
		return nil, errRefused
	}
	for _, c := range all {
		isNew, err := x.writeTo(ctx, tx, b, c)
		if err != nil {
			return nil, err
		}
		if isNew {
			created = append(created, c.name)
		}
	}
	return created, nil
}

// check reads the state of a collection and sets the results of the writes that must not be applied.
func (x *vectors) check(ctx context.Context, tx store.Tx, b *store.Batch, c *collectionWrites) (err error) {
	if c.dimension, err = x.dimension(ctx, tx.Query, c.name); err != nil {
		return err
	}
	if c.known, err = x.idsOf(ctx, tx.Query, c.name, c.keys); err != nil {
		return err
	}
	numbers := map[int64]int64{}
	if b.Numbered {
		err = eachPart(slices.Collect(maps.Values(c.known)), func(list string, args []any) error {
			rows, err := tx.Query(ctx, "SELECT id, seq FROM vectors WHERE id IN "+list, args...)
			var id, seq int64
			return store.Scan(rows, err, func() { numbers[id] = seq }, &id, &seq)
		})
		if err != nil {
			return err
		}
	}
	dimension := c.dimension
	for _, w := range c.writes {
		id, exists := c.known[w.Key]
		w.Result.Live, w.Result.Seq = exists, numbers[id]
		w.Result.Unmet = !w.If.Met(exists, w.Result.Seq, 0)
		if w.Deleted || w.Result.Unmet {
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

// writeTo applies the writes to a collection, and reports whether it is new.
func (x *vectors) writeTo(ctx context.Context, tx store.Tx, b *store.Batch, c *collectionWrites) (created bool, err error) {
	var put []*store.RowWrite
	gone := map[string]int64{}
	for _, w := range c.writes {
		switch id, exists := c.known[w.Key]; {
		case w.Result.Unmet || w.Result.Dimension != 0 || w.Deleted && !exists:
		case w.Deleted:
			gone[w.Key], w.Result.Seq = id, 0
		default:
			put = append(put, w)
		}
	}
	if err := x.remove(ctx, tx, c.name, gone, b.Now); err != nil || len(put) == 0 {
		return false, err
	}
	if created = c.dimension == 0; created {
		// A companion file would be of a dropped collection with this name.
		if err := os.Remove(x.path(c.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("create collection %q: %w", c.name, err)
		}
		if _, err := tx.Exec(ctx, "INSERT INTO vector_collections VALUES (?, ?)", c.name, len(put[0].Body)/4); err != nil {
			return false, err
		}
	}
	return created, x.put(ctx, tx, c, put)
}

// put writes rows.
func (x *vectors) put(ctx context.Context, tx store.Tx, c *collectionWrites, writes []*store.RowWrite) error {
	changes, err := x.mark(ctx, tx, c.name)
	if err != nil {
		return err
	}
	var added [][]any
	for _, w := range writes {
		id, exists := c.known[w.Key]
		if !exists {
			id = x.numbers.nextID()
		}
		w.Result.Seq = x.numbers.nextSeq()
		changes = append(changes, change{seq: w.Result.Seq, id: id, vector: internal.Decode(w.Body), metadata: w.Metadata})
		columns := []any{id, c.name, w.Key, w.Result.Seq, w.Text, w.Body, orNull(w.Metadata)}
		if !exists {
			added = append(added, columns)
			continue
		}
		if _, err := tx.Exec(ctx, "UPDATE vectors SET seq = ?, text = ?, embedding = ?, metadata = ? WHERE id = ?", append(columns[3:], id)...); err != nil {
			return err
		}
	}
	if err := tx.Append(ctx, "vectors", added...); err != nil {
		return err
	}
	x.notifyAfterCommit(tx, c.name, changes)
	return nil
}

// openCreated opens new collections, so that their graphs are built before the first search.
func (x *vectors) openCreated(ctx context.Context, created []string) {
	for _, name := range created {
		if _, err := x.collection(ctx, name); err != nil {
			x.Logger.Warn("open the index of a new collection", "collection", name, "error", err.Error())
		}
	}
}

// markStale handles the error of a write. If the database failed, the rows may have been
// written although the indexes do not have them. The next change would move the
// watermark of an index beyond them.
func (x *vectors) markStale(err error, writes []*store.RowWrite) {
	if !databaseFailed(err) {
		return
	}
	for _, w := range writes {
		x.mu.Lock()
		x.stale[w.Space] = true
		c := x.open[w.Space]
		x.mu.Unlock()
		if c != nil {
			c.drop(err)
		}
	}
}

// mark returns the first change of this process to a collection: a row of vectors_gone
// with a negative id, chosen at random. The companion file has the last mark, too, so
// it notices if a copy has replaced the database, where other changes can have the same
// numbers.
func (x *vectors) mark(ctx context.Context, tx store.Tx, collection string) ([]change, error) {
	x.mu.Lock()
	marked := x.marked[collection]
	x.mu.Unlock()
	if marked {
		return nil, nil
	}
	one := change{seq: x.numbers.nextSeq(), id: -1 - rand.Int64()}
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
func (x *vectors) notifyAfterCommit(tx store.Tx, collection string, changes []change) {
	tx.AfterCommit(func() {
		x.mu.Lock()
		c := x.open[collection]
		x.mu.Unlock()
		if c != nil {
			c.applyCommitted(changes)
		}
	})
}

// remove deletes the rows with these names and ids, and leaves tombstones.
func (x *vectors) remove(ctx context.Context, tx store.Tx, collection string, known map[string]int64, now int64) error {
	if len(known) == 0 {
		return nil
	}
	changes, err := x.mark(ctx, tx, collection)
	if err != nil {
		return err
	}
	for name, id := range known {
		gone := change{seq: x.numbers.nextSeq(), id: id}
		if _, err := tx.Exec(ctx, "DELETE FROM vectors WHERE id = ?", id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "INSERT INTO vectors_gone VALUES (?, ?, ?)", id, collection, gone.seq); err != nil {
			return err
		}
		if err := tx.Append(ctx, tombstoneTable, tombstone(store.VectorFeed, gone.seq, collection, name, now)); err != nil {
			return err
		}
		changes = append(changes, gone)
	}
	x.notifyAfterCommit(tx, collection, changes)
	return nil
}

// drop removes a collection, its items and its companion file.
func (x *vectors) drop(ctx context.Context, collection string) (items int, existed bool, err error) {
	if err := x.ready(ctx); err != nil {
		return 0, false, err
	}
	x.opening.Lock() // do not open an index with removed rows
	defer x.opening.Unlock()
	err = x.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
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
			string(store.VectorFeed), x.numbers.takeSeq(n), x.micro(), collection); err != nil {
			return err
		}
		for _, statement := range []string{"DELETE FROM vectors WHERE collection = ?", "DELETE FROM vectors_gone WHERE collection = ?", "DELETE FROM vector_collections WHERE name = ?"} {
			if _, err := tx.Exec(ctx, statement, collection); err != nil {
				return err
			}
		}
		// The last numbers stay, so that they are not assigned again.
		seq := x.numbers.nextSeq()
		_, id := x.numbers.last()
		if _, err := tx.Exec(ctx, "INSERT INTO vectors_gone VALUES (?, ?, ?)", id, collection, seq); err != nil {
			return err
		}
		tx.AfterCommit(func() { x.forget(collection) })
		return nil
	})
	if err != nil {
		x.markStale(err, []*store.RowWrite{{Row: store.Row{RecordName: store.RecordName{Space: collection}}}})
		return 0, false, err
	}
	return items, existed, nil
}

// forget closes the index of a dropped collection and removes its file. Writers wait,
// since they could create the collection again.
func (x *vectors) forget(collection string) {
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
		x.Logger.Warn("remove the vector index of a dropped collection", "collection", collection, "error", err.Error())
	}
}
