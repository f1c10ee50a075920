package keyed

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/mirror"
	internal "github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// vectors is the vector index. A search compares a copy of the collection in memory.
type vectors struct {
	d       *Database
	mirrors *mirror.Collections
	closed  atomic.Bool
}

var _ store.VectorIndex = (*vectors)(nil)

func newVectors(d *Database) *vectors { return &vectors{d: d, mirrors: mirror.New(source{d})} }

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

func (x *vectors) check(ctx context.Context) error {
	if x.closed.Load() {
		return errClosed
	}
	return ctx.Err()
}

// Close frees the copies.
func (x *vectors) Close() error {
	if x.closed.Swap(true) {
		return nil
	}
	return x.mirrors.Close()
}

// Store writes items.
func (x *vectors) Store(ctx context.Context, collection string, items ...store.VectorItem) error {
	if err := x.check(ctx); err != nil {
		return err
	}
	metadata, err := internal.Check(collection, items)
	if err != nil || len(items) == 0 {
		return err
	}
	ids := make([]string, len(items))
	for i, item := range items {
		ids[i] = item.ID
	}
	return x.d.write(ctx, func(t *tx) error {
		slots, err := x.d.slots(ctx, vectorNames(collection, ids)...)
		if err != nil {
			return err
		}
		dimension, err := t.collection(ctx, collection, len(items[0].Embedding))
		if err != nil {
			return err
		}
		for i, item := range items {
			if len(item.Embedding) != dimension {
				return internal.WrongDimension(collection, len(item.Embedding), dimension)
			}
			t.putVector(slots[i], item, metadata[i])
		}
		return nil
	})
}

func (t *tx) putVector(s slot, item store.VectorItem, metadata string) {
	t.put(s, &row{body: string(internal.Encode(item.Embedding)), text: item.Text, metadata: metadata})
}

// collection returns the dimension of a collection, which is created with the
// given one if needed.
func (t *tx) collection(ctx context.Context, name string, dimension int) (int, error) {
	if have, ok := t.created[name]; ok {
		return have, nil
	}
	found, err := t.d.o.DB.Get(ctx, tableKey(collectionTable, name))
	if err != nil {
		return 0, err
	}
	if found[0] != nil {
		have, _ := decodeCollection(found[0])
		return have, nil
	}
	t.created[name] = dimension
	t.set(tableKey(collectionTable, name), encodeNumbers(int64(dimension), t.number(store.VectorFeed)))
	return dimension, nil
}

// decodeCollection returns the dimension of a collection and the number of the
// change that created it.
func decodeCollection(raw []byte) (dimension int, born int64) {
	c, n := cursor{raw: raw}, int64(0)
	c.numbers(&n, &born)
	return int(n), born
}

// Delete removes items.
func (x *vectors) Delete(ctx context.Context, collection string, ids ...string) (n int, err error) {
	if err := x.check(ctx); err != nil {
		return 0, err
	}
	if ids = internal.Storable(ids); !internal.Named(collection) || len(ids) == 0 {
		return 0, nil
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	err = x.d.write(ctx, func(t *tx) error {
		slots, err := x.d.slots(ctx, vectorNames(collection, ids)...)
		for _, s := range slots {
			if s.row != nil {
				t.delete(s, false)
				n++
			}
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// Drop removes a collection.
func (x *vectors) Drop(ctx context.Context, collection string) (items int, existed bool, err error) {
	if err := x.check(ctx); err != nil {
		return 0, false, err
	}
	if !internal.Named(collection) {
		return 0, false, nil
	}
	err = x.d.write(ctx, func(t *tx) error {
		found, err := x.d.o.DB.Get(ctx, tableKey(collectionTable, collection))
		if err != nil || found[0] == nil {
			return err
		}
		existed = true
		t.remove(tableKey(collectionTable, collection))
		from := spaceKey(rowTable(store.VectorFeed), collection)
		return x.d.each(ctx, from, behind(from), func(p Pair) (bool, error) {
			r, err := decodeRow(p.Value)
			if err != nil {
				return false, damagedRow(nameOf(p.Key), err)
			}
			t.delete(slot{name: nameOf(p.Key), row: r}, false)
			items++
			return true, nil
		})
	})
	if err != nil {
		return 0, false, err
	}
	return items, existed, nil
}

// Collections describes all collections.
func (x *vectors) Collections(ctx context.Context) (all []store.Collection, err error) {
	if err := x.check(ctx); err != nil {
		return nil, err
	}
	err = x.d.each(ctx, tableKey(collectionTable, ""), tableKey(collectionTable+1, ""), func(p Pair) (bool, error) {
		c := store.Collection{Name: p.Key[1:]}
		c.Dimension, _ = decodeCollection(p.Value)
		from := spaceKey(rowTable(store.VectorFeed), c.Name)
		err := x.d.each(ctx, from, behind(from), func(Pair) (bool, error) { c.Count++; return true, nil })
		all = append(all, c)
		return true, err
	})
	return all, err
}

func (r *row) item(id string, embedding bool) store.VectorItem {
	item := store.VectorItem{ID: id, Text: r.text}
	if r.metadata != "" {
		decoded, err := value.Decode([]byte(r.metadata))
		item.Metadata, _ = decoded.(map[string]any)
		item.Damaged = err != nil || item.Metadata == nil
	}
	if embedding {
		item.Embedding = internal.Decode([]byte(r.body))
	}
	return item
}

// Get returns items.
func (x *vectors) Get(ctx context.Context, collection string, ids ...string) (items []store.VectorItem, err error) {
	if err := x.check(ctx); err != nil {
		return nil, err
	}
	if ids = internal.Storable(ids); !internal.Named(collection) || len(ids) == 0 {
		return nil, nil
	}
	slots, err := x.d.slots(ctx, vectorNames(collection, ids)...)
	if err != nil {
		return nil, fmt.Errorf("read collection %q: %w", collection, err)
	}
	for i, s := range slots {
		if s.row != nil && s.damaged == nil {
			items = append(items, s.row.item(ids[i], true))
		}
	}
	return items, nil
}

// List returns the items of a collection in the order of their ids.
func (x *vectors) List(ctx context.Context, collection string, page store.VectorPage) (items []store.VectorItem, err error) {
	if err := x.check(ctx); err != nil {
		return nil, err
	}
	if page.Limit < 1 || !internal.Named(collection) {
		return nil, nil
	}
	from := spaceKey(rowTable(store.VectorFeed), collection)
	to := behind(from)
	if page.After != "" {
		from += page.After + "\x00"
	}
	err = x.d.eachBatch(ctx, from, to, min(page.Limit, scanBatch), func(p Pair) (bool, error) {
		n := nameOf(p.Key)
		r, err := decodeRow(p.Value)
		if err != nil {
			return false, damagedRow(n, err)
		}
		items = append(items, r.item(n.Key, page.Embeddings))
		return len(items) < page.Limit, nil
	})
	return items, err
}

// Search returns the nearest items.
func (x *vectors) Search(ctx context.Context, collection string, q store.VectorQuery) ([]store.VectorHit, error) {
	if err := x.check(ctx); err != nil {
		return nil, err
	}
	return x.mirrors.Search(ctx, collection, q)
}

// source is what the mirrors of collections read.
type source struct{ d *Database }

var _ mirror.Source = source{}

// Changes reads changes of a collection.
func (s source) Changes(ctx context.Context, collection string, after int64) (page mirror.Page, err error) {
	found, err := s.d.o.DB.Get(ctx, tableKey(collectionTable, collection))
	if err != nil || found[0] == nil {
		return page, err
	}
	page.Dimension, page.Born = decodeCollection(found[0])
	forgotten, err := s.d.forgotten(ctx, store.VectorFeed)
	if err != nil {
		return page, err
	}
	// Without all deletions the collection is read again.
	page.Born, page.Last = max(page.Born, forgotten), after
	for len(page.Changes) < scanBatch {
		pairs, err := s.d.o.DB.Scan(ctx, feedKey(store.VectorFeed, page.Last+1), feedEnd(store.VectorFeed), scanBatch)
		if err != nil || len(pairs) == 0 {
			return page, err
		}
		if err := s.add(ctx, &page, collection, pairs); err != nil {
			return page, err
		}
	}
	page.More = true
	return page, nil
}

// add adds those of the changes that are of the collection.
func (s source) add(ctx context.Context, page *mirror.Page, collection string, pairs []Pair) error {
	keys := make([]string, len(pairs))
	for i, p := range pairs {
		keys[i] = string(p.Value)
	}
	rows, err := s.d.o.DB.Get(ctx, keys...)
	if err != nil {
		return err
	}
	for i, p := range pairs {
		seq := numberOf(p.Key)
		if page.Last = seq; rows[i] == nil || nameOf(keys[i]).Space != collection {
			continue // what has changed since has a later number
		}
		if isTombKey(keys[i]) {
			if t, err := decodeTombstone(rows[i]); err == nil && t.seq == seq {
				page.Changes = append(page.Changes, mirror.Change{Seq: seq, ID: t.id})
			}
		} else if r, err := decodeRow(rows[i]); err == nil && r.seq == seq {
			page.Changes = append(page.Changes, mirror.Change{Seq: seq, ID: r.id, Embedding: []byte(r.body), Metadata: r.metadata})
		}
	}
	return nil
}

// Items reads rows by their ids.
func (s source) Items(ctx context.Context, ids []int64, embeddings bool) (map[int64]store.VectorItem, error) {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = idKey(store.VectorFeed, id)
	}
	names, err := s.d.o.DB.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	for i, raw := range names {
		keys[i] = string(raw)
	}
	rows, err := s.d.o.DB.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	byID := make(map[int64]store.VectorItem, len(ids))
	for i, id := range ids {
		if r, err := decodeRow(rows[i]); err == nil {
			byID[id] = r.item(nameOf(keys[i]).Key, embeddings)
		}
	}
	return byID, nil
}
