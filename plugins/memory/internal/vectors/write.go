package vectors

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/deletion"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	maxName       = 4096
	maxCollection = 100 // it is part of a file name
	maxDimension  = 65536
	// lookUp is the maximum number of ids that one statement looks up.
	lookUp = 200
)

// row is an item as it is written.
type row struct {
	item     store.VectorItem
	metadata string
	id, seq  int64
	known    bool // an item with this name exists
}

// Store writes the items atomically.
func (x *Index) Store(ctx context.Context, collection string, items ...store.VectorItem) error {
	if err := x.ready(ctx); err != nil {
		return err
	}
	rows, err := prepare(collection, items)
	if err != nil || len(rows) == 0 {
		return err
	}
	created := false
	err = x.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) (err error) {
		created, err = x.write(ctx, tx, collection, rows)
		return err
	})
	if err == nil && created {
		// Open it, so that the graph is built before the first search.
		if _, err := x.collection(ctx, collection); err != nil {
			x.o.Logger.Warn("open the index of a new collection", "collection", collection, "error", err.Error())
		}
	}
	return x.markStale(collection, err)
}

// prepare checks the items.
func prepare(collection string, items []store.VectorItem) ([]*row, error) {
	if !named(collection) {
		return nil, tea.Errorf(tea.ValidationError, "%q is not a valid name of a collection: use 1 to %d bytes of UTF-8", collection, maxCollection)
	}
	seen := make(map[string]bool, len(items))
	var rows []*row
	for i, item := range items {
		switch {
		case item.ID == "" || len(item.ID) > maxName:
			return nil, tea.Errorf(tea.ValidationError, "item %d: an id must have 1 to %d bytes", i, maxName)
		case !utf8.ValidString(item.ID) || !utf8.ValidString(item.Text):
			return nil, tea.Errorf(tea.ValidationError, "item %q: the id or text is not valid UTF-8", item.ID)
		case seen[item.ID]:
			return nil, tea.Errorf(tea.ValidationError, "item %d: duplicate id %q; give each item another id", i, item.ID)
		case len(item.Embedding) == 0 || len(item.Embedding) > maxDimension:
			return nil, tea.Errorf(tea.ValidationError, "item %q: an embedding must have 1 to %d numbers, not %d", item.ID, maxDimension, len(item.Embedding))
		}
		seen[item.ID] = true
		zeros := true
		for _, f := range item.Embedding {
			if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
				return nil, tea.Errorf(tea.ValidationError, "item %q: the embedding contains a number that is not finite", item.ID)
			}
			zeros = zeros && f == 0
		}
		if zeros {
			return nil, tea.Errorf(tea.ValidationError, "item %q: the embedding is all zeros, which are similar to nothing", item.ID)
		}
		r := &row{item: item}
		if item.Metadata != nil {
			text, err := value.Encode(item.Metadata)
			if err != nil {
				return nil, tea.Errorf(tea.ValidationError, "the metadata of item %q: %w", item.ID, err)
			}
			r.metadata = string(text)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// named reports whether a collection can have the name.
func named(collection string) bool {
	return collection != "" && len(collection) <= maxCollection && utf8.ValidString(collection)
}

// storable returns the valid ids.
func storable(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "" || len(id) > maxName || !utf8.ValidString(id) })
}

// write writes the rows and reports whether they are the first of their
// collection.
func (x *Index) write(ctx context.Context, tx store.Tx, collection string, rows []*row) (created bool, err error) {
	if created, err = x.checkDimension(ctx, tx, collection, rows); err != nil {
		return false, err
	}
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.item.ID
	}
	known, err := x.idsOf(ctx, tx.Query, collection, names)
	if err != nil {
		return false, err
	}
	changes, err := x.mark(ctx, tx, collection)
	if err != nil {
		return false, err
	}
	var added [][]any
	for _, r := range rows {
		r.id, r.known = known[r.item.ID]
		if !r.known {
			r.id = x.nextID()
		}
		r.seq = x.nextSeq()
		changes = append(changes, change{seq: r.seq, id: r.id, vector: r.item.Embedding, metadata: r.metadata})
		columns := []any{r.id, collection, r.item.ID, r.seq, r.item.Text, toBytes(r.item.Embedding), orNull(r.metadata)}
		if !r.known {
			added = append(added, columns)
			continue
		}
		if _, err := tx.Exec(ctx, "UPDATE vectors SET seq = ?, text = ?, embedding = ?, metadata = ? WHERE id = ?",
			r.seq, columns[4], columns[5], columns[6], r.id); err != nil {
			return false, err
		}
	}
	if err := tx.Append(ctx, "vectors", added...); err != nil {
		return false, err
	}
	x.notifyAfterCommit(tx, collection, changes)
	return created, nil
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

// checkDimension compares the dimension of items with the dimension of their collection, which
// the first items determine.
func (x *Index) checkDimension(ctx context.Context, tx store.Tx, collection string, rows []*row) (created bool, err error) {
	dimension, err := x.dimension(ctx, tx.Query, collection)
	if err != nil {
		return false, err
	}
	if created = dimension == 0; created {
		// A companion file would be of a dropped collection with this name.
		if err := os.Remove(x.path(collection)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("create collection %q: %w", collection, err)
		}
		dimension = len(rows[0].item.Embedding)
		if _, err := tx.Exec(ctx, "INSERT INTO vector_collections VALUES (?, ?)", collection, dimension); err != nil {
			return false, err
		}
	}
	for _, r := range rows {
		if len(r.item.Embedding) != dimension {
			return false, wrongDimension(collection, len(r.item.Embedding), dimension)
		}
	}
	return created, nil
}

func wrongDimension(collection string, got, want int) error {
	return tea.Errorf(tea.ValidationError, "collection %q holds vectors of %d numbers, not %d: use one embedding model per collection", collection, want, got)
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

// Delete removes items and returns the number of those that existed.
func (x *Index) Delete(ctx context.Context, collection string, ids ...string) (removed int, err error) {
	if err := x.ready(ctx); err != nil {
		return 0, err
	}
	if ids = storable(ids); !named(collection) || len(ids) == 0 {
		return 0, nil
	}
	err = x.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		known, err := x.idsOf(ctx, tx.Query, collection, ids)
		if err != nil {
			return err
		}
		removed = len(known)
		return x.remove(ctx, tx, collection, known)
	})
	if err != nil {
		return 0, x.markStale(collection, err)
	}
	return removed, nil
}

// remove deletes the rows with these names and ids, and leaves tombstones.
func (x *Index) remove(ctx context.Context, tx store.Tx, collection string, known map[string]int64) error {
	if len(known) == 0 {
		return nil
	}
	changes, err := x.mark(ctx, tx, collection)
	if err != nil {
		return err
	}
	for name, id := range known {
		gone := change{seq: x.nextSeq(), id: id}
		if _, err := tx.Exec(ctx, "DELETE FROM vectors WHERE id = ?", id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "INSERT INTO vectors_gone VALUES (?, ?, ?)", id, collection, gone.seq); err != nil {
			return err
		}
		if err := tx.Append(ctx, deletion.Table, deletion.Row(store.VectorFeed, gone.seq, collection, name, x.clock.Micro())); err != nil {
			return err
		}
		changes = append(changes, gone)
	}
	x.notifyAfterCommit(tx, collection, changes)
	return nil
}

// Drop removes a collection, its items and its companion file.
func (x *Index) Drop(ctx context.Context, collection string) (items int, existed bool, err error) {
	if err := x.ready(ctx); err != nil {
		return 0, false, err
	}
	if !named(collection) {
		return 0, false, nil
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
			string(store.VectorFeed), x.takeSeq(n), x.clock.Micro(), collection); err != nil {
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
		return 0, false, x.markStale(collection, err)
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

// idsOf returns the ids of the rows that exist, by the items' names.
func (x *Index) idsOf(ctx context.Context, query queryFunc, collection string, names []string) (map[string]int64, error) {
	known := make(map[string]int64, len(names))
	for part := range slices.Chunk(names, lookUp) {
		list, args := store.InList(part)
		find := "SELECT name, id FROM vectors WHERE name IN " + list + " AND collection = ?"
		if x.o.Engine.Dialect() == store.DuckDB {
			// DuckDB uses an index only for a condition on its column alone.
			find = "WITH named AS MATERIALIZED (SELECT collection, name, id FROM vectors WHERE name IN " + list + ") SELECT name, id FROM named WHERE collection = ?"
		}
		rows, err := query(ctx, find, append(args, collection)...)
		var name string
		var id int64
		if err := store.Scan(rows, err, func() { known[name] = id }, &name, &id); err != nil {
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

func toBytes(v []float32) []byte {
	raw := make([]byte, 0, 4*len(v))
	for _, f := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
	}
	return raw
}

func fromBytes(raw []byte) []float32 {
	if raw == nil {
		return nil
	}
	v := make([]float32, len(raw)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return v
}
