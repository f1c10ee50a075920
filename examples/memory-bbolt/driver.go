// Package bbolt keeps the memory of an agent in a file of bbolt, an ordered key-value
// database in Go. It is an example of a back end that is not a part of tea: one file
// with the ten methods of [store.Driver].
//
// Settings: memory.engine bbolt, and memory.options.file, the path of the file.
package bbolt

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Option adds the engine bbolt to the bundle of the memory.
func Option() memory.Option {
	return memory.WithBackend(store.Backend{Name: "bbolt", Driver: Open, Acknowledged: "local"})
}

// Open opens a database. The file is created if it does not exist, and belongs to this
// process until the driver is closed.
func Open(_ context.Context, c store.Config) (store.Driver, error) {
	var o struct {
		File string `json:"file,omitempty" doc:"path of the database; default memory.bbolt in the folder of the memory"`
	}
	if err := c.Decode(&o); err != nil {
		return nil, err
	}
	if o.File == "" {
		if err := os.MkdirAll(c.Dir, 0o700); err != nil {
			return nil, store.SystemError(err)
		}
		o.File = filepath.Join(c.Dir, "memory.bbolt")
	}
	db, err := bolt.Open(o.File, 0o600, &bolt.Options{Timeout: c.Timeout, ReadOnly: c.ReadOnly != ""})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, tea.Errorf(tea.ConnectionError, "another process has %s open; end it, or set memory.options.file", o.File)
	case err != nil:
		return nil, store.SystemError(fmt.Errorf("open %s: %w", o.File, err))
	}
	return &driver{db}, nil
}

// driver has these buckets: state, spaces (name -> Space), and for each feed rows (space
// and key -> Row, tombstones included), changes (number -> name) and ids (id -> name).
type driver struct{ db *bolt.DB }

var (
	stateBucket  = []byte("state")
	spacesBucket = []byte("spaces")
	identityKey  = []byte("identity")
)

func bucketOf(kind string, feed store.Feed) []byte { return []byte(kind + "/" + string(feed)) }

// spaceKey is the key prefix of a space. It begins with the length, so that no space is a prefix of another.
func spaceKey(space string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(space))), space...)
}

func nameKey(n store.RecordName) []byte { return append(spaceKey(n.Space), n.Key...) }

func number(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func toNumber(raw []byte) int64 {
	if len(raw) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(raw))
}

// view runs fn on one state of the database, unless it is new and has no buckets.
func (d *driver) view(ctx context.Context, fn func(tx *bolt.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return closed(d.db.View(func(tx *bolt.Tx) error {
		if tx.Bucket(stateBucket) == nil {
			return nil
		}
		return fn(tx)
	}))
}

func closed(err error) error {
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return tea.Errorf(tea.ConnectionError, "the memory is closed")
	}
	return store.SystemError(err)
}

// State returns the state of a feed.
func (d *driver) State(ctx context.Context, feed store.Feed) (s store.FeedState, err error) {
	err = d.view(ctx, func(tx *bolt.Tx) error {
		b := tx.Bucket(stateBucket)
		s = store.FeedState{Identity: string(b.Get(identityKey)), Last: toNumber(b.Get(bucketOf("last", feed))), Forgotten: toNumber(b.Get(bucketOf("forgotten", feed)))}
		return nil
	})
	return s, err
}

// toRow decodes a row or tombstone.
func toRow(feed store.Feed, key, raw []byte, noBody bool) store.Row {
	var r store.Row
	if err := json.Unmarshal(raw, &r); err != nil {
		size := int(binary.BigEndian.Uint16(key))
		r = store.Row{Damaged: tea.Errorf(tea.InternalError, "the row is damaged: %w", err)}
		r.RecordName = store.RecordName{Feed: feed, Space: string(key[2 : 2+size]), Key: string(key[2+size:])}
	}
	if noBody {
		r.Body = nil
	}
	return r
}

// Get returns rows and tombstones.
func (d *driver) Get(ctx context.Context, q store.RowQuery) (rows []store.Row, err error) {
	err = d.view(ctx, func(tx *bolt.Tx) error {
		var keys [][]byte
		for _, n := range q.Names {
			keys = append(keys, nameKey(n))
		}
		for _, id := range q.IDs {
			keys = append(keys, tx.Bucket(bucketOf("ids", q.Feed)).Get(number(id)))
		}
		for _, key := range keys {
			if raw := tx.Bucket(bucketOf("rows", q.Feed)).Get(key); raw != nil {
				rows = append(rows, toRow(q.Feed, key, raw, q.NoBody))
			}
		}
		return nil
	})
	return rows, err
}

// page collects rows until a bound is reached.
type page struct {
	store.RowPage
	limit int
	bytes int64
}

func newPage(limit int, bytes int64) *page {
	const most = 4 << 20
	if bytes <= 0 || bytes > most {
		bytes = most
	}
	return &page{limit: limit, bytes: bytes}
}

// add adds a row, and reports whether it was within the bounds.
func (p *page) add(r store.Row) bool {
	p.bytes -= int64(len(r.Body))
	if p.More = len(p.Rows) == p.limit || p.bytes < 0 && len(p.Rows) > 0; p.More {
		return false
	}
	p.Rows, p.Last = append(p.Rows, r), r.Seq
	return true
}

// Scan returns rows of a space.
func (d *driver) Scan(ctx context.Context, q store.RowRange) (store.RowPage, error) {
	p := newPage(q.Limit, q.MaxBytes)
	err := d.view(ctx, func(tx *bolt.Tx) error {
		prefix := append(spaceKey(q.Space), q.Prefix...)
		from := prefix
		if q.After != "" && q.After >= q.Prefix {
			from = append(append(spaceKey(q.Space), q.After...), 0)
		}
		c := tx.Bucket(bucketOf("rows", q.Feed)).Cursor()
		for key, raw := c.Seek(from); key != nil && bytes.HasPrefix(key, prefix); key, raw = c.Next() {
			if r := toRow(q.Feed, key, raw, q.NoBody); !r.Deleted && !p.add(r) {
				break
			}
		}
		return nil
	})
	return p.RowPage, err
}

// Changes returns changes of a feed.
func (d *driver) Changes(ctx context.Context, q store.RowChanges) (store.RowPage, error) {
	p := newPage(q.Limit, q.MaxBytes)
	err := d.view(ctx, func(tx *bolt.Tx) error {
		state := tx.Bucket(stateBucket)
		p.Forgotten = toNumber(state.Get(bucketOf("forgotten", q.Feed)))
		if q.Space != "" {
			p.Space, _ = spaceOf(tx, q.Space)
		}
		c := tx.Bucket(bucketOf("changes", q.Feed)).Cursor()
		for seq, key := c.Seek(number(q.After + 1)); seq != nil; seq, key = c.Next() {
			r := toRow(q.Feed, key, tx.Bucket(bucketOf("rows", q.Feed)).Get(key), false)
			if r.Seq = toNumber(seq); (q.Space == "" || r.Space == q.Space) && !p.add(r) {
				return nil
			}
		}
		p.Last = toNumber(state.Get(bucketOf("last", q.Feed)))
		return nil
	})
	return p.RowPage, err
}

// Spaces describes collections.
func (d *driver) Spaces(ctx context.Context, names ...string) (all []store.Space, err error) {
	err = d.view(ctx, func(tx *bolt.Tx) error {
		if len(names) == 0 {
			_ = tx.Bucket(spacesBucket).ForEach(func(name, _ []byte) error { // it returns no other errors
				names = append(names, string(name))
				return nil
			})
		}
		for _, name := range names {
			if s, ok := spaceOf(tx, name); ok {
				all = append(all, s)
			}
		}
		return nil
	})
	return all, err
}

// spaceOf returns a collection. A collection that cannot be decoded counts as missing; the next vector creates it
// again.
func spaceOf(tx *bolt.Tx, name string) (s store.Space, ok bool) {
	raw := tx.Bucket(spacesBucket).Get([]byte(name))
	return s, raw != nil && json.Unmarshal(raw, &s) == nil
}

// writing is a transaction that writes. err is its first error.
type writing struct {
	tx  *bolt.Tx
	err error
}

// update runs fn in a transaction, which creates the buckets of a new database.
func (d *driver) update(ctx context.Context, fn func(w *writing)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return closed(d.db.Update(func(tx *bolt.Tx) error {
		names := [][]byte{stateBucket, spacesBucket}
		for _, feed := range store.Feeds() {
			names = append(names, bucketOf("rows", feed), bucketOf("changes", feed), bucketOf("ids", feed))
		}
		for _, name := range names {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		w := &writing{tx: tx}
		if tx.Bucket(stateBucket).Get(identityKey) == nil {
			w.put(stateBucket, identityKey, []byte(rand.Text()))
		}
		fn(w)
		return w.err
	}))
}

func (w *writing) check(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *writing) put(bucket, key, value []byte) { w.check(w.tx.Bucket(bucket).Put(key, value)) }

func (w *writing) remove(bucket, key []byte) { w.check(w.tx.Bucket(bucket).Delete(key)) }

func (w *writing) encode(v any) []byte {
	raw, err := json.Marshal(v)
	w.check(err)
	return raw
}

// next returns the next number of a feed.
func (w *writing) next(feed store.Feed) int64 {
	key := bucketOf("last", feed)
	n := toNumber(w.tx.Bucket(stateBucket).Get(key)) + 1
	w.put(stateBucket, key, number(n))
	return n
}

// store replaces the row or tombstone under a name.
func (w *writing) store(old, r store.Row) int64 {
	if old.Seq != 0 {
		w.remove(bucketOf("changes", r.Feed), number(old.Seq))
	}
	r.Seq = w.next(r.Feed)
	if r.ID = old.ID; r.ID == 0 {
		r.ID = r.Seq
	}
	key := nameKey(r.RecordName)
	w.put(bucketOf("rows", r.Feed), key, w.encode(r))
	w.put(bucketOf("changes", r.Feed), number(r.Seq), key)
	w.put(bucketOf("ids", r.Feed), number(r.ID), key)
	return r.Seq
}

// Write does the writes of a batch.
func (d *driver) Write(ctx context.Context, b *store.Batch) error {
	return d.update(ctx, func(w *writing) {
		old := make([]store.Row, len(b.Writes))
		dimensions := map[string]int{}
		refused := false
		for i, one := range b.Writes {
			key := nameKey(one.RecordName)
			if raw := w.tx.Bucket(bucketOf("rows", one.Feed)).Get(key); raw != nil {
				old[i] = toRow(one.Feed, key, raw, true)
			}
			w.examine(one, old[i], b.Now, dimensions)
			refused = refused || one.Result.Unmet || one.Result.Dimension != 0
		}
		for i, one := range b.Writes {
			r := one.Result
			if !(refused && b.Atomic) && !r.Unmet && r.Dimension == 0 && !r.Same && !(one.Deleted && r.Seq == 0) {
				w.write(one, old[i], b.Now)
			}
		}
	})
}

// examine sets the result of a write that is not done yet.
func (w *writing) examine(one *store.RowWrite, old store.Row, now int64, dimensions map[string]int) {
	one.Result = store.RowResult{}
	exists := old.Seq != 0 && !old.Deleted
	if exists {
		one.Result = store.RowResult{Seq: old.Seq, Version: old.Version, Live: old.Expires == 0 || old.Expires > now}
	}
	if one.Result.Unmet = !one.If.Met(exists, old.Seq, old.Version); one.Result.Unmet || one.Deleted {
		return
	}
	one.Result.Same = one.Deduplicate && one.Result.Live && old.Expires == 0 && one.Expires == 0 && old.Hash == one.Hash && old.Metadata == one.Metadata
	if one.Feed != store.VectorFeed {
		return
	}
	dimension := len(one.Body) / 4
	if dimensions[one.Space] == 0 {
		dimensions[one.Space] = dimension
		if s, ok := spaceOf(w.tx, one.Space); ok {
			dimensions[one.Space] = s.Dimension
		}
	}
	if have := dimensions[one.Space]; have != dimension {
		one.Result.Dimension = have
	}
}

func (w *writing) write(one *store.RowWrite, old store.Row, now int64) {
	r := one.Row
	if one.Deleted {
		w.count(r, -1)
		w.store(old, store.Row{RecordName: r.RecordName, Deleted: true, Updated: now})
		one.Result.Seq = 0
		return
	}
	if r.Created == 0 {
		if r.Created = now; one.Result.Live {
			r.Created = old.Created
		}
	}
	if r.Updated == 0 {
		r.Updated = now
	}
	if r.Version == 0 {
		r.Version = one.Result.Version + 1
	}
	if one.Result.Seq == 0 {
		w.count(r, 1)
	}
	one.Result.Seq = w.store(old, r)
}

// count changes the number of vectors of a collection, which is created if it is new.
func (w *writing) count(r store.Row, by int) {
	if r.Feed != store.VectorFeed {
		return
	}
	s, ok := spaceOf(w.tx, r.Space)
	if !ok {
		s = store.Space{Name: r.Space, Dimension: len(r.Body) / 4, Born: w.next(store.VectorFeed)}
	}
	s.Count += by
	w.put(spacesBucket, []byte(r.Space), w.encode(s))
}

// selected returns the rows and tombstones of a feed that fn selects, below a prefix.
func (w *writing) selected(feed store.Feed, prefix []byte, fn func(r store.Row) bool) (all []store.Row) {
	c := w.tx.Bucket(bucketOf("rows", feed)).Cursor()
	for key, raw := c.Seek(prefix); key != nil && bytes.HasPrefix(key, prefix); key, raw = c.Next() {
		if r := toRow(feed, key, raw, true); fn(r) {
			all = append(all, r)
		}
	}
	return all
}

// Drop removes a collection.
func (d *driver) Drop(ctx context.Context, space string) (rows int, existed bool, err error) {
	err = d.update(ctx, func(w *writing) {
		if _, existed = spaceOf(w.tx, space); !existed {
			return
		}
		for _, r := range w.selected(store.VectorFeed, spaceKey(space), func(r store.Row) bool { return !r.Deleted }) {
			rows++
			w.store(r, store.Row{RecordName: r.RecordName, Deleted: true, Updated: r.Updated})
		}
		w.remove(spacesBucket, []byte(space))
	})
	return rows, existed, err
}

// Sweep removes expired entries and old tombstones.
func (d *driver) Sweep(ctx context.Context, expired, deleted int64) (n int, err error) {
	err = d.update(ctx, func(w *writing) {
		for _, r := range w.selected(store.EntryFeed, nil, func(r store.Row) bool { return !r.Deleted && r.Expires != 0 && r.Expires < expired }) {
			n++
			w.store(r, store.Row{RecordName: r.RecordName, Deleted: true, Swept: true, Updated: expired})
		}
		for _, feed := range store.Feeds() {
			w.forget(feed, deleted)
		}
	})
	return n, err
}

// forget removes the tombstones of a feed from before an instant, and all tombstones with smaller numbers.
func (w *writing) forget(feed store.Feed, before int64) {
	all := w.selected(feed, nil, func(r store.Row) bool { return r.Deleted })
	last := int64(0)
	for _, r := range all {
		if r.Updated < before {
			last = max(last, r.Seq)
		}
	}
	for _, r := range all {
		if r.Seq <= last {
			w.remove(bucketOf("rows", feed), nameKey(r.RecordName))
			w.remove(bucketOf("changes", feed), number(r.Seq))
			w.remove(bucketOf("ids", feed), number(r.ID))
		}
	}
	if last > 0 {
		w.put(stateBucket, bucketOf("forgotten", feed), number(last))
	}
}

// Close closes the file.
func (d *driver) Close() error { return d.db.Close() }
