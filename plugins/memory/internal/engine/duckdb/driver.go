//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Available reports whether this build has DuckDB.
const Available = true

// New returns the driver.
func New() (engine.Driver, error) { return database{}, nil }

// database is the driver for DuckDB.
type database struct{}

func (database) Dialect() store.Dialect { return store.DuckDB }

func (database) File() string { return "memory.duckdb" }

const fileMode = 0o600

// spillTimes is the size of the spill directory in multiples of the memory:
// DuckDB's default is nine tenths of the disk.
const spillTimes = 8

// Open opens the database and locks its configuration: nothing is downloaded, no
// file outside of limits.Reach is accessed, and no statement can change that.
func (database) Open(ctx context.Context, path string, limits engine.Limits) (engine.Handles, error) {
	for _, dir := range []string{limits.AllowedDir, limits.SpillDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return engine.Handles{}, err
		}
	}
	_, absent := os.Stat(path)
	if errors.Is(absent, fs.ErrNotExist) {
		if err := create(ctx, path, limits); err != nil {
			return engine.Handles{}, err
		}
	}
	db, repaired, err := openRecovered(ctx, path, limits)
	if err != nil {
		return engine.Handles{}, err
	}
	// DuckDB creates the file with the permissions of the umask, so they are set here; it does not open an existing
	// empty file. Only the owner of the file can change its permissions.
	if err := os.Chmod(path, fileMode); err != nil && !errors.Is(err, fs.ErrPermission) {
		return engine.Handles{}, errors.Join(err, db.Close())
	}
	makeLog := func() { makePrivate(path + ".wal") }
	if absent != nil {
		makeLog() // for the schema
	}
	return engine.Handles{
		Read: db, Write: db, Checkpoint: checkpoint, Repaired: repaired, BeforeCommit: makeLog,
		BeforeWrite: func() { engine.ForgetClosed(path) },
		Closed:      func() error { return engine.NoteClosed(path, logs(path)...) },
	}, nil
}

// makePrivate creates the log, or changes its permissions. DuckDB removes it
// after each checkpoint and creates it with the permissions of the umask.
func makePrivate(log string) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		_ = os.Chmod(log, fileMode) // fails unless this user owns it
		return
	}
	_ = file.Close() // it is empty
}

// create creates an empty database under another name and renames it, because a
// kill or a full disk during the first writes leaves a file that DuckDB cannot
// open.
func create(ctx context.Context, path string, limits engine.Limits) error {
	unfinished := path + ".new"
	for _, file := range []string{unfinished, unfinished + ".wal"} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	db, err := open(ctx, unfinished, limits, "READ_WRITE", nil)
	if err == nil {
		_, err = db.ExecContext(ctx, "CHECKPOINT")
		err = errors.Join(err, db.Close())
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(unfinished))
	}
	return os.Rename(unfinished, path)
}

// OpenReadOnly opens the database for reading. It does not spill to the disk. An
// index without all rows, or a damaged log, is an error.
func (database) OpenReadOnly(ctx context.Context, path string, limits engine.Limits) (*sql.DB, error) {
	limits.SpillDir = ""
	for _, log := range logs(path) {
		found, err := findDamage(log)
		if found != nil {
			err = engine.Unclean(errors.New("the log is damaged"))
		}
		if err != nil {
			return nil, err
		}
	}
	closed, err := isClosed(path)
	if err != nil {
		return nil, err
	}
	db, err := open(ctx, path, limits, "READ_ONLY", func(db *sql.DB) error {
		if closed {
			return nil
		}
		return checkIndexes(ctx, db)
	})
	if err != nil && refusedLog.MatchString(err.Error()) {
		err = engine.Unclean(err)
	}
	return db, err
}

// open opens a database. If prepare is not nil, it is called before the configuration
// is locked.
func open(ctx context.Context, path string, limits engine.Limits, mode string, prepare func(*sql.DB) error) (*sql.DB, error) {
	options := url.Values{
		"access_mode":                   {mode},
		"threads":                       {strconv.Itoa(limits.Threads)},
		"memory_limit":                  {strconv.FormatInt(limits.MemoryBytes, 10) + "B"},
		"temp_directory":                {limits.SpillDir},
		"autoinstall_known_extensions":  {"false"},
		"autoload_known_extensions":     {"false"},
		"allow_community_extensions":    {"false"},
		"preserve_insertion_order":      {"true"},
		"default_block_size":            {"16384"}, // small databases stay small
		"enable_external_file_cache":    {"false"},
		"enable_http_metadata_cache":    {"false"},
		"immediate_transaction_mode":    {"false"},
		"allow_persistent_secrets":      {"false"},
		"max_temp_directory_size":       {strconv.FormatInt(spillTimes*limits.MemoryBytes, 10) + "B"},
		"disable_database_invalidation": {"false"},
	}
	inner, err := duckdb.NewConnector(path+"?"+options.Encode(), nil)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector{inner})
	// Do not use ctx, which may end after the database was opened.
	_, err = db.ExecContext(context.WithoutCancel(ctx), "PRAGMA disable_checkpoint_on_shutdown")
	if err == nil && prepare != nil {
		err = prepare(db)
	}
	if err == nil {
		err = lockIn(ctx, db, limits.AllowedDir)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func lockIn(ctx context.Context, db *sql.DB, reach string) error {
	reach, err := filepath.Abs(reach)
	if err != nil {
		return err
	}
	for _, setting := range []string{
		"SET GLOBAL TimeZone = 'UTC'",
		"SET GLOBAL parquet_metadata_cache = true", // a table's files never change
		"SET allowed_directories = [" + literal(reach+string(filepath.Separator)) + "]",
		"SET enable_external_access = false",
		"SET lock_configuration = true",
	} {
		if _, err := db.ExecContext(ctx, setting); err != nil {
			return fmt.Errorf("%s: %w", setting, err)
		}
	}
	return nil
}

// literal returns a string literal of SQL.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// Append adds rows with DuckDB's appender.
func (database) Append(ctx context.Context, conn *sql.Conn, table string, rows [][]any) error {
	return conn.Raw(func(inner any) error {
		appender, err := duckdb.NewAppenderFromConn(inner.(connection).Conn, "", table)
		if err != nil {
			return err
		}
		values := make([]driver.Value, 0, 16)
		for _, row := range rows {
			values = values[:0]
			for _, v := range row {
				if d, ok := v.(store.Decimal); ok {
					v = d.Units // the appender's form of a DECIMAL
				}
				values = append(values, v)
			}
			if err := appender.AppendRow(values...); err != nil {
				return errors.Join(err, appender.Clear(), appender.Close())
			}
		}
		return appender.CloseWithCancel(ctx)
	})
}

// Fault classifies an error of DuckDB.
func (database) Fault(err error) engine.Fault {
	var failure *duckdb.Error
	if !errors.As(err, &failure) {
		return engine.FaultStatement
	}
	switch failure.Type {
	case duckdb.ErrorTypeTransaction:
		return engine.FaultTransient
	case duckdb.ErrorTypeIO, duckdb.ErrorTypeFatal, duckdb.ErrorTypeInternal, duckdb.ErrorTypeConnection, duckdb.ErrorTypeSerialization:
		return engine.FaultFatal
	}
	return engine.FaultStatement
}

// Full reports whether the disk is full, for which DuckDB has no separate code.
func (database) Full(err error) bool { return ioError(err, "No space left on device") }

// Damaged reports whether the file is damaged. DuckDB has no code for it, so the
// text of the error decides.
func (database) Damaged(err error) bool {
	return ioError(err, "Corrupt database file", "not a valid DuckDB database file", "Could not read enough bytes", "Failure while replaying WAL file")
}

// ioError reports whether an error of reading or writing has one of the texts.
func ioError(err error, texts ...string) bool {
	var failure *duckdb.Error
	return errors.As(err, &failure) && slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(failure.Msg, text) })
}
