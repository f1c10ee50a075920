package memory

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/assemble"
	"github.com/the-edge-agent/tea/plugins/memory/internal/blob"
	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/longterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/recall"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/internal/shortterm"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
)

// folder is what all instances with one folder share: the database and what
// uses it. Each family has a field, and close closes it.
type folder struct {
	dir      string
	settings settings
	users    int // guarded by folders.mu

	readOnly  bool
	clock     *clock.Clock
	engine    *engine.Engine
	documents *documents.Documents
	blobs     *blob.Folder
	longterm  *longterm.Memory
	vectors   *vectors.Index
	files     *file.Files
	sessions  *session.Sessions
	shortterm *shortterm.Memory
	recall    *recall.Recall
	catalog   *catalog.Catalog
	tables    *tabular.Tables
	assembler *assemble.Assembler
	sweeper   *sweeper
}

func openFolder(ctx context.Context, dir string, settings settings, overrun func()) (*folder, error) {
	driver, err := settings.driver(dir)
	if err != nil {
		return nil, err
	}
	reason, err := settings.readOnly(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{dir: dir, settings: settings, readOnly: reason != "", clock: clock.New()}
	f.engine, err = engine.Open(ctx, engine.Options{
		Dir: dir, Driver: driver, Limits: settings.limits(), LockTimeout: settings.lockTimeout(), Warmup: settings.warmup(), Logger: slog.Default(), Overrun: overrun,
		ReadOnly: reason,
	})
	if err != nil {
		return nil, err
	}
	if f.blobs, err = blob.Open(filepath.Join(dir, "blobs")); err != nil {
		return nil, errors.Join(err, f.engine.Close())
	}
	f.documents = documents.New(f.engine)
	f.files = file.New(file.Options{
		Documents: f.documents, Blobs: f.blobs, Clock: f.clock, Tokens: tokens.Count,
		Hidden: func(ctx context.Context) (func(string) bool, error) { return f.sessions.Expired(ctx) },
	})
	f.sessions = session.New(session.Options{Documents: f.documents, Files: f.files, Clock: f.clock, ReadOnly: f.readOnly})
	f.longterm = longterm.New(longterm.Options{
		Engine: f.engine, Blobs: f.blobs, Clock: f.clock, IndexDir: filepath.Join(dir, "index"), Language: settings.LTM.Language, InlineBytes: settings.LTM.InlineBytes, Logger: slog.Default(),
		ReadOnly: f.readOnly,
	})
	f.vectors = vectors.New(vectors.Options{Engine: f.engine, Dir: filepath.Join(dir, "vectors"), Search: settings.Vector.options(), ReadOnly: f.readOnly, Logger: slog.Default()})
	f.recall = recall.New(recall.Options{LTM: f.longterm, Vectors: f.vectors, Files: f.files})
	f.catalog = catalog.New(f.documents, f.clock)
	f.tables = tabular.New(tabular.Options{Engine: f.engine, Documents: f.documents, Catalog: f.catalog, Dir: filepath.Join(dir, "tables"), ReadOnly: f.readOnly, Logger: slog.Default()})
	f.assembler = assemble.New(assemble.Options{
		Engine: f.engine, Files: f.files, LTM: f.longterm, Sessions: f.sessions, Vectors: f.vectors, Tables: f.tables,
		IndexDir: filepath.Join(dir, "files-index"), Language: settings.LTM.Language, ReadOnly: f.readOnly, Logger: slog.Default(),
	})
	if !f.readOnly {
		f.sweeper = f.sweeps()
	}
	return f, nil
}

// close closes the families and then the database.
func (f *folder) close() error {
	if f.sweeper != nil {
		f.sweeper.end()
	}
	return errors.Join(f.assembler.Close(), f.longterm.Close(), f.vectors.Close(), f.engine.Close(), f.blobs.Close())
}

// folders are the open folders of a process, by path.
type folders struct {
	mu        sync.Mutex
	byPath    map[string]*folder
	shortTerm map[string]*shortterm.Memory // see shortTermOf
	exported  bool                         // the next version has the short-term memory
	overrun   func()                       // see engine.Options
}

func newFolders(overrun func()) *folders {
	return &folders{overrun: overrun, byPath: map[string]*folder{}, shortTerm: map[string]*shortterm.Memory{}}
}

// take opens a folder, or returns the open one.
func (f *folders) take(ctx context.Context, settings settings) (*folder, error) {
	dir, err := settings.dir()
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.exported = false
	if open := f.byPath[dir]; open != nil {
		if open.settings != settings {
			return nil, tea.Errorf(tea.ValidationError, "%s is open with other settings of the memory; workflows that share a folder at the same time need the same ones", dir)
		}
		open.users++
		return open, nil
	}
	opened, err := openFolder(ctx, dir, settings, f.overrun)
	if err != nil {
		return nil, err
	}
	opened.users, opened.shortterm = 1, f.shortTermOf(dir)
	opened.shortterm.Bound(shortterm.Bounds{Entries: settings.ShortTerm.MaxEntries, Bytes: settings.ShortTerm.MaxBytes})
	f.byPath[dir] = opened
	return opened, nil
}

// give releases a folder. The last user closes it.
func (f *folders) give(given *folder) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if given.users--; given.users > 0 {
		return nil
	}
	delete(f.byPath, given.dir)
	return given.close()
}
