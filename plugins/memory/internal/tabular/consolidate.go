package tabular

import (
	"context"
	"errors"
	"strconv"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Consolidate merges all files and rows of a table into one file that has each
// key once, and creates a snapshot of it. Readers and writers continue meanwhile;
// later writes become the new delta.
func (s *Tables) Consolidate(ctx context.Context, name string) (store.Consolidated, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return store.Consolidated{}, err
	}
	t.merging.Lock()
	defer t.merging.Unlock()
	if s.dialect() == store.DuckDB {
		return s.merge(ctx, t, true)
	}
	return s.prune(ctx, t)
}

// prune is the consolidation of SQLite: it removes all changes except the last
// one per key.
func (s *Tables) prune(ctx context.Context, t *table) (c store.Consolidated, err error) {
	last, err := s.o.Catalog.LastSnapshot(ctx, t.name)
	if err != nil {
		return c, err
	}
	err = s.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		if c.RowsBefore, err = store.Int(tx.Query(ctx, "SELECT count(*) FROM "+t.log())); err != nil {
			return err
		}
		if err := execAll(ctx, tx, []string{
			"DELETE FROM " + t.log() + " AS r WHERE EXISTS (SELECT 1 FROM " + t.log() + " AS n WHERE n._tea_op <> 'I' AND n._tea_key = r._tea_key AND n._tea_seq > r._tea_seq)",
			"DELETE FROM " + t.log() + " WHERE _tea_op = 'D'",
			"UPDATE " + t.log() + " SET _tea_op = 'I' WHERE _tea_op <> 'I'",
		}); err != nil {
			return err
		}
		if c.Rows, err = store.Int(tx.Query(ctx, "SELECT count(*) FROM "+t.log())); err != nil {
			return err
		}
		entry := t.entry
		entry.Version = t.take(0)
		snapshot, err := s.o.Catalog.SnapshotIn(ctx, tx, entry, nil, last)
		if err != nil {
			return err
		}
		c.Snapshot = snapshot.ID
		rows := c.Rows
		tx.AfterCommit(func() { t.commit(entry.Version, func(l *load) { *l = load{baseRows: rows} }) })
		return nil
	})
	return c, err
}

// merge is the consolidation of DuckDB. If all is set it merges base and delta,
// otherwise only the delta, and keeps the changes that hide rows of the base.
//
// It merges the changes up to a number, the cut. Each file is entirely before or
// after the cut.
func (s *Tables) merge(ctx context.Context, t *table, all bool) (c store.Consolidated, err error) {
	defer s.readers.begin()()
	t.mu.Lock()
	cut := t.done
	t.mu.Unlock()
	old, err := s.replaceable(ctx, t, all, cut)
	if err != nil {
		return c, err
	}
	rows, err := store.Int(s.o.Engine.Query(ctx, "SELECT count(*) FROM "+t.log()+" WHERE _tea_seq <= ?", cut))
	if err != nil {
		return c, err
	}
	c.FilesBefore, c.RowsBefore = len(old), rows
	for _, f := range old {
		c.RowsBefore += f.Rows
	}
	last, err := s.o.Catalog.LastSnapshot(ctx, t.name)
	if err != nil {
		return c, err
	}
	if all && rows == 0 && len(old) == 1 && old[0].Base && last != nil {
		c.File, c.Bytes, c.Rows, c.Snapshot, c.FilesAfter = old[0].Path, old[0].Size, old[0].Rows, last.ID, len(last.Files)
		return c, nil // it is already consolidated
	}
	added, err := s.mergedFile(ctx, t, all, cut)
	if err != nil {
		return c, err
	}
	for _, f := range added {
		c.File, c.Bytes, c.Rows = f.Path, f.Size, f.Rows
	}
	s.reached("merged")
	err = s.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		snapshot, err := s.swap(ctx, tx, t, swap{all: all, cut: cut, added: added, old: old, last: last})
		c.Snapshot, c.FilesAfter = snapshot.ID, len(added)
		return err
	})
	if err != nil {
		return c, err
	}
	s.reached("swapped")
	gone := make([]string, len(old))
	for i, f := range old {
		gone[i] = s.path(f.Path)
	}
	s.readers.retire(gone...)
	return c, nil
}

// replaceable returns the files that a merge replaces.
func (s *Tables) replaceable(ctx context.Context, t *table, all bool, cut int64) (old []catalog.File, err error) {
	files, err := s.o.Catalog.FilesIn(ctx, nil, t.name)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.LastVersion <= cut && (all || !f.Base) {
			old = append(old, f)
		}
	}
	return old, nil
}

// mergedFile writes the file of a merge, or no file if there are no rows. A row
// that replaces an earlier one stays a U, since the base can have the key too.
func (s *Tables) mergedFile(ctx context.Context, t *table, all bool, cut int64) ([]catalog.File, error) {
	upTo := " WHERE _tea_seq <= " + strconv.FormatInt(cut, 10)
	query := "SELECT _tea_seq, CASE WHEN _tea_op = 'I' AND count(*) OVER of_key > 1 THEN 'U' ELSE _tea_op END AS _tea_op, _tea_key, " + t.userColumns() + " FROM " + t.delta() + upTo +
		" WINDOW of_key AS (PARTITION BY _tea_key) QUALIFY row_number() OVER (PARTITION BY _tea_key ORDER BY _tea_seq DESC) = 1 ORDER BY _tea_seq"
	if all {
		query = "SELECT _tea_seq, 'I' AS _tea_op, _tea_key, " + t.userColumns() + " FROM " + t.live() + upTo + " ORDER BY _tea_seq"
	}
	var n int64
	f, err := s.writeFile(ctx, t, query, func(statement string) (err error) {
		n, err = store.Int(s.o.Engine.Query(ctx, statement))
		return err
	})
	if err != nil {
		return nil, err
	}
	if n == 0 {
		s.readers.retire(s.path(f.Path))
		return nil, nil
	}
	f.Base, f.Rows, f.FirstVersion, f.LastVersion = all, n, 1, cut
	return []catalog.File{f}, nil
}

// swap is the database change of a merge.
type swap struct {
	all        bool
	cut        int64
	added, old []catalog.File
	last       *catalog.Snapshot
}

func (s *Tables) swap(ctx context.Context, tx store.Tx, t *table, w swap) (snapshot catalog.Snapshot, err error) {
	removed, err := tx.Exec(ctx, "DELETE FROM "+t.log()+" WHERE _tea_seq <= ?", w.cut)
	if err != nil {
		return snapshot, err
	}
	if err := s.o.Catalog.SwapIn(ctx, tx, w.added, w.old); err != nil {
		return snapshot, err
	}
	if err := s.refresh(ctx, tx, t); err != nil {
		return snapshot, err
	}
	if w.all {
		entry := t.entry
		entry.Version = w.cut
		if snapshot, err = s.o.Catalog.SnapshotIn(ctx, tx, entry, w.added, w.last); err != nil {
			return snapshot, err
		}
	}
	tx.AfterCommit(func() {
		t.commit(w.cut, func(l *load) {
			l.rows -= removed
			for _, f := range w.old {
				if f.Base {
					l.baseRows = 0
					continue
				}
				l.files--
				l.fileRows -= f.Rows
			}
			for _, f := range w.added {
				l.add(f)
			}
		})
	})
	s.reached("swapping")
	return snapshot, nil
}

// consolidateIfLarge consolidates a table whose delta has become large. Errors are only logged, since the preceding
// write has succeeded.
func (s *Tables) consolidateIfLarge(ctx context.Context, t *table) {
	if !t.merging.TryLock() {
		return
	}
	defer t.merging.Unlock()
	t.mu.Lock()
	l := t.load
	t.mu.Unlock()
	// Writing the base costs time proportional to its size, so a large base is written less often.
	many := max(int64(s.o.MaxRows), l.baseRows/4)
	var err error
	switch {
	case s.dialect() == store.SQLite:
		if l.rows > many {
			_, err = s.prune(ctx, t)
		}
	case l.rows+l.fileRows > many:
		_, err = s.merge(ctx, t, true)
	case l.files >= s.o.MaxFiles:
		_, err = s.merge(ctx, t, false)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		s.o.Logger.Warn("consolidate a table", "table", t.entry.Name, "error", err)
	}
}
