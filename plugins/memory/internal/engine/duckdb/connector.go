//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"context"
	"database/sql/driver"
	"errors"

	duckdb "github.com/duckdb/duckdb-go/v2"
)

// The driver asks for Err of the context between planning and running a query. If the
// context was canceled, it returns and leaves the query open, which DuckDB's threads
// have begun by then: the query cannot be interrupted any more, the next statement on
// the connection waits until it has ended, and the next open of the file waits forever
// (https://github.com/duckdb/duckdb/issues/25965). So the driver sees an Err of nil, runs
// each query, and interrupts it when the context is done.

// uncanceled is a context whose Err is nil.
type uncanceled struct{ context.Context }

func (uncanceled) Err() error { return nil }

// interruptible calls a function of the driver with a context.
func interruptible[T any](ctx context.Context, call func(ctx context.Context) (T, error)) (result T, err error) {
	if err := ctx.Err(); err != nil {
		return result, err
	}
	if result, err = call(uncanceled{ctx}); err != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return result, err
}

// connector opens connections whose queries are [interruptible].
type connector struct{ *duckdb.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return connection{inner.(*duckdb.Conn)}, nil
}

// connection is a connection whose queries are [interruptible].
type connection struct{ *duckdb.Conn }

func (c connection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return interruptible(ctx, func(ctx context.Context) (driver.Rows, error) { return c.Conn.QueryContext(ctx, query, args) })
}

func (c connection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return interruptible(ctx, func(ctx context.Context) (driver.Result, error) { return c.Conn.ExecContext(ctx, query, args) })
}

func (c connection) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	return interruptible(ctx, func(ctx context.Context) (driver.Stmt, error) {
		inner, err := c.Conn.PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		return prepared{inner.(*duckdb.Stmt)}, nil
	})
}

func (c connection) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	return interruptible(ctx, func(ctx context.Context) (driver.Tx, error) { return c.Conn.BeginTx(ctx, options) })
}

// prepared is a statement whose queries are [interruptible].
type prepared struct{ *duckdb.Stmt }

func (p prepared) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return interruptible(ctx, func(ctx context.Context) (driver.Rows, error) { return p.Stmt.QueryContext(ctx, args) })
}

func (p prepared) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return interruptible(ctx, func(ctx context.Context) (driver.Result, error) { return p.Stmt.ExecContext(ctx, args) })
}
