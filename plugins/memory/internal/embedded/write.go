package embedded

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// inline reports whether the value of a row is stored in the row rather than in a blob.
func (m *entries) inline(r *store.Row) bool { return len(r.Body) < m.InlineBytes }

// saveLarge writes large values to blobs. The caller holds m.large until the rows are
// written.
func (m *entries) saveLarge(ctx context.Context, writes []*store.RowWrite) error {
	for _, w := range writes {
		if w.Deleted || m.inline(&w.Row) {
			continue
		}
		if err := m.large.Save(ctx, w.Hash, w.Body); err != nil {
			return err
		}
	}
	return nil
}

// batch writes entries in a transaction.
type batch struct {
	m   *entries
	tx  store.Tx
	now int64
	// marked reports whether the transaction has this process's mark.
	marked bool
}

// row is an entry in the database.
type row struct {
	id, seq              int64
	key, hash, metadata  string
	createdAt, expiresAt int64
	updatedAt            int64
	w                    *store.RowWrite // nil if the row is not written
}

func (r *row) live(now int64) bool { return r.expiresAt == 0 || r.expiresAt > now }

// write applies the writes of entries in a transaction.
func (m *entries) write(ctx context.Context, tx store.Tx, of *store.Batch, writes []*store.RowWrite) error {
	b := &batch{m: m, tx: tx, now: of.Now}
	keys := make([]string, len(writes))
	for i, w := range writes {
		keys[i] = rowKey(w.Space, w.Key)
	}
	found, err := b.find(ctx, m.filterKnown(keys))
	if err != nil {
		return err
	}
	for i, w := range writes {
		check(w, found[keys[i]], of.Now)
	}
	if refused(of, writes) {
		return errRefused
	}
	var added, changed []*row
	for i, w := range writes {
		have := found[keys[i]]
		switch {
		case w.Result.Unmet || w.Result.Same || w.Deleted && have == nil:
		case w.Deleted:
			if err := b.remove(ctx, have); err != nil {
				return err
			}
			w.Result.Seq = 0
		case have == nil:
			added = append(added, b.toRow(w, &row{id: m.numbers.nextID(), key: keys[i]}))
		default:
			changed = append(changed, b.toRow(w, have))
		}
	}
	written := slices.Concat(added, changed)
	if len(written) == 0 {
		return nil
	}
	for _, r := range written { // in the order of the insertions and updates
		if r.seq, err = b.next(ctx); err != nil {
			return err
		}
		r.w.Result.Seq = r.seq
	}
	if err := b.insert(ctx, added); err != nil {
		return err
	}
	if err := b.update(ctx, changed); err != nil {
		return err
	}
	tx.AfterCommit(func() { m.indexRows(written) })
	return nil
}

// check sets the result of a write: whether its condition is unmet, or the row is already the same. have is nil if
// there is no row.
func check(w *store.RowWrite, have *row, now int64) {
	if have != nil {
		w.Result.Seq, w.Result.Live = have.seq, have.live(now)
	}
	w.Result.Unmet = !w.If.Met(have != nil, w.Result.Seq, 0)
	w.Result.Same = w.Deduplicate && w.Result.Live && have.hash == w.Hash && have.metadata == w.Metadata && have.expiresAt == 0 && w.Expires == 0
}

// toRow returns the row after a write.
func (b *batch) toRow(w *store.RowWrite, r *row) *row {
	created := b.now
	if w.Result.Live {
		created = r.createdAt
	}
	r.createdAt, r.updatedAt = cmp.Or(w.Created, created), cmp.Or(w.Updated, b.now)
	r.w, r.hash, r.metadata, r.expiresAt = w, w.Hash, w.Metadata, w.Expires
	return r
}

// find reads the rows with these keys.
func (b *batch) find(ctx context.Context, wanted []string) (map[string]*row, error) {
	found := make(map[string]*row, len(wanted))
	for len(wanted) > 0 {
		n := min(len(wanted), lookUp)
		if b.m.engine.Dialect() == store.SQLite {
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
	rows, err := b.tx.Query(ctx, "SELECT id, seq, key, content_hash, coalesce(metadata, ''), created_at, coalesce(expires_at, 0) FROM ltm WHERE key IN "+list, args...)
	var r row
	return store.Scan(rows, err, func() {
		one := r
		found[r.key] = &one
	}, &r.id, &r.seq, &r.key, &r.hash, &r.metadata, &r.createdAt, &r.expiresAt)
}

// values returns the columns in the order of the table.
func (b *batch) values(r *row) []any {
	var inline any
	if b.m.inline(&r.w.Row) {
		inline = string(r.w.Body)
	}
	return []any{r.id, r.key, r.seq, inline, orNull(r.metadata), r.hash, r.createdAt, r.updatedAt, orNull(r.expiresAt)}
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
		all[i] = b.values(r)
	}
	return b.tx.Append(ctx, "ltm", all...)
}

func (b *batch) update(ctx context.Context, changed []*row) error {
	for _, r := range changed {
		v := b.values(r)
		_, err := b.tx.Exec(ctx, `UPDATE ltm SET seq = ?, value = ?, metadata = ?, content_hash = ?, created_at = ?, updated_at = ?, expires_at = ?
			WHERE key = ?`, append(v[2:], r.key)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteBatch is the maximum number of entries that one transaction deletes.
const deleteBatch = 1000

// deletePrefix removes the entries whose keys have the prefix, and returns the number of
// live ones.
func (m *entries) deletePrefix(ctx context.Context, namespace, prefix string, now int64) (deleted int, err error) {
	if err := m.ready(ctx); err != nil {
		return 0, err
	}
	for from, last := rowKey(namespace, prefix), false; !last; {
		live := 0
		err := m.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
			b := &batch{m: m, tx: tx, now: now}
			old, err := b.old(ctx, "key >= ? ORDER BY key", from, deleteBatch)
			live, last = 0, err == nil && len(old) < deleteBatch
			for _, r := range old {
				if ns, key := splitRowKey(r.key); ns != namespace || !strings.HasPrefix(key, prefix) {
					last = true
					break
				}
				if r.live(now) {
					live++
				}
				if err := b.remove(ctx, r); err != nil {
					return err
				}
			}
			return err
		})
		if err != nil {
			m.markStale(err)
			return deleted, err
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
	return b.tx.Append(ctx, tombstoneTable, tombstone(store.EntryFeed, seq, namespace, key, b.now))
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
// last mark, too, so it notices if a copy has replaced the database, where other
// changes can have the same numbers.
func (b *batch) next(ctx context.Context) (int64, error) {
	b.m.mu.Lock()
	marked := b.m.marked || b.marked
	b.m.mu.Unlock()
	if marked {
		return b.m.numbers.nextSeq(), nil
	}
	mark, seq := -1-rand.Int64(), b.m.numbers.nextSeq()
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
	return b.m.numbers.nextSeq(), nil
}
