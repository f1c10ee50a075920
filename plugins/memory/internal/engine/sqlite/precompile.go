package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// plan is a query that has passed precompilation.
type plan struct {
	body string
	// names and declared are the names and declared types of its columns.
	names, declared []string
	// own are the tables that it defines without reading a column of them.
	own map[string]bool
}

// planned checks a query, or returns the cached result.
func planned(ctx context.Context, conn *sql.Conn, plans *sandbox.Plans, query string, bounds store.Sandbox) (*plan, error) {
	var version int64 // the version of the tables
	if err := conn.QueryRowContext(ctx, "PRAGMA main.schema_version").Scan(&version); err != nil {
		return nil, err
	}
	key := sandbox.Key(query, bounds, version)
	if known, ok := plans.Find(key).(*plan); ok {
		return known, nil
	}
	body, err := statement(query, bounds)
	if err != nil {
		return nil, err
	}
	p := &plan{body: body}
	if err := p.precompile(ctx, conn, bounds); err != nil {
		return nil, err
	}
	plans.Keep(key, p)
	return p, nil
}

// precompile compiles the query on an empty database in memory, with stubs for
// the tables that it may read. A query that compiles there names no other table.
func (p *plan) precompile(ctx context.Context, conn *sql.Conn, bounds store.Sandbox) error {
	stubs, err := stubTables(ctx, conn, bounds)
	if err != nil {
		return err
	}
	connector, err := newConnector("file::memory:?_dqs=0&_pragma=trusted_schema(0)")
	if err != nil {
		return err
	}
	stage := sql.OpenDB(connector)
	defer func() { _ = stage.Close() }() // it is in memory only
	empty, err := stage.Conn(ctx)
	if err != nil {
		return err
	}
	defer empty.Close()
	if _, err := empty.ExecContext(ctx, stubs); err != nil {
		return fmt.Errorf("create the stub tables: %w", err)
	}
	modules, err := store.All[string](empty.QueryContext(ctx, "SELECT name FROM pragma_module_list"))
	if err != nil {
		return err
	}
	policy := precompilePolicy(bounds, modules)
	p.own = policy.own
	_, err = confined(ctx, empty, policy, limits(bounds), func() (store.Table, error) {
		// In parentheses, only one statement is valid.
		for _, text := range []string{"SELECT * FROM (\n" + p.body + "\n)", p.body} {
			if err := p.describe(empty, text); err != nil {
				return store.Table{}, refused(p.body, bounds, policy, err)
			}
		}
		return store.Table{}, nil
	})
	return err
}

// describe compiles a text and sets the names of its columns and, for columns of
// tables, their declared types. (SQLite would rename duplicate columns of a query
// in parentheses.)
func (p *plan) describe(conn *sql.Conn, text string) error {
	return conn.Raw(func(inner any) error {
		described, ok := inner.(interface {
			ColumnInfo(query string) ([]sqlite.ColumnInfo, error)
		})
		if !ok {
			return fmt.Errorf("the driver %T cannot describe columns", inner)
		}
		columns, err := described.ColumnInfo(text)
		p.names, p.declared = make([]string, len(columns)), make([]string, len(columns))
		for i, c := range columns {
			p.names[i], p.declared[i] = c.Name, c.DeclType
		}
		return err
	})
}

// stubTables returns the SQL that creates tables with the names and columns of the
// readable tables.
func stubTables(ctx context.Context, conn *sql.Conn, bounds store.Sandbox) (string, error) {
	var all strings.Builder
	for _, table := range bounds.Tables {
		columns, err := columnsOf(ctx, conn, table)
		if err != nil {
			return "", fmt.Errorf("read the columns of %s: %w", table, err)
		}
		writeStubTable(&all, "main", table, columns)
	}
	for _, v := range bounds.Views {
		columns := make([]declaration, len(v.Columns))
		for i, c := range v.Columns {
			columns[i] = declaration{name: c.Name, kind: map[store.ColumnType]string{store.JSON: jsonText, store.Boolean: boolean, store.Instant: instantText}[c.Type]}
		}
		writeStubTable(&all, "temp", v.Name, columns)
	}
	return all.String(), nil
}

type declaration struct{ name, kind string }

// writeStubTable writes a table without a rowid, as views have none.
func writeStubTable(to *strings.Builder, schema, name string, columns []declaration) {
	if len(columns) == 0 {
		return // the query fails because the table does not exist
	}
	fmt.Fprintf(to, "CREATE TABLE %s.%s (", schema, sandbox.Quoted(name))
	for _, c := range columns {
		fmt.Fprintf(to, "%s %s, ", sandbox.Quoted(c.name), c.kind)
	}
	fmt.Fprintf(to, "PRIMARY KEY (%s)) WITHOUT ROWID;\n", sandbox.Quoted(columns[0].name))
}

// plainType matches a declared type that can be copied unchanged.
var plainType = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_ ]+(\([0-9, ]+\))?$`) })

func columnsOf(ctx context.Context, conn *sql.Conn, table string) (columns []declaration, err error) {
	rows, err := conn.QueryContext(ctx, "SELECT name, type FROM pragma_table_info(?, 'main')", table)
	var c declaration
	err = store.Scan(rows, err, func() {
		if !plainType().MatchString(c.kind) {
			c.kind = ""
		}
		columns = append(columns, c)
	}, &c.name, &c.kind)
	return columns, err
}

// missing and near match SQLite's errors for a missing table and for a syntax
// error.
var (
	missing = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^no such (table|module|table-valued function): (.*)$`)
	})
	near = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?s)^(?:near "(.*)": syntax error|unrecognized token: "(.*)"|no such (?:column|function): (\S+).*)$`)
	})
)

// refused sets the type of a compilation error.
func refused(body string, bounds store.Sandbox, policy *policy, err error) error {
	if policy != nil && policy.refused != "" {
		return sandbox.Denied(bounds, body, only(body, policy.refused[strings.LastIndexByte(policy.refused, ' ')+1:]), policy.refused, policy.rule)
	}
	var failure *sqlite.Error
	if !errors.As(err, &failure) {
		return err
	}
	message := reason(failure)
	if m := missing().FindStringSubmatch(message); m != nil {
		return sandbox.Denied(bounds, body, only(body, m[2]), "the table "+m[2], "only the listed tables are open to queries")
	}
	switch failure.Code() & 0xff {
	case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_RANGE:
	case sqlite3.SQLITE_NOMEM:
		return tea.Errorf(tea.ValidationError, "SQL: the query is too large: %s", message)
	default:
		return err
	}
	offset := -1
	if m := near().FindStringSubmatch(message); m != nil {
		offset = only(body, m[1]+m[2]+m[3])
	}
	return sandbox.Invalid(body, offset, message)
}

// only returns the offset of a text in the query, or -1 if it does not occur
// exactly once: SQLite's driver does not report the offset.
func only(body, text string) int {
	if text == "" || strings.Count(body, text) != 1 {
		return -1
	}
	return strings.Index(body, text)
}
