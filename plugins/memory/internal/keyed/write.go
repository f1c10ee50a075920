package keyed

import (
	"context"

	"github.com/the-edge-agent/tea/plugins/memory/internal/syncing"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Write does the writes of a batch.
func (d *Database) Write(ctx context.Context, b *store.Batch) error { return d.WriteWith(ctx, b, nil) }

// WriteWith is Write, and stores the result of also; nil = nothing.
func (d *Database) WriteWith(ctx context.Context, b *store.Batch, also func() []syncing.SyncedRecord) error {
	ctx = d.pin(ctx)
	return d.write(ctx, func(t *tx) error {
		if err := t.writeBatch(ctx, b); err != nil {
			return err
		}
		if also != nil {
			for _, a := range also() {
				t.setSynced(a)
			}
		}
		return nil
	})
}

func (t *tx) writeBatch(ctx context.Context, b *store.Batch) error {
	names := make([]store.RecordName, len(b.Writes))
	for i, w := range b.Writes {
		names[i] = w.RecordName
	}
	slots, err := t.d.slots(ctx, names...)
	if err != nil {
		return err
	}
	refused := false
	for i, w := range b.Writes {
		if err := t.check(ctx, slots[i], w, b.Now); err != nil {
			return err
		}
		refused = refused || w.Result.Unmet || w.Result.Dimension != 0
	}
	if refused && b.Atomic {
		return nil
	}
	for i, w := range b.Writes {
		if w.Result.Unmet || w.Result.Dimension != 0 || w.Result.Same || w.Deleted && slots[i].row == nil {
			continue
		}
		if err := t.writeRow(ctx, slots[i], w, b.Now); err != nil {
			return err
		}
	}
	return nil
}

// check sets the result of a write before it is done.
func (t *tx) check(ctx context.Context, s slot, w *store.RowWrite, now int64) error {
	w.Result = store.RowResult{}
	r := s.row
	if r != nil {
		w.Result = store.RowResult{Seq: r.seq, Version: r.version, Live: r.expires == 0 || r.expires > now}
	}
	if !w.If.Met(r != nil, w.Result.Seq, w.Result.Version) {
		w.Result.Unmet = true
		return nil
	}
	if w.Deleted {
		return nil
	}
	w.Result.Same = w.Deduplicate && w.Result.Live && s.damaged == nil && r.expires == 0 && w.Expires == 0 && r.hash == w.Hash && r.metadata == w.Metadata
	if w.Feed == store.VectorFeed {
		have, err := t.dimension(ctx, w.Space, len(w.Body)/4)
		if err != nil {
			return err
		}
		if have != len(w.Body)/4 {
			w.Result.Dimension = have
		}
	}
	return nil
}

func (t *tx) writeRow(ctx context.Context, s slot, w *store.RowWrite, now int64) error {
	if w.Deleted {
		t.delete(s, false)
		w.Result.Seq = 0
		return t.release(ctx, s)
	}
	r := &row{hash: w.Hash, metadata: w.Metadata, text: w.Text, body: string(w.Body), version: w.Version}
	switch w.Feed {
	case store.EntryFeed:
		r.size, r.created, r.updated, r.expires = w.Size, w.Created, w.Updated, w.Expires
		if r.created == 0 {
			if r.created = now; w.Result.Live && s.damaged == nil {
				r.created = s.row.created
			}
		}
		if r.updated == 0 {
			r.updated = now
		}
		if r.large = int(w.Size) >= t.d.o.InlineBytes; r.large {
			if err := t.refer(ctx, w.Hash, 1, r.body); err != nil {
				return err
			}
			r.body = ""
		}
	case store.DocumentFeed:
		if r.version == 0 {
			r.version = w.Result.Version + 1
		}
	case store.VectorFeed:
		t.create(w.Space)
	}
	t.put(s, r)
	w.Result.Seq = r.seq
	return t.release(ctx, s)
}

// release removes the reference of a replaced row to its large value.
func (t *tx) release(ctx context.Context, s slot) error {
	if s.row == nil || !s.row.large {
		return nil
	}
	return t.refer(ctx, s.row.hash, -1, "")
}

// ref is how many rows have a large value.
type ref struct{ rows, size int64 }

// refer changes the number of rows with a large value. The value is stored with the
// first one and removed with the last one.
func (t *tx) refer(ctx context.Context, hash string, by int64, value string) error {
	r, seen := t.refs[hash]
	if !seen {
		found, err := t.d.o.DB.Get(ctx, tableKey(refTable, hash))
		if err != nil {
			return err
		}
		r.rows, r.size = decodeRef(found[0])
	}
	if r.rows <= 0 && by > 0 {
		t.set(tableKey(largeTable, hash), []byte(value))
		r = ref{size: int64(len(value))}
	}
	r.rows += by
	if t.refs[hash] = r; r.rows <= 0 {
		t.remove(tableKey(refTable, hash))
		t.remove(tableKey(largeTable, hash))
		return nil
	}
	t.set(tableKey(refTable, hash), encodeNumbers(r.rows, r.size))
	return nil
}

// dimension returns the dimension of a collection, the given one if it is new.
func (t *tx) dimension(ctx context.Context, name string, dimension int) (int, error) {
	if have, ok := t.dimensions[name]; ok {
		return have, nil
	}
	found, err := t.d.o.DB.Get(ctx, tableKey(collectionTable, name))
	if err != nil {
		return 0, err
	}
	if found[0] != nil {
		dimension, _ = decodeCollection(found[0])
	} else {
		t.created[name] = dimension
	}
	t.dimensions[name] = dimension
	return dimension, nil
}

// create adds a collection that is new.
func (t *tx) create(name string) {
	if dimension, ok := t.created[name]; ok {
		delete(t.created, name)
		t.set(tableKey(collectionTable, name), encodeNumbers(int64(dimension), t.number(store.VectorFeed)))
	}
}

// decodeCollection returns the dimension of a collection and the number of the change
// that created it.
func decodeCollection(raw []byte) (dimension int, born int64) {
	c, n := cursor{raw: raw}, int64(0)
	c.numbers(&n, &born)
	return int(n), born
}

// Drop removes a collection.
func (d *Database) Drop(ctx context.Context, collection string) (rows int, existed bool, err error) {
	err = d.write(ctx, func(t *tx) error {
		rows, existed = 0, false
		found, err := d.o.DB.Get(ctx, tableKey(collectionTable, collection))
		if err != nil || found[0] == nil {
			return err
		}
		existed = true
		t.remove(tableKey(collectionTable, collection))
		from := spaceKey(rowTable(store.VectorFeed), collection)
		return d.each(ctx, from, behind(from), func(p Pair) (bool, error) {
			r, err := decodeRow(p.Value)
			if err != nil {
				return false, damagedRow(nameOf(p.Key), err)
			}
			t.delete(slot{name: nameOf(p.Key), row: r}, false)
			rows++
			return true, nil
		})
	})
	if err != nil {
		return 0, false, err
	}
	return rows, existed, nil
}

// Sweep removes expired entries, and old tombstones.
func (d *Database) Sweep(ctx context.Context, expired, deleted int64) (n int, err error) {
	for {
		removed := 0
		err := d.write(ctx, func(t *tx) error {
			removed = 0
			return d.each(ctx, string(rowTable(store.EntryFeed)), string(rowTable(store.EntryFeed)+1), func(p Pair) (bool, error) {
				r, err := decodeRow(p.Value)
				if err != nil || r.expires == 0 || r.expires >= expired {
					return true, nil //nolint:nilerr // a damaged row is not known to expire
				}
				t.delete(slot{name: nameOf(p.Key), row: r}, true)
				if removed++; r.large {
					err = t.refer(ctx, r.hash, -1, "")
				}
				return removed < scanBatch, err
			})
		})
		if n += removed; err != nil {
			return n, err
		}
		if removed == 0 {
			return n, d.forgetTombstones(ctx, deleted)
		}
	}
}

// forgetTombstones removes the tombstones from before an instant, and all tombstones with smaller numbers.
func (d *Database) forgetTombstones(ctx context.Context, before int64) error {
	for i, feed := range store.Feeds() {
		var all []slot
		last := int64(0)
		err := d.each(ctx, string(tombTables[i]), string(rune(tombTables[i]+1)), func(p Pair) (bool, error) {
			t, err := decodeTombstone(p.Value)
			if err != nil { // a damaged tombstone is removed too
				return true, nil //nolint:nilerr // see above
			}
			if all = append(all, slot{name: nameOf(p.Key), tomb: t}); t.at < before {
				last = max(last, t.seq)
			}
			return true, nil
		})
		if err != nil {
			return err
		}
		if last == 0 {
			continue
		}
		err = d.write(ctx, func(t *tx) error {
			for _, s := range all {
				if s.tomb.seq > last {
					continue
				}
				now, err := d.slots(ctx, s.name)
				if err != nil {
					return err
				}
				if now[0].tomb != nil && now[0].tomb.seq == s.tomb.seq {
					t.forget(now[0])
				}
			}
			t.set(tableKey(forgottenTable, string(feed)), encodeNumbers(last))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
