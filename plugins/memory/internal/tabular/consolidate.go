package tabular

import (
	"context"
	"errors"
	"strconv"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// Consolidated says what a consolidation did.
type Consolidated struct {
	FilesBefore int
	RowsBefore  int64 // changes in files and in the database
	Rows        int64 // rows of the table
	File        string
	Bytes       int64
	Snapshot    catalog.Snapshot
}

// Consolidate puts all files and rows of a table together into one file with
// each key once, and makes a snapshot of that. Readers and writers go on
// meanwhile; what they write stays beside the new file.
func (s *Tables) Consolidate(ctx context.Context, name string) (Consolidated, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return Consolidated{}, err
	}
	t.merging.Lock()
	defer t.merging.Unlock()
	if s.dialect() == store.DuckDB {
		return s.merge(ctx, t, true)
	}
	return s.prune(ctx, t)
}

// prune is the consolidation of SQLite: what is not the last change of a key
// goes.
func (s *Tables) prune(ctx context.Context, t *table) (c Consolidated, err error) {
	last, err := s.o.Catalog.LastSnapshot(ctx, t.name)
	if err != nil {
		return c, err
	}
	err = s.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		if c.RowsBefore, err = count(ctx, tx, "SELECT count(*) FROM "+t.log()); err != nil {
			return err
		}
		if err := execAll(ctx, tx, []string{
			"DELETE FROM " + t.log() + " AS r WHERE EXISTS (SELECT 1 FROM " + t.log() + " AS n WHERE n._tea_op <> 'I' AND n._tea_key = r._tea_key AND n._tea_seq > r._tea_seq)",
			"DELETE FROM " + t.log() + " WHERE _tea_op = 'D'",
			"UPDATE " + t.log() + " SET _tea_op = 'I' WHERE _tea_op <> 'I'",
		}); err != nil {
			return err
		}
		if c.Rows, err = count(ctx, tx, "SELECT count(*) FROM "+t.log()); err != nil {
			return err
		}
		entry := t.entry
		entry.Version = t.take(0)
		if c.Snapshot, err = s.o.Catalog.SnapshotIn(ctx, tx, entry, nil, last); err != nil {
			return err
		}
		rows := c.Rows
		tx.AfterCommit(func() { t.commit(entry.Version, func(l *load) { *l = load{baseRows: rows} }) })
		return nil
	})
	return c, err
}

// merge is the consolidation of DuckDB. With all it puts base and delta
// together; without, the delta alone, keeping what hides rows of the base.
//
// It puts together what was committed up to a number, the cut: files are on
// one side of it as a whole. What comes later stays where it is.
func (s *Tables) merge(ctx context.Context, t *table, all bool) (c Consolidated, err error) {
	defer s.readers.begin()()
	t.mu.Lock()
	cut := t.done
	t.mu.Unlock()
	old, err := s.replaceable(ctx, t, all, cut)
	if err != nil {
		return c, err
	}
	rows, err := count(ctx, s.o.Engine, "SELECT count(*) FROM "+t.log()+" WHERE _tea_seq <= ?", cut)
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
		c.File, c.Bytes, c.Rows, c.Snapshot = old[0].Path, old[0].Size, old[0].Rows, *last
		return c, nil // it is put together already
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
		c.Snapshot, err = s.swap(ctx, tx, t, swap{all: all, cut: cut, added: added, old: old, last: last})
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

// replaceable are the files that a merge puts together.
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

// mergedFile writes the file of a merge; without rows there is none. A row
// that takes the place of an earlier one stays a U without it: the base may
// have a third.
func (s *Tables) mergedFile(ctx context.Context, t *table, all bool, cut int64) ([]catalog.File, error) {
	upTo := " WHERE _tea_seq <= " + strconv.FormatInt(cut, 10)
	query := "SELECT _tea_seq, CASE WHEN _tea_op = 'I' AND count(*) OVER of_key > 1 THEN 'U' ELSE _tea_op END AS _tea_op, _tea_key, " + t.userColumns() + " FROM " + t.delta() + upTo +
		" WINDOW of_key AS (PARTITION BY _tea_key) QUALIFY row_number() OVER (PARTITION BY _tea_key ORDER BY _tea_seq DESC) = 1 ORDER BY _tea_seq"
	if all {
		query = "SELECT _tea_seq, 'I' AS _tea_op, _tea_key, " + t.userColumns() + " FROM " + t.live() + upTo + " ORDER BY _tea_seq"
	}
	var n int64
	f, err := s.writeFile(ctx, t, query, func(statement string) (err error) {
		n, err = count(ctx, s.o.Engine, statement)
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

// swap is what a merge writes into the database.
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

// relieve puts a table's parts together where they have become many. The
// write that led there has happened, whatever comes of this.
func (s *Tables) relieve(ctx context.Context, t *table) {
	if !t.merging.TryLock() {
		return
	}
	defer t.merging.Unlock()
	t.mu.Lock()
	l := t.load
	t.mu.Unlock()
	// To write the base anew costs its size, so it waits for its share.
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
		s.o.Logger.Warn("a table was not consolidated", "table", t.entry.Name, "error", err)
	}
}

// queryer is an engine or a transaction.
type queryer interface {
	Query(ctx context.Context, query string, args ...any) (store.Rows, error)
}

// count runs a statement whose answer is one number.
func count(ctx context.Context, on queryer, query string, args ...any) (n int64, err error) {
	rows, err := on.Query(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(&n); err != nil {
			return 0, err
		}
	}
	return n, rows.Err()
}
