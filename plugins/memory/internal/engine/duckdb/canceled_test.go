//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
)

// canceledAfter is a context that is canceled once Err was called some times, like one
// that is canceled while the driver works.
type canceledAfter struct {
	context.Context
	cancel context.CancelFunc
	left   atomic.Int64
}

func newCanceledAfter(ctx context.Context, checks int64) *canceledAfter {
	c := &canceledAfter{}
	c.Context, c.cancel = context.WithCancel(ctx)
	c.left.Store(checks)
	return c
}

func (c *canceledAfter) Err() error {
	left := c.left.Add(-1)
	if left >= 0 {
		return nil
	}
	if left == -1 {
		// Meanwhile DuckDB's thread starts the planned query; one that it does not start does no harm.
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // DuckDB does not signal it
	}
	c.cancel()
	return context.Canceled
}

// A query that was canceled after it was planned and before it ran stayed open. It kept
// the database open after its pool was closed, and the next open waited forever.
func TestCanceledQueryKeptTheDatabaseOpen(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(ctx context.Context, db *sql.DB, stmt *sql.Stmt) error{
		"query of a statement": func(ctx context.Context, _ *sql.DB, stmt *sql.Stmt) error {
			return stmt.QueryRowContext(ctx, 1).Scan(new(int64))
		},
		"statement": func(ctx context.Context, _ *sql.DB, stmt *sql.Stmt) error {
			_, err := stmt.ExecContext(ctx, 1)
			return err
		},
		"query": func(ctx context.Context, db *sql.DB, _ *sql.Stmt) error {
			return db.QueryRowContext(ctx, "SELECT 1").Scan(new(int64))
		},
		"execution": func(ctx context.Context, db *sql.DB, _ *sql.Stmt) error {
			_, err := db.ExecContext(ctx, "SELECT 1")
			return err
		},
		"several statements": func(ctx context.Context, db *sql.DB, _ *sql.Stmt) error {
			stmt, err := db.PrepareContext(ctx, "SELECT 1; SELECT 2")
			if err == nil {
				err = stmt.Close()
			}
			return err
		},
		"transaction": func(ctx context.Context, db *sql.DB, _ *sql.Stmt) error {
			tx, err := db.BeginTx(ctx, nil)
			if err == nil {
				err = tx.Rollback()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			reopen := func() *sql.DB {
				limits := engine.Limits{Threads: 2, MemoryBytes: 64 << 20, SpillDir: filepath.Join(dir, "spill"), AllowedDir: dir}
				var db *sql.DB
				opened := make(chan error, 1)
				go func() {
					var err error
					db, err = open(t.Context(), filepath.Join(dir, "memory.duckdb"), limits, "READ_WRITE", nil)
					opened <- err
				}()
				select {
				case err := <-opened:
					if err != nil {
						t.Fatal(err)
					}
				case <-time.After(time.Minute):
					t.Fatal("the database is still open")
				}
				return db
			}
			for checks, done := int64(0), false; !done; checks++ {
				db := reopen()
				stmt, err := db.PrepareContext(t.Context(), "SELECT ?::BIGINT")
				if err != nil {
					t.Fatal(err)
				}
				ctx := newCanceledAfter(t.Context(), checks)
				err = call(ctx, db, stmt)
				ctx.cancel()
				if done = err == nil; !done && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
				if err := errors.Join(stmt.Close(), db.Close()); err != nil {
					t.Fatal(err)
				}
			}
			if err := reopen().Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// An endless query that was canceled after it was planned and before it ran went on in
// DuckDB's threads, and the next statement on the connection waited for it forever.
func TestCanceledEndlessQueryEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	limits := engine.Limits{Threads: 2, MemoryBytes: 64 << 20, SpillDir: filepath.Join(dir, "spill"), AllowedDir: dir}
	db, err := open(t.Context(), filepath.Join(dir, "memory.duckdb"), limits, "READ_WRITE", nil)
	if err != nil {
		t.Fatal(err)
	}
	const endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t"
	for checks := range int64(20) {
		ctx := newCanceledAfter(t.Context(), checks)
		defer time.AfterFunc(100*time.Millisecond, ctx.cancel).Stop() // if Err is not called that often
		ended := make(chan error, 1)
		go func() { ended <- db.QueryRowContext(ctx, endless).Scan(new(int64)) }()
		select {
		case err := <-ended:
			if err == nil {
				t.Fatal("an endless query has ended")
			}
		case <-time.After(time.Minute):
			t.Fatalf("the query runs after it was canceled (%d)", checks)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
