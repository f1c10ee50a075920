package tabular

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Sweep removes the files that a crash left without a catalog row, which the first call of any method does too. Later
// calls do nothing.
func (s *Tables) Sweep(ctx context.Context) error { return s.open(ctx) }

// open reads the list of tables once and removes files without a catalog row.
func (s *Tables) open(ctx context.Context) error {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.mu.Lock()
	opened := s.opened
	s.mu.Unlock()
	if opened {
		return nil
	}
	entries, _, err := s.o.Catalog.Tables(ctx, catalog.TableQuery{Managed: true, Page: catalog.Page{Limit: maxTables}})
	if err != nil {
		return fmt.Errorf("read the tables: %w", err)
	}
	found := map[string]*table{}
	named := map[string]bool{}
	for _, entry := range entries {
		if entry.Damaged {
			found[entry.Name] = &table{name: entry.Name, entry: entry, broken: tea.Errorf(tea.InternalError, "the catalog's row of table %q is damaged; restore a backup of the memory", entry.Name)}
			continue
		}
		t, err := newTable(entry)
		if err != nil {
			return err
		}
		err = s.readTable(ctx, t, named)
		if errors.Is(err, catalog.ErrDamaged) {
			t.broken = tea.Errorf(tea.InternalError, "table %q cannot be read: %s", entry.Name, tea.AsError(err).Message)
		} else if err != nil {
			return err
		}
		found[t.name] = t
	}
	if s.o.ReadOnly {
		err = s.checkViews(ctx, found)
	} else {
		err = s.cleanUp(ctx, found, named)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName, s.opened = found, true
	return nil
}

// cleanUp removes files and calls that are no longer needed, and replaces the
// views.
func (s *Tables) cleanUp(ctx context.Context, found map[string]*table, named map[string]bool) error {
	if s.dialect() == store.DuckDB {
		if err := s.sweep(found, named); err != nil {
			return err
		}
		if err := s.renewViews(ctx, found); err != nil {
			return err
		}
	}
	if err := s.forget(ctx); !isFull(err) {
		return err
	}
	return nil
}

// checkViews marks the tables whose views name files in another folder, because
// the memory was moved.
func (s *Tables) checkViews(ctx context.Context, found map[string]*table) error {
	for _, t := range found {
		moved, err := s.moved(ctx, t)
		if err != nil {
			return err
		}
		if moved && t.broken == nil {
			t.broken = tea.Errorf(tea.PermissionDenied, "table %q has files in the folder that the memory was moved from; open the memory once for writing", t.entry.Name)
		}
	}
	return nil
}

// moved reports whether the views of a table name files in another folder.
func (s *Tables) moved(ctx context.Context, t *table) (bool, error) {
	files, err := s.o.Catalog.FilesIn(ctx, nil, t.name)
	if err != nil {
		return false, err
	}
	for _, f := range files {
		// A view names each of its files.
		named, err := store.Int(s.o.Engine.Query(ctx, "SELECT count(*) FROM duckdb_views() WHERE contains(sql, ?)", literal(s.path(f.Path))))
		if err != nil || named == 0 {
			return true, err
		}
	}
	return false, nil
}

func isFull(err error) bool { return err != nil && tea.AsError(err).Type == tea.ResourceExhausted }

// readTable reads the versions and sizes of a table's rows, and adds its files
// to named.
func (s *Tables) readTable(ctx context.Context, t *table, named map[string]bool) error {
	files, err := s.o.Catalog.FilesIn(ctx, nil, t.name)
	if err != nil {
		return err
	}
	for _, f := range files {
		named[s.path(f.Path)] = true
		t.version = max(t.version, f.LastVersion)
		t.load.add(f)
		if err := s.checkFile(t, f); err != nil {
			t.broken = err
		}
	}
	last, err := store.Int(s.o.Engine.Query(ctx, "SELECT coalesce(max(_tea_seq), 0) FROM "+t.log()))
	if err != nil {
		return err
	}
	t.version = max(t.version, last)
	t.done = t.version
	counted := "SELECT count(*) FROM " + t.log()
	if s.dialect() == store.SQLite {
		counted += " WHERE _tea_op <> 'I'" // inserts are kept in the log
	}
	t.load.rows, err = store.Int(s.o.Engine.Query(ctx, counted))
	return err
}

// checkFile returns an error if a file of the table is missing or has the wrong
// size.
func (s *Tables) checkFile(t *table, f catalog.File) error {
	info, err := os.Stat(s.path(f.Path))
	switch {
	case err != nil:
		return tea.Errorf(tea.InternalError, "table %q has lost a file; restore a backup of the memory: %w", t.entry.Name, err)
	case !info.Mode().IsRegular() || info.Size() != f.Size:
		return tea.Errorf(tea.InternalError, "table %q has a damaged file; restore a backup of the memory: %s has %d bytes, not %d", t.entry.Name, s.path(f.Path), info.Size(), f.Size)
	}
	return nil
}

func (l *load) add(f catalog.File) {
	if f.Base {
		l.baseRows = f.Rows
		return
	}
	l.files++
	l.fileRows += f.Rows
}

// renewViews replaces the views: they name files by their full paths, and the
// folder can have been moved. On a full disk it keeps views that name the right
// files, so that the tables can be read.
func (s *Tables) renewViews(ctx context.Context, tables map[string]*table) error {
	sound := slices.DeleteFunc(slices.Collect(maps.Values(tables)), func(t *table) bool { return t.broken != nil })
	err := s.renew(ctx, sound)
	if tea.AsError(err) != nil && tea.AsError(err).Type == tea.QueryError {
		// A file is damaged. The other tables can be used.
		for _, t := range sound {
			if err := s.renew(ctx, []*table{t}); err != nil {
				// Only the text is kept: the type of the error must not be taken for an error of the query that names
				// the table.
				t.broken = tea.Errorf(tea.InternalError, "table %q has a damaged file; restore a backup of the memory: %s", t.entry.Name, tea.AsError(err).Message)
			}
		}
		return nil
	}
	if !isFull(err) {
		return err
	}
	for _, t := range tables {
		if moved, failed := s.moved(ctx, t); failed != nil || moved && t.broken == nil {
			return errors.Join(err, failed)
		}
	}
	return nil
}

// renew replaces the views of the tables in one transaction.
func (s *Tables) renew(ctx context.Context, tables []*table) error {
	if len(tables) == 0 {
		return nil
	}
	return s.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		for _, t := range tables {
			if err := s.refresh(ctx, tx, t); err != nil {
				return fmt.Errorf("open table %s: %w", t.entry.Name, err)
			}
		}
		return nil
	})
}

// ours matches the names of this package's files. Other files in the folder are
// not touched.
var ours = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z2-7]{26}\.parquet(\.unfinished)?$`) })

// sweep removes the files of tables that no catalog row names. It leaves the
// files of a table whose rows are damaged.
func (s *Tables) sweep(found map[string]*table, named map[string]bool) error {
	for _, t := range found {
		dir := s.path(t.name)
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove files without a row: %w", err)
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			if t.broken != nil || !entry.Type().IsRegular() || named[path] || !ours().MatchString(entry.Name()) {
				continue
			}
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("remove files without a row: %w", err)
			}
		}
	}
	return nil
}

// path is the full path of a file in the catalog.
func (s *Tables) path(name string) string { return filepath.Join(s.o.Dir, filepath.FromSlash(name)) }
