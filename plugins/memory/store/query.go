package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// QueryEngine runs SQL on one database, which only this process has open. It
// pools connections, retries transient errors and stops calling a database that
// keeps failing.
//
// A failed statement is a query_error, a failed database a connection_error, and
// a database that keeps failing a circuit_open.
//
// Implementations are safe for concurrent use.
type QueryEngine interface {
	// Dialect is the dialect of the statements.
	Dialect() Dialect
	// Identity identifies the database, so that companion files of another database
	// are not used. It never changes.
	Identity(ctx context.Context) (string, error)
	// Query runs one reading statement of this module; use Select for statements of
	// workflows. The caller closes the rows before it writes or closes the engine.
	Query(ctx context.Context, query string, args ...any) (Rows, error)
	// Write runs fn in a transaction that is durable when Write returns.
	// Transactions of several callers can become one, so fn can run more than
	// once: it must only change the database and its own results. An error or a
	// panic of fn rolls its changes back and affects no other caller; the error is
	// returned unchanged. If ctx ends while the write waits for its turn, it is
	// not done.
	Write(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error
	// Barrier runs fn between two writes: earlier writes are committed, and later
	// ones wait until fn returns. fn must not write. It works on a database that is
	// read-only or whose disk is full.
	Barrier(ctx context.Context, fn func()) error
	// Select runs one SELECT of a workflow within a Sandbox.
	Select(ctx context.Context, query string, sandbox Sandbox) (Table, error)
	// Close waits for running calls and closes the database. Later calls fail with
	// a connection_error.
	Close() error
}

// Dialect is a variant of SQL.
type Dialect string

// The dialects.
const (
	DuckDB     Dialect = "duckdb"
	SQLite     Dialect = "sqlite"
	PostgreSQL Dialect = "postgres"
)

// Selector runs the SQL of memory.sql_query in a Backend. It is safe for
// concurrent use.
type Selector interface {
	// Dialect is the dialect of the statements and of Sandbox.Views, whose queries
	// name the table documents as main.documents.
	Dialect() Dialect
	// Select runs one SELECT of a workflow within a Sandbox. It adds the views
	// memories and vectors. A query that is not valid or not allowed is a
	// validation_error.
	Select(ctx context.Context, query string, sandbox Sandbox) (Table, error)
}

// Tx is a running transaction. It is not safe for concurrent use.
type Tx interface {
	Exec(ctx context.Context, query string, args ...any) (affected int64, err error)
	Query(ctx context.Context, query string, args ...any) (Rows, error)
	// Append adds rows, with the columns in the table's order. They may be written
	// only at the next Exec, Query or commit, which then returns their errors.
	Append(ctx context.Context, table string, rows ...[]any) error
	// AfterCommit calls fn once the transaction is durable and before Write
	// returns, in the order of the commits; fn must not write.
	AfterCommit(fn func())
}

// Decimal is a number with Scale digits after the point: Units / 10^Scale. It
// can be a value of [Tx.Append] and an argument of a statement.
type Decimal struct {
	Units int64
	Scale int
}

// String returns the number with all digits, such as -12.50.
func (d Decimal) String() string {
	if d.Scale == 0 {
		return strconv.FormatInt(d.Units, 10)
	}
	sign, units := "", d.Units
	if units < 0 {
		sign, units = "-", -units
	}
	digits := fmt.Sprintf("%0*d", d.Scale+1, units)
	return sign + digits[:len(digits)-d.Scale] + "." + digits[len(digits)-d.Scale:]
}

// Value returns the number as text, for the database to cast.
func (d Decimal) Value() (driver.Value, error) { return d.String(), nil }

// Rows are the result of a Query; see [database/sql.Rows].
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Columns() ([]string, error)
	Err() error
	Close() error
}

// Sandbox restricts a Select.
type Sandbox struct {
	// Tables are the tables and views of the database that the query can read.
	Tables []string
	// Broken has the errors of queries that read other tables, by table name in
	// lower case.
	Broken map[string]error
	// Views are additional tables; they hide tables with the same names.
	Views []View
	// MaxRows bounds the rows of the result; Table.Truncated reports more.
	MaxRows int
	// MaxBytes bounds the size of the result.
	MaxBytes int
	// MaxValue bounds the size of a text or blob that the query reads or makes, if
	// the engine supports it; 0 = the engine's bound.
	MaxValue int
	// MaxMemory bounds the growth of the process while the query runs.
	MaxMemory int64
	// Timeout bounds the run time.
	Timeout time.Duration
	// Args are bound to the query's parameters; a sql.NamedArg to $name.
	Args []any
}

// View is a named query of this module that a Select can read like a table.
type View struct {
	Name string
	// Columns are the columns of Query, in its order.
	Columns []Column
	// Query is a SELECT. It qualifies tables with the schema, as main.documents,
	// if a view could have the same name.
	Query string
}

// Column is a column of a View.
type Column struct {
	Name string
	Type ColumnType
}

// ColumnType is the type of a column's values if the database does not have that
// type.
type ColumnType int

// The types of columns.
const (
	// Plain values have the database's type.
	Plain ColumnType = iota
	// JSON is a text that is decoded for the result.
	JSON
	// Boolean is 1 or 0 if the database has no booleans.
	Boolean
	// Instant is a text in RFC 3339 if the database has no instants.
	Instant
)

// Table is the result of a Select, with values of the value model.
type Table struct {
	Columns []string
	Rows    [][]any
	// Truncated reports whether rows are missing because of the Sandbox's bounds.
	Truncated bool
}

// Scan reads all rows of a query into dest, calls row after each, and closes the
// rows. It takes the results of Query and returns err unchanged.
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

// All returns the values of a query's only column; see [Scan].
func All[T any](rows Rows, err error) (all []T, _ error) {
	var v T
	err = Scan(rows, err, func() { all = append(all, v) }, &v)
	return all, err
}

// InList returns the list of parameters of a condition IN, and their values.
func InList[T any](values []T) (list string, args []any) {
	args = make([]any, len(values))
	for i, v := range values {
		args[i] = v
	}
	return "(" + strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ") + ")", args
}

type freeingKey struct{}

// Freeing marks the writes of a call as freeing space: on a full disk they can
// use the reserve.
func Freeing(ctx context.Context) context.Context {
	return context.WithValue(ctx, freeingKey{}, true)
}

// IsFreeing reports whether the context was returned by [Freeing].
func IsFreeing(ctx context.Context) bool { return ctx.Value(freeingKey{}) != nil }
