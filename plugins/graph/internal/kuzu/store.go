//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

const (
	databaseFile = "graph.kuzu"
	walSuffix    = ".wal"
	// readers is the number of connections that read.
	readers = 4
	// defaultMemory is the size of the engine's buffers.
	defaultMemory  = 64 << 20
	defaultThreads = 2
	// checkpointSize is the size of the write-ahead log from which it is applied.
	checkpointSize = 16 << 20
)

// DB is an open database. It implements [store.Store] and [store.Querier].
type DB struct {
	path    string
	engine  *engine
	vectors vectors

	// mu is held for reading by every call, and for writing by checkpoints, which
	// fail while a transaction is open, and by Close.
	mu     sync.RWMutex
	closed bool
	// readers are the idle connections.
	readers chan *connection
	// writer is used by one Apply at a time.
	writing sync.Mutex
	writer  *connection
}

var (
	_ store.Store   = (*DB)(nil)
	_ store.Querier = (*DB)(nil)
)

// Open opens the database of a folder, or creates it.
func Open(ctx context.Context, o store.Options) (store.Store, error) {
	path := filepath.Join(o.Dir, databaseFile)
	isNew, err := check(path)
	switch {
	case err != nil:
		return nil, err
	case isNew && !o.Create:
		return nil, tea.Errorf(tea.InternalError, "the database %s of the graph is missing; restore a backup, or remove %s to start with an empty graph", path, o.Dir)
	}
	library, err := load(o.Library)
	if err != nil {
		return nil, err
	}
	if isNew {
		// The log of a database that was removed would be applied to this one.
		for _, suffix := range []string{walSuffix, ".shadow", ".tmp"} {
			if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, tea.Errorf(tea.InternalError, "create the graph: %w", err)
			}
		}
	}
	db := &DB{path: path, readers: make(chan *connection, readers)}
	memory, threads := o.MemoryBytes, o.Threads
	if memory == 0 {
		memory = defaultMemory
	}
	if threads == 0 {
		threads = defaultThreads
	}
	if db.engine, err = openEngine(library, path, memory, threads); err != nil {
		return nil, opening(path, err)
	}
	if err := db.prepare(ctx, o.Create); err != nil {
		return nil, errors.Join(opening(path, err), db.Close())
	}
	return db, nil
}

// opening adds the path and a remedy to an error of the engine.
func opening(path string, err error) error {
	var typed *tea.Error
	if errors.As(err, &typed) && typed.Type != tea.ResourceExhausted {
		return tea.Errorf(tea.InternalError, "open the database %s of the graph: %s; if it is damaged, restore a backup", path, typed.Message)
	}
	return err
}

// magic is how a database begins; the version of its format follows.
const (
	magic  = "KUZU"
	format = 39
)

// check reports whether the database does not exist yet. It refuses files of
// others and other formats without opening them as a database.
func check(path string) (isNew bool, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, tea.Errorf(tea.PermissionDenied, "open the graph: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false, tea.Errorf(tea.InternalError, "open the graph: %w", err)
	}
	if !info.Mode().IsRegular() {
		return false, tea.Errorf(tea.ValidationError, "%s is not a file", path)
	}
	var header [12]byte
	n, err := io.ReadFull(file, header[:])
	switch {
	case n == 0 && errors.Is(err, io.EOF):
		return true, nil // the engine creates the file before it writes the first page
	case !bytes.HasPrefix(header[:n], []byte(magic)) && bytes.Count(header[:n], []byte{0}) != n:
		return false, tea.Errorf(tea.ValidationError, "%s is not a database of a graph, or its beginning is damaged; restore a backup, or set another settings.graph.path", path)
	case n == len(header) && header[len(magic)] > format:
		return false, tea.Errorf(tea.ValidationError, "%s has Kuzu's storage format %d, which is newer than the format %d of this version; update the graph plugin", path, header[len(magic)], format)
	}
	return false, nil
}

// prepare opens the connections, and creates the tables of a new database.
func (db *DB) prepare(ctx context.Context, create bool) (err error) {
	if db.writer, err = db.engine.connect(); err != nil {
		return err
	}
	for range readers {
		c, err := db.engine.connect()
		if err != nil {
			return err
		}
		db.readers <- c
	}
	if create {
		if err := db.writer.transaction(func() error {
			for _, statement := range schema {
				if err := db.writer.execute(statement); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if err := db.writer.execute("CHECKPOINT"); err != nil {
			return err
		}
		if err := syncFolder(filepath.Dir(db.path)); err != nil {
			return err
		}
	}
	r, err := db.writer.query(ctx, getDimension, nil)
	if err == nil && r.next() {
		db.vectors.dimension = int(r.integer())
	}
	return err
}

func syncFolder(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// transaction runs f in a transaction of the connection.
func (c *connection) transaction(f func() error) error {
	if err := c.execute("BEGIN TRANSACTION"); err != nil {
		return err
	}
	if err := f(); err != nil {
		// After some errors the engine has ended the transaction already.
		_ = c.execute("ROLLBACK")
		return err
	}
	return c.execute("COMMIT")
}

// use registers a call until done is called. It fails after Close.
func (db *DB) use() (done func(), err error) {
	db.mu.RLock()
	if db.closed {
		db.mu.RUnlock()
		return nil, tea.Errorf(tea.InternalError, "the graph is closed")
	}
	return db.mu.RUnlock, nil
}

// read calls f with an idle connection.
func (db *DB) read(ctx context.Context, f func(*connection) error) error {
	done, err := db.use()
	if err != nil {
		return err
	}
	defer done()
	var c *connection
	select {
	case c = <-db.readers:
	case <-ctx.Done():
		return ctx.Err()
	}
	err = f(c)
	if ctx.Err() != nil {
		// An interruption can be left in it.
		if fresh, failed := db.engine.connect(); failed == nil {
			c.close()
			c = fresh
		}
	}
	db.readers <- c
	return err
}

// snapshot calls f with an idle connection that reads one state of the database.
func (db *DB) snapshot(ctx context.Context, f func(*connection) error) error {
	return db.read(ctx, func(c *connection) error {
		if err := c.execute("BEGIN TRANSACTION READ ONLY"); err != nil {
			return err
		}
		err := f(c)
		return errors.Join(err, c.execute("COMMIT"))
	})
}

// checkpoint applies the write-ahead log when it is long.
func (db *DB) checkpoint() error {
	info, err := os.Stat(db.path + walSuffix)
	if err != nil || info.Size() < checkpointSize {
		return nil //nolint:nilerr // there is no log
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil
	}
	return db.writer.execute("CHECKPOINT")
}

// Close is [store.Store.Close].
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil
	}
	db.closed = true
	for range len(db.readers) {
		(<-db.readers).close()
	}
	if db.writer != nil {
		db.writer.close()
	}
	return db.engine.close()
}

// Backup is [store.Store.Backup]. The file of the database changes in
// checkpoints only, so its copy is consistent while calls write the log.
func (db *DB) Backup(ctx context.Context, dir string) error {
	db.mu.Lock()
	err := error(nil)
	if !db.closed {
		err = db.writer.execute("CHECKPOINT")
	}
	db.mu.Unlock()
	if err != nil {
		return err
	}
	done, err := db.use()
	if err != nil {
		return err
	}
	defer done()
	if err := copyFile(ctx, filepath.Join(dir, databaseFile), db.path); err != nil {
		return tea.Errorf(tea.InternalError, "back up the graph: %w", err)
	}
	return nil
}

func copyFile(ctx context.Context, to, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for err == nil {
		if err = ctx.Err(); err == nil {
			_, err = io.CopyN(target, source, 1<<20)
		}
	}
	if errors.Is(err, io.EOF) {
		err = target.Sync()
	}
	return errors.Join(err, target.Close())
}
