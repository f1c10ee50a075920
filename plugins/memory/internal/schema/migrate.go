package schema

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

//go:embed duckdb/*.sql sqlite/*.sql
var files embed.FS

// Migrate applies the missing versions, each in a separate transaction, and
// reports whether there were any. It calls before first if there are some. It refuses
// a database of a newer version with a dependency_missing error and does not change it.
func Migrate(ctx context.Context, conn *sql.Conn, dialect store.Dialect, before func()) (changed bool, err error) {
	if _, err := conn.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS tea_schema (version INTEGER NOT NULL)"); err != nil {
		return false, fmt.Errorf("read the schema's version: %w", err)
	}
	missing, err := missing(ctx, conn, dialect)
	if err != nil {
		return false, err
	}
	if len(missing) > 0 {
		before()
	}
	for _, file := range missing {
		if err := apply(ctx, conn, file); err != nil {
			return false, fmt.Errorf("bring the schema to %s: %w", file, err)
		}
	}
	return len(missing) > 0, nil
}

// querier is a database or a connection.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Check refuses a database that Migrate would change or refuse.
func Check(ctx context.Context, db querier, dialect store.Dialect) error {
	missing, err := missing(ctx, db, dialect)
	if err == nil && len(missing) > 0 {
		err = tea.Errorf(tea.DependencyMissing, "the memory was written by an older version; open it once for writing, which brings it up to date")
	}
	return err
}

// missing returns the missing versions of the database.
func missing(ctx context.Context, db querier, dialect store.Dialect) ([]string, error) {
	have := 0
	if err := db.QueryRowContext(ctx, "SELECT coalesce(max(version), 0) FROM tea_schema").Scan(&have); err != nil {
		return nil, fmt.Errorf("read the schema's version: %w", err)
	}
	versions, err := fs.Glob(files, string(dialect)+"/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list the schema's versions: %w", err)
	}
	if have > len(versions) {
		return nil, tea.Errorf(tea.DependencyMissing, "the memory was written by a newer version (schema %d, this one supports %d); install that version of the memory plugin", have, len(versions))
	}
	return versions[have:], nil
}

func apply(ctx context.Context, conn *sql.Conn, file string) error {
	text, err := files.ReadFile(file)
	if err != nil {
		return err
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(file[strings.IndexByte(file, '/'):], "/"), "_")
	version, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("the name of the file has no number: %w", err)
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing to undo after the commit
	if _, err := tx.ExecContext(ctx, string(text)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO tea_schema VALUES (?)", version); err != nil {
		return err
	}
	return tx.Commit()
}
