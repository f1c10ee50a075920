package keyed

import (
	"context"
	"encoding/json"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	documentrecords "github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/replica"
	internal "github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// records are the rows of a database as records.
type records struct {
	d *Database
	// also adds to the transaction of a Put; nil = nothing.
	also func(t *tx, results []store.PutResult)
}

var _ replica.Tables = records{}

// Identity identifies the contents.
func (r records) Identity(ctx context.Context) (string, error) { return r.d.identity(ctx) }

// Bounds returns the numbers between which all deletions are known.
func (r records) Bounds(ctx context.Context, feed store.Feed) (forgotten, last int64, err error) {
	s, err := r.d.readState(ctx)
	if err != nil {
		return 0, 0, err
	}
	forgotten, err = r.d.forgotten(ctx, feed)
	return forgotten, s.seq[feed], err
}

// forgotten returns the number up to which tombstones of a feed were removed.
func (d *Database) forgotten(ctx context.Context, feed store.Feed) (n int64, err error) {
	found, err := d.o.DB.Get(ctx, tableKey(forgottenTable, string(feed)))
	if err != nil {
		return 0, err
	}
	c := cursor{raw: found[0]}
	if found[0] != nil {
		c.numbers(&n)
	}
	return n, c.err
}

// forgetDeletions removes the tombstones that are older than
// replica.KeptDeletions, and those with smaller numbers.
func (d *Database) forgetDeletions(ctx context.Context) error {
	before := d.o.Now().Add(-replica.KeptDeletions * time.Second).UnixMicro()
	for i, feed := range store.Feeds() {
		var all []slot
		last := int64(0)
		err := d.each(ctx, string(tombTables[i]), string(rune(tombTables[i]+1)), func(p Pair) (bool, error) {
			t, err := decodeTombstone(p.Value)
			if err != nil { // it says nothing
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

// pageRows is the largest number of rows that a page reads.
const pageRows = 1000

// Page returns the first records of a feed after a number.
func (r records) Page(ctx context.Context, q store.ChangeQuery) (all []store.Record, more bool, err error) {
	limit := min(max(q.Limit, 1)+1, pageRows)
	last := q.After
	for len(all) == 0 {
		pairs, err := r.d.o.DB.Scan(ctx, feedKey(q.Feed, last+1), feedEnd(q.Feed), limit)
		if err != nil || len(pairs) == 0 {
			return nil, false, err
		}
		last, more = numberOf(pairs[len(pairs)-1].Key), len(pairs) == limit
		keys := make([]string, len(pairs))
		for i, p := range pairs {
			keys[i] = string(p.Value)
		}
		rows, err := r.d.o.DB.Get(ctx, keys...)
		if err != nil {
			return nil, false, err
		}
		for i, p := range pairs {
			record, ok, err := r.record(ctx, nameOf(keys[i]), keys[i], rows[i])
			if err != nil {
				return nil, false, err
			}
			if record.Damaged && record.Seq == 0 { // its own number cannot be read
				record.Seq = numberOf(p.Key)
			}
			if ok && record.Seq == numberOf(p.Key) { // else it has changed since
				all = append(all, record)
			}
		}
	}
	return all, more, nil
}

// record returns the record of a row or tombstone; ok is false for one that is not a
// record.
func (r records) record(ctx context.Context, n store.RecordName, key string, raw []byte) (record store.Record, ok bool, err error) {
	if raw == nil {
		return record, false, nil
	}
	if isTombKey(key) {
		t, err := decodeTombstone(raw)
		if err != nil || t.swept {
			return record, false, nil //nolint:nilerr // nothing can be said about it
		}
		return store.Record{RecordName: n, Deleted: true, Seq: t.seq, Updated: clock.FromMicro(t.at)}, true, nil
	}
	row, err := decodeRow(raw)
	if err != nil {
		return store.Record{RecordName: n, Damaged: true}, true, nil //nolint:nilerr // it says so
	}
	switch n.Feed {
	case store.EntryFeed:
		e, gone, err := (&entries{d: r.d}).memory(ctx, n, row, false)
		if err != nil || gone {
			return record, false, err
		}
		record, err = longterm.ToRecord(e, row.seq)
		return record, true, err
	case store.VectorFeed:
		body := store.VectorBody{Text: row.text, Embedding: internal.Decode([]byte(row.body))}
		if row.metadata != "" {
			body.Metadata = json.RawMessage(row.metadata)
		}
		return internal.ToRecord(n.Space, n.Key, row.seq, body), true, nil
	}
	return documentrecords.ToRecord(row.document(n)), true, nil
}

// Named returns the records with these names that exist, and tombstones of others.
func (r records) Named(ctx context.Context, _ store.Feed, names []store.RecordName) (all []store.Record, err error) {
	keys := make([]string, 0, 2*len(names))
	for _, n := range names {
		keys = append(keys, rowKey(n), tombKey(n))
	}
	found, err := r.d.o.DB.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	for i, raw := range found {
		record, ok, err := r.record(ctx, nameOf(keys[i]), keys[i], raw)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, record)
		}
	}
	return all, nil
}

// Put does the writes in one transaction.
func (r records) Put(ctx context.Context, w *replica.Writes) error {
	return r.d.write(ctx, func(t *tx) error {
		if err := t.putRecords(ctx, w); err != nil || r.also == nil {
			return err
		}
		r.also(t, w.Results())
		return nil
	})
}

func (t *tx) putRecords(ctx context.Context, w *replica.Writes) error {
	now := t.d.o.Now().UnixMicro()
	for _, writes := range [][]*replica.Write{w.Entries, w.Vectors, w.Documents} {
		names := make([]store.RecordName, len(writes))
		for i, one := range writes {
			names[i] = one.RecordName
		}
		slots, err := t.d.slots(ctx, names...)
		if err != nil {
			return err
		}
		for i, one := range writes {
			if err := t.putRecord(ctx, slots[i], one, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// putRecord does a write if its condition is met, and sets its result.
func (t *tx) putRecord(ctx context.Context, s slot, w *replica.Write, now int64) error {
	w.Result = store.PutResult{}
	if s.row != nil {
		w.Result.Seq = s.row.seq
	}
	if w.If != store.AnySeq && w.If != w.Result.Seq {
		w.Result.Conflict = true
		return nil
	}
	switch {
	case w.Deleted && s.row == nil:
		return nil
	case w.Deleted && w.Feed == store.EntryFeed:
		if err := t.deleteEntry(ctx, s, false); err != nil {
			return err
		}
	case w.Deleted:
		t.delete(s, false)
	case w.Feed == store.EntryFeed:
		created, updated := now, now
		if !w.Created.IsZero() {
			created = w.Created.UnixMicro()
		}
		if !w.Updated.IsZero() {
			updated = w.Updated.UnixMicro()
		}
		if err := t.putEntry(ctx, s, w.Entry, created, updated); err != nil {
			return err
		}
	case w.Feed == store.VectorFeed:
		dimension, err := t.collection(ctx, w.Space, len(w.Item.Embedding))
		if err != nil {
			return err
		}
		if len(w.Item.Embedding) != dimension {
			w.Result.Err = internal.WrongDimension(w.Space, len(w.Item.Embedding), dimension)
			return nil
		}
		t.putVector(s, w.Item, w.Metadata)
	default:
		version := int64(1)
		if s.row != nil {
			version = s.row.version + 1
		}
		t.putDocument(s, w.Body, version)
	}
	if w.Result.Seq = t.next.seq[w.Feed]; w.Deleted {
		w.Result.Seq = 0
	}
	return nil
}
