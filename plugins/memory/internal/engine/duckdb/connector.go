//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"context"
	"database/sql/driver"

	duckdb "github.com/duckdb/duckdb-go/v2"
)

// The driver leaves a query open that is canceled after it was planned and before it
// runs. Its transaction stays open, and so does the database after its pool was closed.
// The next open of the file in this process then waits forever:
// https://github.com/duckdb/duckdb/issues/25965. The next statement on the connection
// ends the query, so a connection runs one after a cancellation.

// connector opens connections that end canceled queries.
type connector struct{ *duckdb.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return connection{inner.(*duckdb.Conn)}, nil
}

// connection is a connection that ends canceled queries.
type connection struct{ *duckdb.Conn }

func (c connection) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.QueryContext(ctx, query, args)
	return rows, c.ended(ctx, err)
}

func (c connection) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.Conn.ExecContext(ctx, query, args)
	return result, c.ended(ctx, err)
}

func (c connection) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	inner, err := c.Conn.PrepareContext(ctx, query)
	if err != nil {
		return nil, c.ended(ctx, err)
	}
	return prepared{inner.(*duckdb.Stmt), c}, nil
}

func (c connection) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.Conn.BeginTx(ctx, options)
	return tx, c.ended(ctx, err)
}

// ended ends the query of the connection if it was canceled, and returns err.
func (c connection) ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		_, _ = c.Conn.ExecContext(context.WithoutCancel(ctx), "SELECT 1", nil) // fails in a transaction that failed
	}
	return err
}

// prepared is a statement of a connection.
type prepared struct {
	*duckdb.Stmt
	conn connection
}

func (p prepared) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := p.Stmt.QueryContext(ctx, args)
	return rows, p.conn.ended(ctx, err)
}

func (p prepared) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	result, err := p.Stmt.ExecContext(ctx, args)
	return result, p.conn.ended(ctx, err)
}
