package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Select runs one SELECT of an untrusted query.
//
// The query is compiled twice. The first time, the database is empty except for
// tables with the names and columns of the readable ones, so that a name in the
// query is either one of these or defined by the query. The second time, it is
// compiled on the database itself, where a view may read the tables below it. The
// authorizer alone cannot tell a view from a WITH with the same name.
func (Driver) Select(ctx context.Context, conn *sql.Conn, plans *sandbox.Plans, query string, bounds store.Sandbox) (store.Table, error) {
	if err := sandbox.Check(query); err != nil {
		return store.Table{}, err
	}
	plan, err := planned(ctx, conn, plans, query, bounds)
	if err != nil {
		return store.Table{}, err
	}
	policy := onDatabase(bounds, plan.own)
	return confined(ctx, conn, policy, limits(bounds), func() (store.Table, error) {
		table, err := plan.run(ctx, conn, bounds)
		if policy.refused != "" {
			err = refused(plan.body, bounds, policy, err)
		}
		return table, err
	})
}

// run returns the answer. It materializes the rows, because the driver can
// interrupt a statement only until its first row.
func (p *plan) run(ctx context.Context, conn *sql.Conn, bounds store.Sandbox) (store.Table, error) {
	answer := "tea_answer AS MATERIALIZED (SELECT * FROM (\n" + p.body + "\n) LIMIT " + strconv.Itoa(bounds.MaxRows+1) + ")"
	rows, err := conn.QueryContext(ctx, sandbox.With(bounds, answer)+"SELECT * FROM tea_answer", bounds.Args...)
	if err != nil {
		return store.Table{}, failed(err)
	}
	table, err := sandbox.NewAnswer(bounds, p.names).Read(rows, func(i int, v any) (any, error) { return toValue(p.declared[i], v) })
	return table, failed(err)
}

// failed sets the type of an error of the running query. An untrusted query's
// errors do not count as faults of the database.
func failed(err error) error {
	var failure *sqlite.Error
	if !errors.As(err, &failure) {
		return err
	}
	switch failure.Code() & 0xff {
	case sqlite3.SQLITE_TOOBIG:
		return tea.Errorf(tea.QueryError, "SQL: a value or a row is larger than a query on SQLite can read (1 MB in data.query and memory.sql_query); select other columns, or keep large texts in files")
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE, sqlite3.SQLITE_FULL, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_READONLY:
		return tea.Errorf(tea.QueryError, "SQL: %s", reason(failure))
	}
	return err
}

// reason returns SQLite's message without its codes.
func reason(failure *sqlite.Error) string {
	message := strings.TrimPrefix(failure.Error(), "SQL logic error: ")
	if end := strings.LastIndex(message, " ("); end > 0 && strings.HasSuffix(message, ")") {
		message = message[:end]
	}
	return message
}

// confined runs fn with a policy and limits on the connection, and always removes
// both again. If that fails, the connection leaves the pool.
func confined(ctx context.Context, conn *sql.Conn, policy *policy, limits map[int]int, fn func() (store.Table, error)) (table store.Table, err error) {
	before := make(map[int]int, len(limits))
	defer func() {
		clean := authorize(conn, nil)
		for id, value := range before {
			_, limitErr := sqlite.Limit(conn, id, value)
			clean = errors.Join(clean, limitErr)
		}
		if clean != nil {
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
	}()
	for id, value := range limits {
		if before[id], err = sqlite.Limit(conn, id, value); err != nil {
			return store.Table{}, err
		}
	}
	if err := authorize(conn, policy.decide); err != nil {
		return store.Table{}, err
	}
	if err := ctx.Err(); err != nil {
		return store.Table{}, err
	}
	return fn()
}

func authorize(conn *sql.Conn, decide sqlite.AuthorizerFn) error {
	return conn.Raw(func(inner any) error {
		registerer, ok := inner.(sqlite.AuthorizerRegisterer)
		if !ok {
			return fmt.Errorf("the driver %T has no authorizer", inner)
		}
		return registerer.RegisterAuthorizer(decide)
	})
}
