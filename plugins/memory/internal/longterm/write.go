package longterm

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/deletion"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// lookUp is the maximum number of keys that one statement looks up.
const lookUp = 500

// Store writes entries atomically.
func (m *Memory) Store(ctx context.Context, entries ...store.Entry) ([]store.Stored, error) {
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, nil
	}
	contents, err := prepareAll(entries, m.o.InlineBytes, m.o.Clock.Now())
	if err != nil {
		return nil, err
	}
	defer m.large.Hold()()
	if err := m.saveLarge(ctx, contents); err != nil {
		return nil, err
	}
	var results []store.Stored
	err = m.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		b := &batch{m: m, tx: tx, now: m.o.Clock.Micro()}
		var err error
		results, err = b.store(ctx, contents)
		return err
	})
	if err != nil {
		return nil, m.markStale(err)
	}
	return results, nil
}

// batch is a call of Store in its transaction.
type batch struct {
	m   *Memory
	tx  store.Tx
	now int64
	// rows are the resulting rows by key.
	rows map[string]*row
	// marked says that this transaction has the mark of this process.
	marked bool
}

// row is an entry in the database. Its fields are the table's columns.
type row struct {
	id, seq              int64
	content              *prepared // nil if the row is not written
	key, hash, metadata  string
	createdAt, expiresAt int64
	updatedAt            int64 // 0 = now
	added, changed       bool
}

func (b *batch) store(ctx context.Context, contents []*prepared) ([]store.Stored, error) {
	wanted := make([]string, len(contents))
	for i, c := range contents {
		wanted[i] = c.key
	}
	var err error
	if b.rows, err = b.find(ctx, b.m.filterKnown(wanted)); err != nil {
		return nil, err
	}
	results := make([]store.Stored, len(contents))
	var added, changed []*row
	for i, c := range contents {
		r, created := b.put(c)
		results[i] = store.Stored{
			Created: created, Deduplicated: !r.added && !r.changed, Inlined: c.inline, ContentHash: c.hash, ByteSize: int64(len(c.text)),
		}
	}
	for _, c := range contents {
		switch r := b.rows[c.key]; {
		case r.added:
			added = append(added, r)
		case r.changed:
			changed = append(changed, r)
		}
	}
	written := slices.Concat(added, changed)
	for _, r := range written {
		if r.seq, err = b.next(ctx); err != nil { // in the order of the insertions and updates
			return nil, err
		}
	}
	if err := b.insert(ctx, added); err != nil {
		return nil, err
	}
	if err := b.update(ctx, changed); err != nil {
		return nil, err
	}
	b.tx.AfterCommit(func() { b.m.indexRows(written) })
	return results, nil
}

// put merges an entry into the row of its key, and reports whether the entry is new.
func (b *batch) put(c *prepared) (r *row, created bool) {
	r = b.rows[c.key]
	switch {
	case r == nil:
		r = &row{id: b.m.nextID(), key: c.key, createdAt: b.now, added: true}
		b.rows[c.key] = r
		created = true
	case r.expiresAt != 0 && r.expiresAt <= b.now:
		r.createdAt, r.changed = b.now, !r.added
		created = true
	case r.hash == c.hash && r.metadata == c.metadata && r.expiresAt == 0 && c.expiresAt == 0:
		return r, false
	default:
		r.changed = !r.added
	}
	r.content, r.hash, r.metadata, r.expiresAt = c, c.hash, c.metadata, c.expiresAt
	return r, created
}

// find reads the rows with these keys.
func (b *batch) find(ctx context.Context, wanted []string) (map[string]*row, error) {
	found := make(map[string]*row, len(wanted))
	for len(wanted) > 0 {
		n := min(len(wanted), lookUp)
		if b.m.o.Engine.Dialect() == store.SQLite {
			n = 1 // a look-up is fast, and the statement stays prepared
		}
		if err := b.findSome(ctx, wanted[:n], found); err != nil {
			return nil, err
		}
		wanted = wanted[n:]
	}
	return found, nil
}

func (b *batch) findSome(ctx context.Context, wanted []string, found map[string]*row) error {
	list, args := store.InList(wanted)
	rows, err := b.tx.Query(ctx, "SELECT id, key, content_hash, coalesce(metadata, ''), created_at, coalesce(expires_at, 0) FROM ltm WHERE key IN "+list, args...)
	var r row
	return store.Scan(rows, err, func() {
		one := r
		found[r.key] = &one
	}, &r.id, &r.key, &r.hash, &r.metadata, &r.createdAt, &r.expiresAt)
}

// values returns the columns in the order of the table.
func (r *row) values(now int64) []any {
	var inline any
	if r.content.inline {
		inline = r.content.text
	}
	return []any{r.id, r.key, r.seq, inline, orNull(r.metadata), r.hash, r.createdAt, cmp.Or(r.updatedAt, now), orNull(r.expiresAt)}
}

func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

func (b *batch) insert(ctx context.Context, added []*row) error {
	all := make([][]any, len(added))
	for i, r := range added {
		all[i] = r.values(b.now)
	}
	return b.tx.Append(ctx, "ltm", all...)
}

func (b *batch) update(ctx context.Context, changed []*row) error {
	for _, r := range changed {
		v := r.values(b.now)
		_, err := b.tx.Exec(ctx, `UPDATE ltm SET seq = ?, value = ?, metadata = ?, content_hash = ?, created_at = ?, updated_at = ?, expires_at = ?
			WHERE key = ?`, append(v[2:], r.key)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// Delete removes the entry under key and reports whether there was a live one.
func (m *Memory) Delete(ctx context.Context, namespace, key string) (deleted bool, err error) {
	if err := checkNamespace(namespace); err != nil {
		return false, err
	}
	if err := m.ready(ctx); err != nil || !storable(key) {
		return false, err
	}
	key = rowKey(namespace, key)
	err = m.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		b := &batch{m: m, tx: tx, now: m.o.Clock.Micro()}
		found, err := b.find(ctx, []string{key})
		if err != nil {
			return err
		}
		r := found[key]
		if deleted = r != nil && (r.expiresAt == 0 || r.expiresAt > b.now); r == nil {
			return nil
		}
		return b.remove(ctx, r)
	})
	if err != nil {
		return false, m.markStale(err)
	}
	return deleted, nil
}

// deleteBatch is the maximum number of entries that one transaction deletes.
const deleteBatch = 1000

// DeletePrefix removes the entries whose keys have the prefix, and returns the number of
// live ones.
func (m *Memory) DeletePrefix(ctx context.Context, namespace, prefix string) (deleted int, err error) {
	if err := checkPrefix(namespace, prefix); err != nil {
		return 0, err
	}
	if err := m.ready(ctx); err != nil {
		return 0, err
	}
	for from, last := rowKey(namespace, prefix), false; !last; {
		live := 0
		err := m.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
			b := &batch{m: m, tx: tx, now: m.o.Clock.Micro()}
			old, err := b.old(ctx, "key >= ? ORDER BY key", from, deleteBatch)
			live, last = 0, err == nil && len(old) < deleteBatch
			for _, r := range old {
				if ns, key := splitRowKey(r.key); ns != namespace || !strings.HasPrefix(key, prefix) {
					last = true
					break
				}
				if r.expiresAt == 0 || r.expiresAt > b.now {
					live++
				}
				if err := b.remove(ctx, r); err != nil {
					return err
				}
			}
			return err
		})
		if err != nil {
			return deleted, m.markStale(err)
		}
		deleted += live
	}
	return deleted, nil
}

// remove deletes a row and leaves a tombstone.
func (b *batch) remove(ctx context.Context, r *row) error {
	seq, err := b.drop(ctx, r)
	if err != nil {
		return err
	}
	namespace, key := splitRowKey(r.key)
	return b.tx.Append(ctx, deletion.Table, deletion.Row(store.EntryFeed, seq, namespace, key, b.now))
}

// drop deletes a row and records its removal for the index.
func (b *batch) drop(ctx context.Context, r *row) (seq int64, err error) {
	if _, err := b.tx.Exec(ctx, "DELETE FROM ltm WHERE key = ?", r.key); err != nil {
		return 0, err
	}
	return b.forget(ctx, r.id)
}

// forget records the removal of an entry in ltm_gone, for an index that is opened later,
// and removes it from the open index after the commit.
func (b *batch) forget(ctx context.Context, id int64) (seq int64, err error) {
	if seq, err = b.next(ctx); err != nil {
		return 0, err
	}
	if _, err := b.tx.Exec(ctx, "INSERT INTO ltm_gone VALUES (?, ?)", id, seq); err != nil {
		return 0, err
	}
	b.tx.AfterCommit(func() { b.m.unindex(id, seq) })
	return seq, nil
}

// next returns the number of the next change. The first change of a process is a
// mark: a row of ltm_gone with a negative id, chosen at random. The index has the
// last mark, too, and so recognizes rows that were replaced by those of a copy, in
// which other changes have the same numbers.
func (b *batch) next(ctx context.Context) (int64, error) {
	b.m.mu.Lock()
	marked := b.m.marked || b.marked
	b.m.mu.Unlock()
	if marked {
		return b.m.nextSeq(), nil
	}
	mark, seq := -1-rand.Int64(), b.m.nextSeq()
	if _, err := b.tx.Exec(ctx, "INSERT INTO ltm_gone VALUES (?, ?)", mark, seq); err != nil {
		return 0, err
	}
	b.marked = true
	b.tx.AfterCommit(func() {
		b.m.mu.Lock()
		b.m.marked = true
		b.m.mu.Unlock()
		b.m.backlog.add(0, func() {
			b.m.applyNow(seq, func(index *fulltext.Index) error { return index.SetMark(mark, seq) })
		})
	})
	return b.m.nextSeq(), nil
}
