//go:build cozo && cgo

package cozo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/exact"
	"github.com/the-edge-agent/tea/plugins/graph/internal/seal"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

const (
	databaseFile = "graph.cozo"
	logSuffix    = "-wal"
	// queryMemory is the default memory limit of a query.
	queryMemory = 256 << 20
)

// DB is an open database. It implements [store.Store] and [store.Querier].
type DB struct {
	path    string
	memory  int64
	engine  *engine
	vectors exact.Vectors[exact.Name, exact.Type]

	// mu is held for reading by every call, and for writing by Close.
	mu     sync.RWMutex
	closed bool
	// sealed reports whether the database is unchanged since it was closed. Only the
	// writer uses it.
	sealed bool
	// namespaces are the stored namespaces. Only Apply uses it.
	namespaces map[string]bool
}

var (
	_ store.Store   = (*DB)(nil)
	_ store.Querier = (*DB)(nil)
)

// Missing returns nil: this build can open a database.
func Missing() error { return nil }

// Open opens the database of a folder, or creates it.
func Open(ctx context.Context, o store.Options) (store.Store, error) {
	db := &DB{path: filepath.Join(o.Dir, databaseFile), memory: queryMemory, namespaces: map[string]bool{}}
	if o.MemoryBytes > 0 {
		db.memory = o.MemoryBytes
	}
	switch info, err := os.Stat(db.path); {
	case errors.Is(err, fs.ErrNotExist) && !o.Create:
		return nil, store.Unusable(tea.InternalError, "restore a backup, or remove "+o.Dir+" to start with an empty graph", "the database %s of the graph is missing", db.path)
	case errors.Is(err, fs.ErrNotExist):
		file, err := os.OpenFile(db.path, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, tea.Errorf(tea.PermissionDenied, "create the graph: %w; set a settings.graph.path that can be written", err)
		}
		if err := file.Close(); err != nil {
			return nil, tea.Errorf(tea.InternalError, "create the graph: %w", err)
		}
		if err := seal.Remove(db.path); err != nil { // left over from a removed database
			return nil, err
		}
	case err != nil:
		return nil, tea.Errorf(tea.PermissionDenied, "open the graph: %w", err)
	case !info.Mode().IsRegular():
		return nil, tea.Errorf(tea.ValidationError, "%s is not a file", db.path)
	}
	var damage, err error
	db.sealed, damage = seal.Check(ctx, db.path, db.path+logSuffix)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	db.engine, err = openEngine(db.path)
	switch {
	case err != nil && (damage == nil || isForeign(err)):
		return nil, opening(db.path, err)
	case damage != nil:
		return nil, errors.Join(damage, db.engine.close())
	}
	if o.Create {
		err = db.unseal()
	}
	if err == nil {
		err = db.prepare(o.Create)
	}
	if err == nil {
		err = db.load()
	}
	if err != nil {
		return nil, errors.Join(opening(db.path, err), db.engine.close())
	}
	return db, nil
}

// load reads the data that is kept in memory.
func (db *DB) load() error {
	err := db.engine.run("?[namespace] := *namespace{namespace}", &writer{}, func(r *reader) error {
		for range r.open().rows {
			db.namespaces[r.string()] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	dimension := 0
	err = db.engine.run("?[value] := *meta{name: 'dimension', value}", &writer{}, func(r *reader) error {
		for range r.open().rows {
			dimension = int(r.integer())
		}
		return nil
	})
	db.vectors.Reset(dimension, maxIndexed)
	return err
}

// use registers a call until done is called. It fails after Close.
func (db *DB) use(ctx context.Context) (done func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	db.mu.RLock()
	if db.closed {
		db.mu.RUnlock()
		return nil, tea.Errorf(tea.InternalError, "the graph is closed")
	}
	return db.mu.RUnlock, nil
}

// Close implements [store.Store].
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil
	}
	db.closed = true
	if err := db.engine.close(); err != nil {
		return fault(err)
	}
	if !db.sealed {
		_ = seal.Write(db.path, db.path+logSuffix) // without a seal the database still opens
	}
	return nil
}

// unseal removes the seal before a change. The caller must hold the only writer.
func (db *DB) unseal() error {
	if !db.sealed {
		return nil
	}
	err := seal.Remove(db.path)
	db.sealed = err != nil
	return err
}

// Backup implements [store.Store].
func (db *DB) Backup(ctx context.Context, dir string) error {
	done, err := db.use(ctx)
	if err != nil {
		return err
	}
	defer done()
	path := filepath.Join(dir, databaseFile)
	if err := db.engine.backup(path); err != nil {
		return fault(err)
	}
	// The first open changes the journal mode of the copy, so it comes before the
	// checksum.
	copied, err := openEngine(path)
	if err = errors.Join(err, copied.close()); err != nil {
		return fault(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return tea.Errorf(tea.InternalError, "write the backup: %w", err)
	}
	if err := errors.Join(file.Chmod(0o600), file.Sync(), file.Close()); err != nil {
		return err
	}
	return seal.Write(path, path+logSuffix)
}
