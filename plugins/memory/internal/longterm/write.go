package longterm

import (
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

// Save stores the values that are too large for their rows. They are not swept until
// release is called, after the rows were written.
func (m *Memory) Save(ctx context.Context, writes []*store.RowWrite) (release func(), err error) {
	release = m.large.Hold()
	for _, w := range writes {
		if w.Feed != store.EntryFeed || w.Deleted || m.inline(w) {
			continue
		}
		if err := m.large.Save(ctx, w.Hash, w.Body); err != nil {
			release()
			return nil, err
		}
	}
	return release, nil
}

func (m *Memory) inline(w *store.RowWrite) bool { return w.Size < int64(m.o.InlineBytes) }

// batch is a set of writes in its transaction.
type batch struct {
	m   *Memory
	tx  store.Tx
	now int64
	// rows are the existing rows by key.
	rows   map[string]*row
	writes []*store.RowWrite
	// marked says that this transaction has the mark of this process.
	marked bool
}

// row is an existing row.
type row struct {
	id, seq              int64
	key, hash, metadata  string
	createdAt, expiresAt int64
}

// written is a row to write, and the rest of it for the index.
type written struct {
	*store.RowWrite
	id, seq int64
}

// Begin sets the results of writes before they are done, and returns the function that
// does those that are not refused.
func (m *Memory) Begin(ctx context.Context, tx store.Tx, writes []*store.RowWrite, now int64) (func(context.Context) error, error) {
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	b := &batch{m: m, tx: tx, now: now, writes: writes}
	keys := make([]string, len(writes))
	for i, w := range writes {
		keys[i] = rowKey(w.Space, w.Key)
	}
	var err error
	if b.rows, err = b.find(ctx, m.filterKnown(keys)); err != nil {
		return nil, err
	}
	for i, w := range writes {
		w.Result = store.RowResult{}
		r := b.rows[keys[i]]
		if r != nil {
			w.Result.Seq, w.Result.Live = r.seq, r.expiresAt == 0 || r.expiresAt > now
			w.Result.Same = w.Deduplicate && w.Result.Live && r.expiresAt == 0 && w.Expires == 0 && r.hash == w.Hash && r.metadata == w.Metadata
		}
		w.Result.Unmet = !w.If.Met(r != nil, w.Result.Seq, 0)
	}
	return b.write, nil
}

// write does the writes: the deletions first, then rows in the order of their numbers.
func (b *batch) write(ctx context.Context) error {
	for _, w := range b.writes {
		if r := b.rows[rowKey(w.Space, w.Key)]; w.Deleted && r != nil && !w.Result.Unmet {
			if err := b.remove(ctx, r); err != nil {
				return err
			}
			w.Result.Seq = 0
		}
	}
	var added [][]any
	var all, changed []written
	for _, w := range b.writes {
		if w.Deleted || w.Result.Unmet || w.Result.Same {
			continue
		}
		seq, err := b.next(ctx)
		if err != nil {
			return err
		}
		w.Result.Seq = seq
		one := written{w, 0, seq}
		if r := b.rows[rowKey(w.Space, w.Key)]; r != nil {
			one.id = r.id
			changed = append(changed, one)
		} else {
			one.id = b.m.nextID()
			added = append(added, b.values(one))
		}
		all = append(all, one)
	}
	if err := b.tx.Append(ctx, "ltm", added...); err != nil {
		return err
	}
	for _, one := range changed {
		v := b.values(one)
		_, err := b.tx.Exec(ctx, `UPDATE ltm SET seq = ?, value = ?, metadata = ?, content_hash = ?, created_at = ?, updated_at = ?, expires_at = ?
			WHERE key = ?`, append(v[2:], v[1])...)
		if err != nil {
			return err
		}
	}
	b.tx.AfterCommit(func() { b.m.indexRows(all) })
	return nil
}

// values returns the columns in the order of the table.
func (b *batch) values(w written) []any {
	key := rowKey(w.Space, w.Key)
	created, updated := w.Created, w.Updated
	if created == 0 {
		if created = b.now; w.Result.Live {
			created = b.rows[key].createdAt
		}
	}
	if updated == 0 {
		updated = b.now
	}
	var inline any
	if b.m.inline(w.RowWrite) {
		inline = string(w.Body)
	}
	return []any{w.id, key, w.seq, inline, orNull(w.Metadata), w.Hash, created, updated, orNull(w.Expires)}
}

func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

// find reads the rows with these keys.
func (b *batch) find(ctx context.Context, wanted []string) (map[string]*row, error) {
	found := make(map[string]*row, len(wanted))
	size := lookUp
	if b.m.o.Engine.Dialect() == store.SQLite {
		size = 1 // a look-up is fast, and the statement stays prepared
	}
	for part := range slices.Chunk(wanted, size) {
		list, args := store.InList(part)
		rows, err := b.tx.Query(ctx, "SELECT id, seq, key, content_hash, coalesce(metadata, ''), created_at, coalesce(expires_at, 0) FROM ltm WHERE key IN "+list, args...)
		var r row
		err = store.Scan(rows, err, func() {
			one := r
			found[r.key] = &one
		}, &r.id, &r.seq, &r.key, &r.hash, &r.metadata, &r.createdAt, &r.expiresAt)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// deleteBatch is the maximum number of entries that one transaction deletes.
const deleteBatch = 1000

// DeletePrefix removes the entries whose keys have the prefix, and returns the number of
// live ones.
func (m *Memory) DeletePrefix(ctx context.Context, namespace, prefix string, now int64) (deleted int, err error) {
	if err := m.ready(ctx); err != nil {
		return 0, err
	}
	for from, last := rowKey(namespace, prefix), false; !last; {
		live := 0
		err := m.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
			b := &batch{m: m, tx: tx, now: now}
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
			m.Failed(nil, err)
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
