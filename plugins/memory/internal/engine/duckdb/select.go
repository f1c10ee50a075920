//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	duckdb "github.com/duckdb/duckdb-go/v2"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Select runs one SELECT of an untrusted query.
//
// It wraps the text in a SELECT that bounds the rows and converts the values to
// the value model. DuckDB's parser and the guard check that whole text, which
// then runs on the same connection, unchanged except for a leading WITH with the
// sandbox's views: what was checked is what runs.
func (database) Select(ctx context.Context, conn *sql.Conn, plans *sandbox.Plans, query string, bounds store.Sandbox) (table store.Table, err error) {
	if err := sandbox.Check(query); err != nil {
		return store.Table{}, err
	}
	s := &selection{conn: conn, query: query, bounds: bounds}
	defer func() { err = s.typed(err) }()
	key := sandbox.Key(query, bounds)
	known, ok := plans.Find(key).(*plan)
	if !ok {
		if err := s.admit(ctx); err != nil {
			return store.Table{}, err
		}
	}
	// If ctx ended meanwhile, it would be unclear whether the transaction has
	// begun.
	if _, err := conn.ExecContext(context.WithoutCancel(ctx), "BEGIN TRANSACTION READ ONLY"); err != nil {
		return store.Table{}, err
	}
	defer s.end(ctx)
	if ok {
		if table, err = s.run(ctx, known); !errors.Is(err, errOtherTypes) {
			return table, err
		}
		if err := s.admit(ctx); err != nil {
			return store.Table{}, err
		}
	}
	made, err := s.plan(ctx)
	if err != nil {
		return store.Table{}, err
	}
	if table, err = s.run(ctx, made); err == nil {
		plans.Keep(key, made)
	}
	return table, err
}

// selection is a query in progress.
type selection struct {
	conn   *sql.Conn
	query  string
	bounds store.Sandbox
	// body is the query inside of the outer SELECT.
	body string
}

// plan is a checked query.
type plan struct {
	text    string
	columns []column
	// types are the types of the text's columns, nil before its first run.
	types []string
}

// errOtherTypes means that a table has changed its columns since the plan was
// made.
var errOtherTypes = errors.New("the columns of a table have changed")

// around puts the body into a SELECT of the given columns. The query begins on
// the second line.
func (s *selection) around(columns string) string {
	return "SELECT " + columns + " FROM (\n" + s.body + "\n) LIMIT " + strconv.Itoa(s.bounds.MaxRows+1)
}

// admit checks the query and finds its body.
func (s *selection) admit(ctx context.Context) error {
	tree, err := s.parse(ctx, s.query)
	if err != nil {
		return err
	}
	if err := newGuard(s.query, s.bounds).check(tree); err != nil {
		return err
	}
	s.body = strings.TrimRight(s.query, " \t\r\n;")
	if _, err = s.parse(ctx, s.around("*")); err == nil {
		return nil
	}
	// DuckDB writes the tree as text again, for a semicolon before a comment, for
	// example.
	return s.conn.QueryRowContext(ctx, "SELECT CAST(json_deserialize_sql(json_serialize_sql(CAST(? AS VARCHAR))) AS VARCHAR)", s.query).Scan(&s.body)
}

// plan finds the columns of the query and makes the final text, which the guard
// checks as a whole.
func (s *selection) plan(ctx context.Context) (*plan, error) {
	columns, err := s.describe(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = c.expression(i + 1)
	}
	p := &plan{text: s.around(strings.Join(list, ", ")), columns: columns}
	tree, err := s.parse(ctx, p.text)
	if err != nil {
		return nil, err
	}
	return p, newGuard(p.text, s.bounds).check(tree)
}

// describe returns the columns of the answer. It finds invalid names and types in
// the query.
func (s *selection) describe(ctx context.Context) ([]column, error) {
	rows, err := s.conn.QueryContext(ctx, "DESCRIBE "+sandbox.With(s.bounds)+s.around("*"), s.bounds.Args...)
	if err != nil {
		return nil, s.misnamed(ctx, err)
	}
	var columns []column
	var c column
	var ignored any
	err = store.Scan(rows, nil, func() { columns = append(columns, c) }, &c.name, &c.kind, &ignored, &ignored, &ignored, &ignored)
	return columns, err
}

func (s *selection) run(ctx context.Context, p *plan) (store.Table, error) {
	rows, err := s.conn.QueryContext(ctx, sandbox.With(s.bounds)+p.text, s.bounds.Args...)
	if err != nil {
		return store.Table{}, err
	}
	types, err := rows.ColumnTypes()
	if err != nil {
		return store.Table{}, errors.Join(err, rows.Close())
	}
	names, kinds := make([]string, len(types)), make([]string, len(types))
	for i, t := range types {
		names[i], kinds[i] = p.columns[i].name, t.DatabaseTypeName()
	}
	if p.types == nil {
		p.types = kinds
	} else if !slices.Equal(p.types, kinds) {
		return store.Table{}, errors.Join(errOtherTypes, rows.Close())
	}
	return sandbox.NewAnswer(s.bounds, names).Read(rows, func(i int, v any) (any, error) { return p.columns[i].value(v) })
}

// end closes the transaction. If that fails, the connection leaves the pool.
func (s *selection) end(ctx context.Context) {
	if _, err := s.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK"); err != nil {
		_ = s.conn.Raw(func(any) error { return driver.ErrBadConn }) // takes it out of the pool
	}
}

// pointer matches the part of a DuckDB error that points to a place in the query.
var pointer = regexp.MustCompile(`(?s)\s*LINE (\d+): ([^\n]*)\n( *)\^`)

// misnamed sets the type and the place of an error about the query's names and
// types.
func (s *selection) misnamed(ctx context.Context, err error) error {
	var failure *duckdb.Error
	if ctx.Err() != nil || !errors.As(err, &failure) {
		return err
	}
	switch failure.Type {
	case duckdb.ErrorTypeBinder, duckdb.ErrorTypeCatalog, duckdb.ErrorTypeParser, duckdb.ErrorTypeSyntax, duckdb.ErrorTypeInvalidInput,
		duckdb.ErrorTypeNotImplemented, duckdb.ErrorTypeConversion, duckdb.ErrorTypeInvalidType, duckdb.ErrorTypeParameterNotResolved, duckdb.ErrorTypeParameterNotAllowed:
	default:
		return err
	}
	message, offset := s.place(failure.Msg)
	return sandbox.Invalid(s.query, offset, message)
}

// place removes the pointer from a message and returns the offset that it shows.
func (s *selection) place(message string) (string, int) {
	found := pointer.FindStringSubmatchIndex(message)
	if found == nil {
		return message, -1
	}
	line, _ := strconv.Atoi(message[found[2]:found[3]])
	shown, spaces := message[found[4]:found[5]], found[7]-found[6]
	message = message[:found[0]]
	column := spaces - len(fmt.Sprintf("LINE %d: ", line))
	lines := strings.SplitAfter(s.query, "\n")
	if strings.HasPrefix(shown, "...") || line < 2 || line-2 >= len(lines) || column < 0 || column > len(lines[line-2]) || !strings.HasPrefix(s.query, s.body) {
		return message, -1
	}
	return message, len(strings.Join(lines[:line-2], "")) + column
}

// typed sets the type of an error of the running query. An untrusted query's
// errors do not count as faults of the database.
func (s *selection) typed(err error) error {
	var failure *duckdb.Error
	if !errors.As(err, &failure) {
		return err
	}
	switch failure.Type {
	case duckdb.ErrorTypeIO, duckdb.ErrorTypeFatal, duckdb.ErrorTypeInternal, duckdb.ErrorTypeConnection, duckdb.ErrorTypeSerialization, duckdb.ErrorTypeInterrupt:
		return err
	}
	message, _, _ := strings.Cut(failure.Msg, "\n")
	message = strings.TrimSpace(message)
	return tea.Errorf(tea.QueryError, "SQL: %s", message)
}
