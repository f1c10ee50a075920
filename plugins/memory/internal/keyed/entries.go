package keyed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// entries is the long-term memory.
type entries struct {
	d      *Database
	index  *textIndex
	closed atomic.Bool
}

var _ store.LongTermMemory = (*entries)(nil)

func newEntries(d *Database) *entries { return &entries{d: d, index: &textIndex{d: d}} }

func entryName(namespace, key string) store.RecordName {
	return store.RecordName{Feed: store.EntryFeed, Space: namespace, Key: key}
}

// expired reports whether a row has expired.
func (d *Database) expired(r *row) bool {
	return r.expires != 0 && r.expires <= d.o.Now().UnixMicro()
}

func (m *entries) check(ctx context.Context) error {
	if m.closed.Load() {
		return errClosed
	}
	return ctx.Err()
}

// Store writes entries.
func (m *entries) Store(ctx context.Context, all ...store.Entry) ([]store.Stored, error) {
	if err := m.check(ctx); err != nil {
		return nil, err
	}
	now := m.d.o.Now()
	contents, err := longterm.ToCanonical(all, m.d.o.InlineBytes, now)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	names := make([]store.RecordName, len(all))
	for i, e := range all {
		names[i] = entryName(e.Namespace, e.Key)
	}
	results := make([]store.Stored, len(all))
	err = m.d.write(ctx, func(t *tx) error {
		slots, err := m.d.slots(ctx, names...)
		if err != nil {
			return err
		}
		for i, c := range contents {
			if results[i], err = t.store(ctx, slots[i], c, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// store writes an entry unless the same is stored.
func (t *tx) store(ctx context.Context, s slot, c longterm.Canonical, now time.Time) (store.Stored, error) {
	r := store.Stored{Inlined: c.Inline, ContentHash: c.Hash, ByteSize: int64(len(c.Value)), Created: s.row == nil || t.d.expired(s.row)}
	r.Deduplicated = !r.Created && s.row.expires == 0 && c.ExpiresAt == 0 && s.row.hash == c.Hash && s.row.metadata == c.Metadata
	if r.Deduplicated {
		return r, nil
	}
	created := now.UnixMicro()
	if !r.Created {
		created = s.row.created
	}
	return r, t.putEntry(ctx, s, c, created, now.UnixMicro())
}

// putEntry writes the row and the large value of an entry.
func (t *tx) putEntry(ctx context.Context, s slot, c longterm.Canonical, created, updated int64) error {
	r := &row{hash: c.Hash, metadata: c.Metadata, size: int64(len(c.Value)), created: created, updated: updated, expires: c.ExpiresAt, large: !c.Inline}
	if c.Inline {
		r.body = c.Value
	} else if err := t.refer(ctx, c.Hash, 1, c.Value); err != nil {
		return err
	}
	if s.row != nil && s.row.large {
		if err := t.refer(ctx, s.row.hash, -1, ""); err != nil {
			return err
		}
	}
	t.put(s, r)
	return nil
}

// deleteEntry deletes an entry with its large value.
func (t *tx) deleteEntry(ctx context.Context, s slot, swept bool) error {
	t.delete(s, swept)
	if s.row.large {
		return t.refer(ctx, s.row.hash, -1, "")
	}
	return nil
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

// Retrieve returns a live entry.
func (m *entries) Retrieve(ctx context.Context, namespace, key string) (store.Memory, error) {
	if err := m.check(ctx); err != nil {
		return store.Memory{}, err
	}
	if err := longterm.CheckNamespace(namespace); err != nil {
		return store.Memory{}, err
	}
	if !longterm.Storable(key) {
		return store.Memory{}, longterm.Missing(key)
	}
	name := entryName(namespace, key)
	for {
		found, err := m.d.o.DB.Get(ctx, rowKey(name))
		if err != nil {
			return store.Memory{}, fmt.Errorf("read the entry: %w", err)
		}
		if found[0] == nil {
			return store.Memory{}, longterm.Missing(key)
		}
		r, err := decodeRow(found[0])
		if err != nil {
			return store.Memory{}, longterm.Damaged(key, "the row is not complete")
		}
		if m.d.expired(r) {
			return store.Memory{}, longterm.Missing(key)
		}
		e, gone, err := m.memory(ctx, name, r, false)
		if gone { // replaced since the row was read
			continue
		}
		if err == nil && e.Damaged {
			err = longterm.Damaged(key, "its hash is another one")
		}
		return e, err
	}
}

// memory returns the entry of a row. gone: its large value does not exist any more.
func (m *entries) memory(ctx context.Context, name store.RecordName, r *row, keysOnly bool) (e store.Memory, gone bool, err error) {
	e = store.Memory{
		ID: r.id, Namespace: name.Space, Key: name.Key, ContentHash: r.hash,
		CreatedAt: clock.FromMicro(r.created), UpdatedAt: clock.FromMicro(r.updated), ExpiresAt: clock.FromMicro(r.expires),
	}
	if keysOnly {
		return e, false, nil
	}
	if r.metadata != "" {
		e.Metadata = json.RawMessage(r.metadata)
	}
	value := []byte(r.body)
	if r.large {
		found, err := m.d.o.DB.Get(ctx, tableKey(largeTable, r.hash), rowKey(name))
		if err != nil {
			return e, false, fmt.Errorf("read the value: %w", err)
		}
		if value = found[0]; value == nil {
			now, err := decodeRow(found[1])
			return e, err != nil || now.hash != r.hash, nil
		}
	}
	if hashOf(value) != r.hash {
		e.Damaged = true
		return e, false, nil
	}
	e.Value = value
	return e, false, nil
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Delete removes an entry.
func (m *entries) Delete(ctx context.Context, namespace, key string) (live bool, err error) {
	if err := m.check(ctx); err != nil {
		return false, err
	}
	if err := longterm.CheckNamespace(namespace); err != nil {
		return false, err
	}
	if !longterm.Storable(key) {
		return false, nil
	}
	err = m.d.write(ctx, func(t *tx) error {
		slots, err := m.d.slots(ctx, entryName(namespace, key))
		if err != nil || slots[0].row == nil {
			return err
		}
		live = !m.d.expired(slots[0].row)
		return t.deleteEntry(ctx, slots[0], false)
	})
	return live && err == nil, err
}

// DeletePrefix removes the entries below a prefix.
func (m *entries) DeletePrefix(ctx context.Context, namespace, prefix string) (n int, err error) {
	if err := m.check(ctx); err != nil {
		return 0, err
	}
	if err := longterm.CheckPrefix(namespace, prefix); err != nil {
		return 0, err
	}
	from := rowKey(entryName(namespace, prefix))
	for {
		removed, live := 0, 0
		err := m.d.write(ctx, func(t *tx) error {
			removed, live = 0, 0
			return m.d.deleteRows(ctx, t, from, behind(from), func(r *row) bool {
				removed++
				if !m.d.expired(r) {
					live++
				}
				return true
			}, false)
		})
		if err != nil || removed == 0 {
			return n, err
		}
		n += live
	}
}

// deleteRows deletes up to scanBatch entries of a range that fn accepts.
func (d *Database) deleteRows(ctx context.Context, t *tx, from, to string, fn func(*row) bool, swept bool) error {
	left := scanBatch
	return d.each(ctx, from, to, func(p Pair) (bool, error) {
		r, err := decodeRow(p.Value)
		if err != nil {
			r = &row{} // it can be deleted
		}
		if fn(r) {
			left--
			if err := t.deleteEntry(ctx, slot{name: nameOf(p.Key), row: r}, swept); err != nil {
				return false, err
			}
		}
		return left > 0, nil
	})
}

// Sweep removes expired entries, and old tombstones.
func (m *entries) Sweep(ctx context.Context, before time.Time) (n int, err error) {
	if err := m.check(ctx); err != nil {
		return 0, err
	}
	for {
		removed := 0
		err := m.d.write(ctx, func(t *tx) error {
			removed = 0
			return m.d.deleteRows(ctx, t, string(rowTable(store.EntryFeed)), string(rowTable(store.EntryFeed)+1), func(r *row) bool {
				if r.expires == 0 || r.expires >= before.UnixMicro() {
					return false
				}
				removed++
				return true
			}, true)
		})
		if n += removed; err != nil {
			return n, err
		}
		if removed == 0 {
			return n, m.d.forgetDeletions(ctx)
		}
	}
}

// Close ends the calls.
func (m *entries) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	return m.index.close()
}

// List returns live entries in the order of their keys.
func (m *entries) List(ctx context.Context, l store.List) (p store.Page, err error) {
	if err := m.check(ctx); err != nil {
		return p, err
	}
	if err := errors.Join(longterm.CheckPrefix(l.Namespace, l.Prefix), longterm.CheckPrefix(l.Namespace, l.After)); err != nil || l.Limit < 1 {
		return p, err
	}
	c := collector{limit: l.Limit, maxBytes: l.MaxBytes}
	err = m.walk(ctx, l, func(*row) bool { return true }, func(e store.Memory) bool { return c.add(e, 0) })
	for _, f := range c.found {
		p.Entries = append(p.Entries, f.Memory)
	}
	p.More = c.more
	return p, err
}

// walk calls fn with the live entries of a page until it returns false.
func (m *entries) walk(ctx context.Context, l store.List, wanted func(*row) bool, fn func(store.Memory) bool) error {
	from := rowKey(entryName(l.Namespace, l.Prefix))
	to := behind(from)
	if l.After >= l.Prefix && l.After != "" {
		from = rowKey(entryName(l.Namespace, l.After)) + "\x00"
	}
	return m.d.eachBatch(ctx, from, to, min(max(l.Limit, 1)+1, scanBatch), func(p Pair) (bool, error) {
		name := nameOf(p.Key)
		r, err := decodeRow(p.Value)
		if err != nil {
			return fn(store.Memory{Namespace: name.Space, Key: name.Key, Damaged: true}), nil
		}
		if m.d.expired(r) || !wanted(r) {
			return true, nil
		}
		e, gone, err := m.memory(ctx, name, r, l.KeysOnly)
		if err != nil || gone {
			return true, err
		}
		return fn(e), nil
	})
}

// collector takes the results of a page.
type collector struct {
	found    []store.Found
	skip     int
	limit    int
	maxBytes int64
	bytes    int64
	more     bool
}

// add adds a result, and reports whether there can be more.
func (c *collector) add(e store.Memory, score float64) bool {
	if c.skip > 0 {
		c.skip--
		return true
	}
	c.bytes += e.JSONBytes()
	if len(c.found) == c.limit || c.maxBytes > 0 && c.bytes > c.maxBytes && len(c.found) > 0 {
		c.more = true
		return false
	}
	c.found = append(c.found, store.Found{Memory: e, Score: score})
	return true
}

func hasPrefix(n store.RecordName, namespace, prefix string) bool {
	return n.Space == namespace && strings.HasPrefix(n.Key, prefix)
}
