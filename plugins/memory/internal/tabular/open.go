package tabular

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// Sweep removes the files that a crash has left without a row. Once it, or any
// other call, has done so there is nothing more to sweep until the next start.
func (s *Tables) Sweep(ctx context.Context) error { return s.open(ctx) }

// open reads which tables there are, once, and removes files that a crash has
// left without a row.
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
		t, err := newTable(entry)
		if err == nil {
			err = s.readTable(ctx, t, named)
		}
		if err != nil {
			return err
		}
		found[t.name] = t
	}
	if s.dialect() == store.DuckDB {
		if err := s.sweep(named); err != nil {
			return err
		}
		if err := s.renewViews(ctx, found); err != nil {
			return err
		}
	}
	if err := s.forget(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName, s.opened = found, true
	return nil
}

// readTable reads what is known of a table's rows and notes its files.
func (s *Tables) readTable(ctx context.Context, t *table, named map[string]bool) error {
	files, err := s.o.Catalog.FilesIn(ctx, nil, t.name)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := s.path(f.Path)
		named[path] = true
		t.version = max(t.version, f.LastVersion)
		t.load.add(f)
		if _, err := os.Stat(path); err != nil {
			t.broken = tea.Errorf(tea.InternalError, "table %q has lost a file: %w", t.entry.Name, err)
		}
	}
	last, err := count(ctx, s.o.Engine, "SELECT coalesce(max(_tea_seq), 0) FROM "+t.log())
	if err != nil {
		return err
	}
	t.version = max(t.version, last)
	t.done = t.version
	t.load.rows, err = count(ctx, s.o.Engine, "SELECT count(*) FROM "+t.log()+s.loading())
	return err
}

// loading is which rows of the log are a load: on SQLite the rest has no
// better place.
func (s *Tables) loading() string {
	if s.dialect() == store.SQLite {
		return " WHERE _tea_op <> 'I'"
	}
	return ""
}

func (l *load) add(f catalog.File) {
	if f.Base {
		l.baseRows = f.Rows
		return
	}
	l.files++
	l.fileRows += f.Rows
}

// renewViews makes the views anew: they name files by their full paths, and
// the folder may have been moved.
func (s *Tables) renewViews(ctx context.Context, tables map[string]*table) error {
	if len(tables) == 0 {
		return nil
	}
	return s.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		for _, t := range tables {
			if t.broken != nil {
				continue
			}
			if err := s.refresh(ctx, tx, t); err != nil {
				return fmt.Errorf("open table %s: %w", t.entry.Name, err)
			}
		}
		return nil
	})
}

// ours is how a file of this package is called. Whatever else somebody has put
// into the folder stays.
var ours = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z2-7]{26}\.parquet(\.unfinished)?$`) })

// sweep removes files that no row names.
func (s *Tables) sweep(named map[string]bool) error {
	err := filepath.WalkDir(s.o.Dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !entry.Type().IsRegular() || named[path] || !ours().MatchString(entry.Name()):
			return nil
		}
		return os.Remove(path)
	})
	if err != nil {
		return fmt.Errorf("remove files without a row: %w", err)
	}
	return nil
}

// path is where a file of the catalog lies.
func (s *Tables) path(name string) string { return filepath.Join(s.o.Dir, filepath.FromSlash(name)) }
