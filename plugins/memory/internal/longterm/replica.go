package longterm

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/deletion"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// listed is a row of the feed.
type listed struct {
	entry
	seq     int64
	deleted bool
}

const listedColumns = "seq, '', key, value, metadata, content_hash, created_at, updated_at, expires_at"

// Changes returns the entries that changed after a number; see [store.Replica].
func (m *Memory) Changes(ctx context.Context, query store.ChangeQuery) (store.ChangePage, error) {
	if err := m.ready(ctx); err != nil {
		return store.ChangePage{}, err
	}
	m.mu.Lock()
	last := m.numbers.seq
	m.mu.Unlock()
	// One statement, so that no change is missed between two.
	rows, err := m.listed(ctx, "SELECT "+listedColumns+" FROM ltm WHERE seq > ? UNION ALL "+
		"SELECT seq, space, key, NULL, NULL, '', deleted_at, deleted_at, NULL FROM tea_deleted WHERE feed = ? AND seq > ? ORDER BY 1 LIMIT ?",
		query.After, string(store.EntryFeed), query.After, max(query.Limit, 1)+1)
	if err != nil {
		return store.ChangePage{}, err
	}
	// Read after the page, which lacks the tombstones removed before.
	if err := deletion.Check(ctx, m.o.Engine, query, last); err != nil {
		return store.ChangePage{}, err
	}
	return deletion.Page(query, rows, func(l listed) int64 { return l.seq }, func(l listed) (store.Record, bool, error) { return m.record(ctx, l) })
}

// Records returns the entries with these names; see [store.Replica].
func (m *Memory) Records(ctx context.Context, names []store.RecordName) ([]store.Record, error) {
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	found := make(map[string]listed, len(names))
	for part := range slices.Chunk(rowKeys(names), lookUp) {
		list, args := store.InList(part)
		rows, err := m.listed(ctx, "SELECT "+listedColumns+" FROM ltm WHERE key IN "+list, args...)
		if err != nil {
			return nil, err
		}
		for _, l := range rows {
			found[rowKey(l.Namespace, l.Key)] = l
		}
	}
	all := make([]store.Record, len(names))
	for i, name := range names {
		all[i] = store.Record{RecordName: name, Deleted: true}
		l, ok := found[rowKey(name.Space, name.Key)]
		if !ok {
			continue
		}
		r, ok, err := m.record(ctx, l)
		if err != nil {
			return nil, err
		}
		if ok {
			all[i] = r
		}
	}
	return all, nil
}

func rowKeys(names []store.RecordName) []string {
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = rowKey(name.Space, name.Key)
	}
	return keys
}

// listed reads rows of the feed.
func (m *Memory) listed(ctx context.Context, query string, args ...any) ([]listed, error) {
	rows, err := m.o.Engine.Query(ctx, query, args...)
	var found []listed
	var seq, created, updated int64
	var space, key, hash string
	var value, metadata text
	var expires number
	err = store.Scan(rows, err, func() {
		l := listed{seq: seq, deleted: hash == "", entry: entry{store.Memory{ContentHash: hash, CreatedAt: clock.FromMicro(created), UpdatedAt: clock.FromMicro(updated)}}}
		if l.Namespace, l.Key = space, key; !l.deleted {
			l.Namespace, l.Key = splitRowKey(key)
		}
		l.hold(value, metadata, expires)
		found = append(found, l)
	}, &seq, &space, &key, &value, &metadata, &hash, &created, &updated, &expires)
	return found, err
}

// record returns the record of a row, false if it was removed meanwhile.
func (m *Memory) record(ctx context.Context, l listed) (store.Record, bool, error) {
	if l.deleted {
		return store.Record{RecordName: store.RecordName{Feed: store.EntryFeed, Space: l.Namespace, Key: l.Key}, Seq: l.seq, Deleted: true, Updated: l.UpdatedAt}, true, nil
	}
	switch err := m.fillListed(ctx, &l.entry); {
	case errors.Is(err, errRemoved):
		return store.Record{}, false, nil
	case err != nil:
		return store.Record{}, false, err
	}
	r, err := ToRecord(l.Memory, l.seq)
	return r, true, err
}

// ToRecord returns the record of an entry.
func ToRecord(e store.Memory, seq int64) (store.Record, error) {
	r := store.Record{
		RecordName: store.RecordName{Feed: store.EntryFeed, Space: e.Namespace, Key: e.Key}, Seq: seq,
		Created: e.CreatedAt, Updated: e.UpdatedAt, Expires: e.ExpiresAt, Damaged: e.Damaged,
	}
	if e.Damaged {
		return r, nil
	}
	var err error
	r.Hash = store.EntryHash(e.ContentHash, string(e.Metadata), e.ExpiresAt)
	r.Body, err = json.Marshal(store.EntryBody{Value: e.Value, Metadata: e.Metadata})
	return r, err
}

// Writes are validated records. Call Release when they are written or abandoned.
type Writes struct {
	m        *Memory
	writes   []store.RecordWrite
	contents []*prepared // nil for a deletion and for a refused record
	// Refused are the errors of the records that cannot be stored.
	Refused []error
	Release func()
}

// PrepareWrites validates records and stores their large values.
func (m *Memory) PrepareWrites(ctx context.Context, writes []store.RecordWrite) (*Writes, error) {
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	w := &Writes{m: m, writes: writes, contents: make([]*prepared, len(writes)), Refused: make([]error, len(writes)), Release: m.large.Hold()}
	var all []*prepared
	for i, write := range writes {
		if write.Deleted {
			w.Refused[i] = checkEntry(store.Entry{Namespace: write.Space, Key: write.Key})
			continue
		}
		if w.contents[i], w.Refused[i] = m.prepareRecord(write.Record); w.Refused[i] == nil {
			all = append(all, w.contents[i])
		}
	}
	if err := m.saveLarge(ctx, all); err != nil {
		w.Release()
		return nil, err
	}
	return w, nil
}

func (m *Memory) prepareRecord(r store.Record) (*prepared, error) {
	return prepareRecord(r, m.o.InlineBytes)
}

func prepareRecord(r store.Record, inlineBytes int) (*prepared, error) {
	var body store.EntryBody
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the record of key %q: %w", r.Key, err)
	}
	c, err := prepare(store.Entry{Namespace: r.Space, Key: r.Key, Value: body.Value, Metadata: body.Metadata}, inlineBytes, time.Time{})
	if err != nil {
		return nil, err
	}
	if !r.Expires.IsZero() {
		c.expiresAt = r.Expires.UnixMicro()
	}
	return c, nil
}

// Write writes the records in a transaction. The results have the same order.
func (w *Writes) Write(ctx context.Context, tx store.Tx) ([]store.PutResult, error) {
	b := &batch{m: w.m, tx: tx, now: w.m.o.Clock.Micro()}
	names := make([]store.RecordName, len(w.writes))
	for i, write := range w.writes {
		names[i] = write.RecordName
	}
	numbers, err := b.numbers(ctx, w.m.filterKnown(rowKeys(names)))
	if err != nil {
		return nil, err
	}
	results := make([]store.PutResult, len(w.writes))
	todo := make([]bool, len(w.writes))
	for i, write := range w.writes {
		have := numbers[rowKey(write.Space, write.Key)]
		results[i] = store.PutResult{Seq: have.seq, Err: w.Refused[i], Conflict: w.Refused[i] == nil && write.If != store.AnySeq && write.If != have.seq}
		todo[i] = results[i].Err == nil && !results[i].Conflict
		if todo[i] && write.Deleted && have.seq != 0 {
			if err := b.remove(ctx, &row{id: have.id, key: have.key}); err != nil {
				return nil, err
			}
			results[i].Seq = 0
		}
	}
	var written, added, changed []*row // after the deletions, in the order of the numbers
	for i, write := range w.writes {
		if !todo[i] || write.Deleted {
			continue
		}
		c := w.contents[i]
		have := numbers[c.key]
		seq, err := b.next(ctx)
		if err != nil {
			return nil, err
		}
		r := &row{
			id: have.id, seq: seq, key: c.key, content: c, hash: c.hash, metadata: c.metadata, expiresAt: c.expiresAt,
			createdAt: microOr(write.Created, b.now), updatedAt: microOr(write.Updated, b.now),
		}
		if have.seq != 0 {
			changed = append(changed, r)
		} else {
			r.id = b.m.nextID()
			added = append(added, r)
		}
		written = append(written, r)
		results[i].Seq = r.seq
	}
	if err := b.insert(ctx, added); err != nil {
		return nil, err
	}
	if err := b.update(ctx, changed); err != nil {
		return nil, err
	}
	tx.AfterCommit(func() { b.m.indexRows(written) })
	return results, nil
}

// Failed handles the error of the transaction.
func (w *Writes) Failed(err error) error { return w.m.markStale(err) }

func microOr(t time.Time, now int64) int64 {
	if t.IsZero() {
		return now
	}
	return t.UnixMicro()
}

// numbers returns the rows under these keys with their ids and numbers only.
func (b *batch) numbers(ctx context.Context, keys []string) (map[string]row, error) {
	found := make(map[string]row, len(keys))
	for part := range slices.Chunk(keys, lookUp) {
		list, args := store.InList(part)
		rows, err := b.tx.Query(ctx, "SELECT id, seq, key FROM ltm WHERE key IN "+list, args...)
		var r row
		if err := store.Scan(rows, err, func() { found[r.key] = r }, &r.id, &r.seq, &r.key); err != nil {
			return nil, err
		}
	}
	return found, nil
}
