package store

import (
	"context"
	"time"
)

// QueryEngine runs SQL on one database, which this process alone has open. It
// pools connections, retries what is transient and stops asking a database
// that keeps failing.
//
// A statement that fails is a query_error, a database that fails a
// connection_error, one that keeps failing a circuit_open.
//
// Implementations are safe for concurrent use.
type QueryEngine interface {
	// Dialect says which SQL is spoken.
	Dialect() Dialect
	// Identity names the database: a companion that was made for another one
	// is of no use. It stays the same as long as the database is there.
	Identity(ctx context.Context) (string, error)
	// Query runs one statement that reads and was written in this module;
	// Select is the one for SQL that came from outside. The rows are closed
	// before the same goroutine writes or closes the engine.
	Query(ctx context.Context, query string, args ...any) (Rows, error)
	// Write runs fn in a transaction that is durable when Write returns.
	// Transactions of several callers may become one, so fn may run more than
	// once: it must not change anything but the database and its own results.
	// An error or a panic of fn undoes what it did, and harms no other caller;
	// the error comes back as it is.
	// A write that waits for its turn when ctx ends is not done.
	Write(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error
	// Barrier runs fn while nobody writes: what was written before is there,
	// and nothing more comes until fn returns. fn must not write. A database
	// that can be read only, as where the disk is full, is no hindrance.
	Barrier(ctx context.Context, fn func()) error
	// Select runs one SELECT that came from outside within a Sandbox.
	Select(ctx context.Context, query string, sandbox Sandbox) (Table, error)
	// Close waits for running calls and closes the database. What is called
	// afterwards fails with a connection_error.
	Close() error
}

// Dialect is a variant of SQL.
type Dialect string

// The dialects of the embedded engines.
const (
	DuckDB Dialect = "duckdb"
	SQLite Dialect = "sqlite"
)

// Tx is a running transaction. It is not safe for concurrent use.
type Tx interface {
	Exec(ctx context.Context, query string, args ...any) (affected int64, err error)
	Query(ctx context.Context, query string, args ...any) (Rows, error)
	// Append adds rows, the columns in the table's order. They may be written
	// only with the next Exec or Query or with the commit, together with those
	// of other callers, so that is where their errors may come.
	Append(ctx context.Context, table string, rows ...[]any) error
	// AfterCommit calls fn once the transaction is durable and before Write
	// returns, in the order of the commits; fn must not write.
	AfterCommit(fn func())
}

// Rows are the answer of a Query; see [database/sql.Rows].
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Columns() ([]string, error)
	Err() error
	Close() error
}

// Sandbox bounds what a Select may do.
type Sandbox struct {
	// Tables are the tables and views of the database that may be read, by the
	// name that the query uses.
	Tables []string
	// Views are further tables; they hide tables of the same names.
	Views []View
	// MaxRows bounds the answer; further rows set Table.Truncated.
	MaxRows int
	// MaxBytes bounds the answer's size.
	MaxBytes int
	// MaxMemory bounds by how much the process may grow while the query runs.
	MaxMemory int64
	// Timeout bounds the time.
	Timeout time.Duration
	// Args are bound to the query's parameters; a sql.NamedArg to $name.
	Args []any
}

// View is a table that the database does not have: a query of this module
// under a name.
type View struct {
	Name string
	// Columns are those of Query, in its order.
	Columns []Column
	// Query is a SELECT that was written in this module. It names what it
	// reads with the schema, as main.documents, where a view might have the
	// same name.
	Query string
}

// Column is one of a View.
type Column struct {
	Name string
	Type ColumnType
}

// ColumnType says what a column's values are where the database does not.
type ColumnType int

// The types of columns.
const (
	// Plain values are those of the database.
	Plain ColumnType = iota
	// JSON is a text of JSON, which is parsed for the answer.
	JSON
	// Boolean is 1 or 0 where the database has no true and false.
	Boolean
)

// Table is the answer of a Select: a value of the value model for each column
// of each row.
type Table struct {
	Columns []string
	Rows    [][]any
	// Truncated says that there was more than the Sandbox lets through.
	Truncated bool
}

// Scan reads all rows of a query into dest, calls row after each, and closes
// the rows. It takes what Query returned: err is returned as it is.
func Scan(rows Rows, err error, row func(), dest ...any) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		row()
	}
	return rows.Err()
}

// Int returns the only value of a query's result, 0 if there is none; see
// [Scan].
func Int(rows Rows, err error) (n int64, _ error) {
	err = Scan(rows, err, func() {}, &n)
	return n, err
}

type freeingKey struct{}

// Freeing marks the writes of a call as ones that free space: they may use the
// room that is kept for them on a full disk.
func Freeing(ctx context.Context) context.Context {
	return context.WithValue(ctx, freeingKey{}, true)
}

// IsFreeing reports whether the context is one of [Freeing].
func IsFreeing(ctx context.Context) bool { return ctx.Value(freeingKey{}) != nil }
