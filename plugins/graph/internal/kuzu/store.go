//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"

	"github.com/the-edge-agent/tea/plugins/graph/internal/exact"
	"github.com/the-edge-agent/tea/plugins/graph/internal/seal"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

const (
	databaseFile = "graph.kuzu"
	walSuffix    = ".wal"
	// readers is the number of reading connections.
	readers = 4
	// defaultMemory is the minimum size of the engine's buffers, and buffersPerByte the
	// minimum per byte of the database. A checkpoint rewrites the relations of 131,072
	// entities together. If it runs out of buffers, it may leave keys of the log in the
	// database, and the log can no longer be applied.
	defaultMemory  int64 = 64 << 20
	buffersPerByte       = 3
	defaultThreads       = 2
	// checkpointSize is the minimum size of the write-ahead log at which it is applied, and
	// checkpointShare the minimum share of the database, as a divisor. A checkpoint
	// rewrites most of the database, so with a fixed size the cost of many writes would
	// grow quadratically.
	checkpointSize  int64 = 16 << 20
	checkpointShare       = 4
	// changedShare is the share of changed buffers, as a divisor, at which the log is
	// applied: the buffers keep each version of an updated row.
	changedShare = 4
)

// DB is an open database. It implements [store.Store] and [store.Querier].
type DB struct {
	path    string
	open    func(memory int64) (*engine, error)
	memory  int64 // size of the engine's buffers
	vectors exact.Vectors[exact.Name, exact.Type]

	// mu is held for reading by every call, and for writing by checkpoints, which
	// fail while a transaction is open, and by Close.
	mu     sync.RWMutex
	closed bool
	// engine is nil after a failed write, until the next call reopens it: its memory may
	// differ from the disk.
	engine *engine
	// readers are the idle connections.
	readers chan *connection
	// writer is used by one Apply at a time.
	writing sync.Mutex
	writer  *connection
	// sealed reports whether the database is unchanged since it was closed. Only the
	// writer uses it.
	sealed bool
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
		return nil, store.Unusable(tea.InternalError, "restore a backup, or remove "+o.Dir+" to start with an empty graph", "the database %s of the graph is missing", path)
	}
	library, err := load(os.Getenv(LibraryVariable))
	if err != nil {
		return nil, err
	}
	if isNew {
		// The log of a removed database would be applied to this one.
		for _, suffix := range []string{walSuffix, walSuffix + ".new", ".shadow", ".tmp", seal.Suffix} {
			if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, tea.Errorf(tea.InternalError, "create the graph: %w", err)
			}
		}
	}
	sealed, err := seal.Check(ctx, path, path+walSuffix)
	if err != nil {
		return nil, err
	}
	memory, threads := cmp.Or(o.MemoryBytes, defaultMemory), cmp.Or(o.Threads, defaultThreads)
	db := &DB{path: path, memory: memory, sealed: sealed, readers: make(chan *connection, readers)}
	db.open = func(memory int64) (*engine, error) { return openEngine(library, path, memory, threads) }
	if err := db.start(ctx, o.Create); err != nil {
		return nil, err
	}
	return db, nil
}

// start opens the engine. The caller holds mu, or has the only reference.
func (db *DB) start(ctx context.Context, create bool) (err error) {
	db.memory = max(db.memory, db.needed())
	if db.engine, err = db.open(db.memory); err != nil {
		db.engine = nil
		return opening(db.path, err)
	}
	if err := db.prepare(ctx, create); err != nil {
		return errors.Join(opening(db.path, err), db.stop())
	}
	if db.writer.memory() >= db.memory/changedShare {
		// The changes of a log may fill the buffers and prevent writes.
		if err := db.writer.execute("CHECKPOINT"); err != nil {
			return errors.Join(opening(db.path, err), db.stop())
		}
	}
	return nil
}

// needed returns the least size of the buffers for the next checkpoint.
func (db *DB) needed() int64 {
	size := func(path string) int64 {
		info, err := os.Stat(path)
		if err != nil {
			return 0
		}
		return info.Size()
	}
	database := size(db.path)
	return buffersPerByte * (database + max(size(db.path+walSuffix), database/checkpointShare))
}

// growBuffers reopens the engine with larger buffers if the database has grown. The caller
// holds mu, and there is no log to apply.
func (db *DB) growBuffers() error {
	needed := db.needed()
	if needed <= db.memory {
		return nil
	}
	if err := db.stop(); err != nil {
		return err
	}
	db.memory = 2 * needed
	return db.start(context.Background(), false)
}

// stop closes the engine. The caller holds mu, or has the only reference.
func (db *DB) stop() error {
	for range len(db.readers) {
		(<-db.readers).close()
	}
	if db.writer != nil {
		db.writer.close()
	}
	closing := db.engine
	db.writer, db.engine = nil, nil
	return closing.close()
}

// abandon closes the engine after a disk error, because its state may differ from the
// disk.
func (db *DB) abandon(err error) error {
	if kind := tea.AsError(err).Type; kind != tea.ResourceExhausted && kind != tea.InternalError {
		return err
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.engine != nil {
		_ = db.stop() // the first error says more
	}
	return err
}

// opening adds the path and a remedy to an error of the engine.
func opening(path string, err error) error {
	var log damaged
	if errors.As(err, &log) {
		return store.Unusable(tea.InternalError, "restore a backup with graph.restore, or remove the log to lose the changes in it", "the log %s%s of the graph is damaged: %s", path, walSuffix, log)
	}
	var typed *tea.Error
	if errors.As(err, &typed) && typed.Type != tea.ResourceExhausted {
		return store.Unusable(tea.InternalError, "if it is damaged, restore a backup", "open the database %s of the graph: %s", path, typed.Message)
	}
	return err
}

// magic begins a database file; the version of its format follows.
const (
	magic  = "KUZU"
	format = 39
)

// check reports whether the database does not exist yet. It refuses foreign files and
// other formats without opening them as a database.
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
		return false, store.Unusable(tea.ValidationError, "restore a backup, or set another settings.graph.path", "%s is not a database of a graph, or its beginning is damaged", path)
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
		if err := db.unseal(); err != nil {
			return err
		}
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
		if err := atomicfile.SyncDir(filepath.Dir(db.path)); err != nil {
			return err
		}
	}
	r, err := db.writer.query(ctx, getDimension, nil)
	if err != nil {
		return err
	}
	dimension := 0
	if r.next() {
		dimension = int(r.integer())
	}
	db.vectors.Reset(dimension, maxIndexed)
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

// transaction runs f in a transaction of the connection.
func (c *connection) transaction(f func() error) error {
	if err := c.execute("BEGIN TRANSACTION"); err != nil {
		return err
	}
	if err := f(); err != nil {
		// After some errors the engine has already ended the transaction.
		_ = c.execute("ROLLBACK")
		return err
	}
	return c.execute("COMMIT")
}

// use registers a call until done is called. It reopens the engine after a failed
// write, and fails after Close.
func (db *DB) use(ctx context.Context) (done func(), err error) {
	for {
		db.mu.RLock()
		if db.closed {
			db.mu.RUnlock()
			return nil, tea.Errorf(tea.InternalError, "the graph is closed")
		}
		if db.engine != nil {
			return db.mu.RUnlock, nil
		}
		db.mu.RUnlock()
		db.mu.Lock()
		if !db.closed && db.engine == nil {
			err = db.start(ctx, false)
		}
		db.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

// read calls f with an idle connection.
func (db *DB) read(ctx context.Context, f func(*connection) error) error {
	done, err := db.use(ctx)
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
		// An interrupt may be pending in it.
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

// grown reports whether a checkpoint is due. The caller has called use, or has the
// only reference.
func (db *DB) grown() bool {
	if db.writer.memory() >= db.memory/changedShare {
		return true
	}
	log, missing := os.Stat(db.path + walSuffix)
	database, err := os.Stat(db.path)
	return missing == nil && err == nil && due(log.Size(), database.Size())
}

// due reports whether a log of a size is applied to a database of a size.
func due(log, database int64) bool { return log >= max(checkpointSize, database/checkpointShare) }

// checkpoint applies the write-ahead log to the database. A sealed database has no log.
func (db *DB) checkpoint() error {
	db.mu.Lock()
	if db.closed || db.engine == nil || db.sealed {
		db.mu.Unlock()
		return nil
	}
	err := db.writer.execute("CHECKPOINT")
	if err == nil {
		err = db.growBuffers()
	}
	db.mu.Unlock()
	if err == nil {
		return nil
	}
	// The engine may report a consequence of a failed write instead of its error.
	var disk syscall.Statfs_t
	if log, failed := os.Stat(db.path + walSuffix); failed == nil && syscall.Statfs(db.path, &disk) == nil && int64(disk.Bavail)*disk.Bsize < 2*log.Size() {
		err = tea.Errorf(tea.ResourceExhausted, "the disk of the graph is full: %w", err)
	}
	return db.abandon(err)
}

// Close implements [store.Store].
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil
	}
	db.closed = true
	if db.engine == nil {
		return nil
	}
	if db.sealed {
		return db.stop()
	}
	// On a full disk the log remains; the next Open applies it.
	failed := db.writer.execute("CHECKPOINT")
	err := db.stop()
	if failed == nil && err == nil {
		_ = seal.Write(db.path, db.path+walSuffix) // without a seal the database still opens
	}
	return err
}

// Backup implements [store.Store]. Only checkpoints change the file of the database, so
// its copy is consistent while calls write the log.
func (db *DB) Backup(ctx context.Context, dir string) error {
	if err := db.checkpoint(); err != nil {
		return err
	}
	done, err := db.use(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := copyDatabase(ctx, filepath.Join(dir, databaseFile), db.path); err != nil {
		return tea.Errorf(tea.InternalError, "back up the graph: %w", err)
	}
	return nil
}

// copyDatabase copies a database and seals the copy.
func copyDatabase(ctx context.Context, to, from string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	sum := seal.NewSum()
	for err == nil {
		if err = ctx.Err(); err == nil {
			_, err = io.CopyN(io.MultiWriter(target, sum), source, 1<<20)
		}
	}
	if errors.Is(err, io.EOF) {
		err = target.Sync()
	}
	if err = errors.Join(err, target.Close()); err != nil {
		return err
	}
	return sum.Store(to)
}
