package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Driver opens SQLite databases. The zero value is ready.
type Driver struct{}

var _ engine.Driver = Driver{}

// Dialect is store.SQLite.
func (Driver) Dialect() store.Dialect { return store.SQLite }

// File is the database's name in its folder.
func (Driver) File() string { return "memory.sqlite" }

// Open opens the database with a write-ahead log: readers do not wait for
// writers, and a commit waits for the disk once.
func (Driver) Open(ctx context.Context, path string, limits engine.Limits) (engine.Handles, error) {
	// If this fails SQLite creates the file, or returns the error.
	_ = create(path)
	if err := checkPageSize(path); err != nil {
		return engine.Handles{}, err
	}
	if _, err := engine.IsClosed(path, path+"-wal"); err != nil {
		return engine.Handles{}, err
	}
	repaired, err := engine.RepairLog(path+"-wal", findDamage)
	if err != nil {
		return engine.Handles{}, err
	}
	common := pragmas(limits)
	write, err := open(ctx, path, url.Values{"_txlock": {"immediate"}}, slices.Concat(common, []string{"temp_store(0)", "journal_mode(wal)", "synchronous(full)"}))
	if err != nil {
		return engine.Handles{}, err
	}
	write.SetMaxOpenConns(1)
	// Queries sort in memory, which is watched, not on the disk.
	read, err := open(ctx, path, url.Values{}, slices.Concat(common, []string{"temp_store(2)", "query_only(1)"}))
	if err != nil {
		return engine.Handles{}, errors.Join(err, write.Close())
	}
	return engine.Handles{
		Read: read, Write: write, Repaired: repaired,
		BeforeWrite: func() { engine.ForgetClosed(path) },
		Closed:      func() error { return engine.NoteClosed(path, path+"-wal") },
	}, nil
}

// pragmas returns the pragmas of every connection. The page caches share the
// memory; SQLite interprets negative sizes as KiB.
func pragmas(limits engine.Limits) []string {
	cache := fmt.Sprintf("cache_size(-%d)", limits.MemoryBytes>>10/int64(limits.Connections+1))
	return []string{"busy_timeout(5000)", cache, "foreign_keys(1)", "trusted_schema(0)"}
}

// OpenReadOnly opens a database without a log as immutable, for which SQLite
// writes no other file. With a log, which a killed process leaves, it needs the
// index file of the log, or room to create it.
func (Driver) OpenReadOnly(ctx context.Context, path string, limits engine.Limits) (*sql.DB, error) {
	if err := checkPageSize(path); err != nil {
		return nil, err
	}
	if _, err := engine.IsClosed(path, path+"-wal"); err != nil {
		return nil, err
	}
	damaged, err := findDamage(path + "-wal")
	if damaged != nil {
		err = engine.Unclean(errors.New("the log is damaged"))
	}
	if err != nil {
		return nil, err
	}
	how := url.Values{"mode": {"ro"}}
	log, err := os.Stat(path + "-wal")
	switch {
	case err == nil && log.Size() > 0:
	case err == nil || errors.Is(err, fs.ErrNotExist):
		how.Set("immutable", "1")
	default:
		return nil, err
	}
	db, err := open(ctx, path, how, append(pragmas(limits), "temp_store(2)", "query_only(1)"))
	if err == nil || how.Has("immutable") {
		return db, err
	}
	return nil, engine.Unclean(err)
}

func open(ctx context.Context, path string, how url.Values, pragmas []string) (*sql.DB, error) {
	how["_pragma"] = pragmas
	dsn := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: how.Encode()}
	connector, err := newConnector(dsn.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// Fault classifies an error of SQLite.
func (Driver) Fault(err error) engine.Fault {
	switch primaryCode(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return engine.FaultTransient
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_NOMEM:
		return engine.FaultBroken
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PROTOCOL:
		return engine.FaultFatal
	}
	return engine.FaultStatement
}

// Full reports whether the disk is full. An index of the log that cannot be
// allocated has another code.
func (Driver) Full(err error) bool {
	code := resultCode(err)
	return code&0xff == sqlite3.SQLITE_FULL || code == sqlite3.SQLITE_IOERR_SHMSIZE
}

// Damaged reports whether the file is damaged.
func (Driver) Damaged(err error) bool {
	code := primaryCode(err)
	return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB || errors.Is(err, errTruncated)
}

// primaryCode returns the primary result code of an error of SQLite, or
// SQLITE_OK.
func primaryCode(err error) int { return resultCode(err) & 0xff }

// resultCode returns the extended result code of an error of SQLite, or
// SQLITE_OK.
func resultCode(err error) int {
	var failure *sqlite.Error
	if !errors.As(err, &failure) {
		return sqlite3.SQLITE_OK
	}
	return failure.Code()
}
