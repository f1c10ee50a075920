//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// DuckDB 1.5 replays its log into the tables and their primary keys, but not into
// other indexes. It applies the missing entries when a statement uses the index,
// and loses them if it makes a checkpoint at shutdown first. Then a lookup by the
// index misses rows or returns wrong ones. So the engine makes no checkpoint at
// shutdown, and recovers a database that this package did not close before it is
// used.

// isClosed reports whether this package closed the database and nothing wrote to it
// since; see [engine.IsClosed].
func isClosed(path string) (bool, error) { return engine.IsClosed(path, logs(path)...) }

// logs returns the files with changes that are not yet in the database file.
func logs(path string) []string {
	return []string{path + ".wal", path + ".wal.checkpoint", path + ".wal.recovery"}
}

// openRecovered opens a database for writing, and recovers it unless this package
// closed it. It returns descriptions of the damage.
func openRecovered(ctx context.Context, path string, limits engine.Limits) (db *sql.DB, repaired []string, err error) {
	note := func(what string) {
		if what != "" {
			repaired = append(repaired, what)
		}
	}
	closed, err := isClosed(path)
	if err == nil {
		repaired, err = repairLogs(path)
	}
	if err != nil {
		return nil, nil, err
	}
	prepare := func(db *sql.DB) error {
		if closed {
			return nil
		}
		damaged, err := recoverIndexes(ctx, db)
		if len(damaged) > 0 {
			note("indexes of the database did not have all rows of " + strings.Join(damaged, ", ") + ", so that records were not found; they were created again from the rows")
		}
		return err
	}
	for range logs(path) {
		db, err = open(ctx, path, limits, "READ_WRITE", prepare)
		if err != nil && (database{}).Full(err) {
			// Records can be read without a recovery, which the next open tries again.
			// The comparison completes the indexes in memory.
			if db, failed := open(ctx, path, limits, "READ_WRITE", func(db *sql.DB) error { return checkIndexes(ctx, db) }); failed == nil {
				return db, repaired, nil
			}
		}
		if err == nil {
			return db, repaired, nil
		}
		cut, failed := cutLog(path, err)
		if cut == "" || failed != nil {
			return nil, nil, errors.Join(err, failed)
		}
		note(cut)
	}
	return nil, nil, err
}

// recoverIndexes writes the log into the database and recreates all indexes
// except the indexes of constraints. It returns the tables whose indexes lacked
// rows.
func recoverIndexes(ctx context.Context, db *sql.DB) (damaged []string, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := checkpoint(ctx, conn); err != nil {
		return nil, err
	}
	indexes, err := readIndexes(ctx, conn)
	if err != nil || len(indexes) == 0 {
		return nil, err
	}
	if damaged, err = incomplete(ctx, conn, indexes); err != nil {
		return nil, err
	}
	for _, x := range indexes {
		if err := x.create(ctx, conn); err != nil {
			return nil, fmt.Errorf("create the index %s again: %w", x.name, err)
		}
	}
	return damaged, checkpoint(ctx, conn)
}

// checkIndexes returns an error if an index of a read-only database lacks rows.
func checkIndexes(ctx context.Context, db *sql.DB) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	indexes, err := readIndexes(ctx, conn)
	if err != nil || len(indexes) == 0 {
		return err
	}
	damaged, err := incomplete(ctx, conn, indexes)
	if err == nil && len(damaged) > 0 {
		err = tea.Errorf(tea.InternalError, "the memory is damaged: its indexes of %s do not have all rows; open it once for writing, which creates them again", strings.Join(damaged, ", "))
	}
	return err
}

func checkpoint(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("write the log into the database: %w", err)
	}
	return nil
}

// index is an index that was created with CREATE INDEX.
type index struct{ name, table, columns, sql string }

func readIndexes(ctx context.Context, conn *sql.Conn) (all []index, err error) {
	rows, err := conn.QueryContext(ctx, "SELECT index_name, table_name, expressions, sql FROM duckdb_indexes() WHERE sql IS NOT NULL ORDER BY table_name, index_name")
	var x index
	err = store.Scan(rows, err, func() { all = append(all, x) }, &x.name, &x.table, &x.columns, &x.sql)
	return all, err
}

// create recreates the index from the rows, without reading the old index.
func (x index) create(ctx context.Context, conn *sql.Conn) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing to undo after the commit
	for _, statement := range []string{"DROP INDEX " + quote(x.name), x.sql} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// incomplete returns the tables that have an index without all rows. It counts rows
// through the indexes; the settings force their use.
func incomplete(ctx context.Context, conn *sql.Conn, indexes []index) (tables []string, err error) {
	forced := []string{"index_scan_max_count", "index_scan_percentage", "disabled_optimizers"}
	for i, value := range []string{"9223372036854775807", "1.0", "'statistics_propagation'"} {
		if _, err := conn.ExecContext(ctx, "SET "+forced[i]+" = "+value); err != nil {
			return nil, err
		}
	}
	for _, x := range indexes {
		missing, err := x.missing(ctx, conn)
		if err != nil {
			return nil, fmt.Errorf("compare the index %s with its table: %w", x.name, err)
		}
		if missing && (len(tables) == 0 || tables[len(tables)-1] != x.table) {
			tables = append(tables, x.table)
		}
	}
	for _, name := range forced {
		if _, err := conn.ExecContext(ctx, "RESET "+name); err != nil {
			return nil, err
		}
	}
	return tables, nil
}

// missing reports whether the index lacks rows of its table. Only an index over a
// single column can be checked.
func (x index) missing(ctx context.Context, conn *sql.Conn) (bool, error) {
	column := strings.Trim(x.columns, "[]'\"")
	var kind string
	err := conn.QueryRowContext(ctx, "SELECT data_type FROM duckdb_columns() WHERE table_name = ? AND column_name = ?", x.table, column).Scan(&kind)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil // an index over several columns or an expression
	}
	if err != nil {
		return false, err
	}
	least, known := map[string]string{"VARCHAR": "''", "BIGINT": "-9223372036854775808"}[kind]
	if !known {
		return false, nil
	}
	var rows, found int64
	from := " FROM " + quote(x.table) + " WHERE "
	if err := conn.QueryRowContext(ctx, "SELECT count(*)"+from+quote(column)+" IS NOT NULL").Scan(&rows); err != nil {
		return false, err
	}
	err = conn.QueryRowContext(ctx, "SELECT count(*)"+from+quote(column)+" >= "+least).Scan(&found)
	return found != rows, err
}

// quote quotes an identifier of SQL.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
