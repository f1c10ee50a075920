package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // the driver

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/exact"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

const (
	databaseFile = "graph.sqlite"
	// readers is the number of reading connections.
	readers = 4
	// defaultMemory is the size of all page caches. Half of it is the writer's.
	defaultMemory = 10 << 20
)

// DB is an open database. It implements [store.Store].
type DB struct {
	path    string
	write   *sql.DB
	read    *reader
	names   names
	vectors exact.Vectors[int64, tag]

	// mu is held for reading by every call, and for writing by Close.
	mu     sync.RWMutex
	closed bool
	// nextNode is the key of the next node, and kept are prepared statements from earlier
	// transactions, by text. Only Apply uses them.
	nextNode int64
	kept     map[string]*sql.Stmt
}

var (
	_ store.Store    = (*DB)(nil)
	_ store.Verifier = (*DB)(nil)
)

// Open opens the database of a folder, or creates it.
func Open(ctx context.Context, o store.Options) (store.Store, error) {
	db := &DB{path: filepath.Join(o.Dir, databaseFile), kept: map[string]*sql.Stmt{}}
	isNew, err := check(db.path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(db.path); errors.Is(err, fs.ErrNotExist) && !o.Create {
		return nil, db.missing()
	}
	memory := o.MemoryBytes
	if memory == 0 {
		memory = defaultMemory
	}
	common := []string{"busy_timeout(10000)", "trusted_schema(0)"}
	cache := func(bytes int64) string { return fmt.Sprintf("cache_size(-%d)", bytes>>10) }
	if db.write, err = connect(db.path, 1, append(common, cache(memory/2), "journal_mode(wal)", "synchronous(full)"), "immediate"); err != nil {
		return nil, fault(err)
	}
	if err = db.prepare(ctx, isNew, o.Create); err == nil {
		db.read = &reader{}
		db.read.DB, err = connect(db.path, readers, append(common, cache(memory/2/readers), "query_only(1)"), "deferred")
	}
	if err == nil {
		err = db.load(ctx)
	}
	if err == nil && o.Verify {
		err = db.Verify(ctx)
	}
	if err != nil {
		return nil, errors.Join(fault(err), db.Close())
	}
	return db, nil
}

// check reports whether the database does not exist yet. It refuses foreign files and
// newer formats without opening them as a database.
func check(path string) (isNew bool, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fault(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false, fault(err)
	}
	if !info.Mode().IsRegular() {
		return false, tea.Errorf(tea.ValidationError, "%s is not a file", path)
	}
	if info.Size() == 0 {
		return true, nil // SQLite creates the file before it writes the first page
	}
	header := make([]byte, 100)
	if _, err := io.ReadFull(file, header); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, fault(err)
	}
	const magic = "SQLite format 3\x00"
	application, version := binary.BigEndian.Uint32(header[68:]), binary.BigEndian.Uint32(header[60:])
	switch {
	case string(header[:len(magic)]) != magic:
		return false, store.Unusable(tea.ValidationError, "restore a backup, or set another settings.graph.path", "%s is not a database of a graph, or its beginning is damaged", path)
	case application == 0 && version == 0:
		return true, nil // prepare checks whether it has contents
	case application != applicationID:
		return false, tea.Errorf(tea.ValidationError, "%s is a database of another program; set another settings.graph.path", path)
	case version > format:
		return false, tea.Errorf(tea.ValidationError, "%s has format %d, which is newer than the format %d of this version; update the graph plugin", path, version, format)
	}
	return false, nil
}

func connect(path string, connections int, pragmas []string, lock string) (*sql.DB, error) {
	how := url.Values{"_pragma": pragmas, "_txlock": {lock}}
	dsn := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(path), RawQuery: how.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

func (db *DB) missing() error {
	return store.Unusable(tea.InternalError, "restore a backup, or remove "+filepath.Dir(db.path)+" to start with an empty graph", "the database %s of the graph is missing or empty", db.path)
}

// prepare creates the tables of a new database in one transaction.
func (db *DB) prepare(ctx context.Context, isNew, create bool) error {
	if !isNew {
		return db.write.PingContext(ctx)
	}
	// The missing data may be in the log that a crash left.
	var tables, application, version int64
	err := db.write.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM sqlite_schema), (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version)").Scan(&tables, &application, &version)
	switch {
	case err != nil:
		return err
	case tables > 0 && application == applicationID && version <= format:
		return nil
	case tables > 0:
		return tea.Errorf(tea.ValidationError, "%s is a database of another program; set another settings.graph.path", db.path)
	case !create:
		return db.missing()
	}
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf("%s; PRAGMA application_id = %d; PRAGMA user_version = %d", schema, applicationID, format))
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// load reads the data that is kept in memory.
func (db *DB) load(ctx context.Context) error {
	if err := db.names.load(ctx, db.read); err != nil {
		return err
	}
	var dimension sql.NullInt64
	err := db.read.QueryRowContext(ctx, "SELECT (SELECT coalesce(max(pk), 0) FROM node), (SELECT value FROM meta WHERE name = 'dimension')").Scan(&db.nextNode, &dimension)
	db.nextNode++
	db.vectors.Reset(int(dimension.Int64), maxIndexed)
	return err
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

// Close implements [store.Store].
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil
	}
	db.closed = true
	var err error
	if db.read != nil && db.read.DB != nil {
		err = db.read.Close()
	}
	return fault(errors.Join(err, db.write.Close()))
}

// Backup implements [store.Store].
func (db *DB) Backup(ctx context.Context, dir string) error {
	done, err := db.use()
	if err != nil {
		return err
	}
	defer done()
	if err := db.Verify(ctx); err != nil {
		return err
	}
	path := filepath.Join(dir, databaseFile)
	from, err := connect(db.path, 1, []string{"busy_timeout(10000)", "trusted_schema(0)"}, "deferred")
	if err != nil {
		return fault(err)
	}
	_, err = from.ExecContext(ctx, "VACUUM INTO ?", path)
	if err = errors.Join(err, from.Close()); err != nil {
		return fault(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fault(err)
	}
	return fault(errors.Join(file.Chmod(0o600), file.Sync(), file.Close()))
}
