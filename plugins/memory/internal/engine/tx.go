package engine

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// manyRows is the number of rows from which an [Appender] is faster.
const manyRows = 8

// tx is a running transaction. It begins with the first statement: a single
// appended row needs none.
type tx struct {
	writer *writer
	begun  bool
	after  []func()
	open   map[*txRows]struct{}
	// appended has the rows that are not written yet, by table.
	appended map[string][][]any
	tables   []string // the keys of appended, in the order of their first rows
}

func newTx(w *writer) *tx {
	return &tx{writer: w, open: map[*txRows]struct{}{}, appended: map[string][][]any{}}
}

func (t *tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	if err := t.prepare(ctx); err != nil {
		return 0, err
	}
	if once(query) {
		t.writer.altered = t.writer.altered || !strings.HasPrefix(query, "COPY ") && !strings.HasPrefix(query, "CREATE OR REPLACE VIEW ")
		result, err := t.writer.conn.ExecContext(ctx, query, args...)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	}
	return t.run(ctx, query, args)
}

// begin begins the transaction. It does not use a caller's context, since several
// callers share the transaction.
func (t *tx) begin() error {
	if t.begun {
		return nil
	}
	err := t.writer.begin(context.Background())
	t.begun = err == nil
	return err
}

// prepare begins the transaction and writes the appended rows, before a statement.
func (t *tx) prepare(ctx context.Context) error {
	if err := t.begin(); err != nil {
		return err
	}
	return t.flush(ctx)
}

// run runs a statement and caches it.
func (t *tx) run(ctx context.Context, query string, args []any) (int64, error) {
	if t.writer.driver.Dialect() == store.DuckDB {
		query, args = writeNulls(query, args)
	}
	stmt, err := t.writer.statements.take(ctx, query)
	if err != nil {
		return 0, err
	}
	defer t.writer.statements.release(stmt)
	result, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// writeNulls replaces nil parameters by NULL. DuckDB has no type for such a
// parameter and plans the statement again, which takes longer than running it.
// The statements have no literals with a question mark.
func writeNulls(query string, args []any) (string, []any) {
	if !slices.Contains(args, nil) {
		return query, args
	}
	var b strings.Builder
	given := make([]any, 0, len(args))
	for _, arg := range args {
		before, after, _ := strings.Cut(query, "?")
		b.WriteString(before)
		query = after
		if arg == nil {
			b.WriteString("NULL")
			continue
		}
		b.WriteByte('?')
		given = append(given, arg)
	}
	b.WriteString(query)
	return b.String(), given
}

// once reports whether a statement is not cached: a definition, which DuckDB
// cannot run a second time from its prepared form, or a COPY to a new file.
func once(query string) bool {
	return strings.HasPrefix(query, "CREATE ") || strings.HasPrefix(query, "COPY ")
}

func (t *tx) Query(ctx context.Context, query string, args ...any) (store.Rows, error) {
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	stmt, err := t.writer.statements.take(ctx, query)
	if err != nil {
		return nil, err
	}
	found, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		t.writer.statements.release(stmt)
		return nil, err
	}
	r := &txRows{Rows: found, tx: t, stmt: stmt}
	t.open[r] = struct{}{}
	return r, nil
}

type txRows struct {
	*sql.Rows
	tx   *tx
	stmt *statement
}

func (r *txRows) Close() error {
	err := r.Rows.Close()
	if _, open := r.tx.open[r]; open {
		delete(r.tx.open, r)
		r.tx.writer.statements.release(r.stmt)
	}
	return err
}

// finish closes rows that a function left open. They would block the end of the
// transaction.
func (t *tx) finish() {
	for r := range t.open {
		_ = r.Close() // the function succeeded without them
	}
}

// Append buffers the rows until the next statement or the commit, so that the
// rows of many callers are written together.
func (t *tx) Append(_ context.Context, table string, rows ...[]any) error {
	if len(rows) == 0 {
		return nil
	}
	if t.appended[table] == nil {
		t.tables = append(t.tables, table)
	}
	t.appended[table] = append(t.appended[table], rows...)
	return nil
}

// commit makes the changes durable. A single row without other changes is
// written without BEGIN and COMMIT, which takes a third less time.
func (t *tx) commit(ctx context.Context) error {
	if !t.begun && len(t.tables) == 0 {
		return nil
	}
	alone := !t.begun && !t.writer.uncertain && len(t.tables) == 1 && len(t.appended[t.tables[0]]) == 1
	if alone {
		t.writer.beforeWrite()
		if err := t.writer.beforeCommit(); err != nil {
			return err
		}
		return t.flush(ctx)
	}
	if err := t.begin(); err != nil {
		return err
	}
	if err := t.flush(ctx); err != nil {
		return err
	}
	if err := t.writer.beforeCommit(); err != nil {
		return err
	}
	return t.writer.exec(ctx, "COMMIT")
}

// flush writes the appended rows.
func (t *tx) flush(ctx context.Context) error {
	tables := t.tables
	t.tables = nil
	for _, table := range tables {
		rows := t.appended[table]
		delete(t.appended, table)
		if err := t.insert(ctx, table, rows); err != nil {
			return fmt.Errorf("add rows to %s: %w", table, err)
		}
	}
	return nil
}

func (t *tx) insert(ctx context.Context, table string, rows [][]any) error {
	if bulk, ok := t.writer.driver.(Appender); ok && len(rows) >= manyRows {
		return bulk.Append(ctx, t.writer.conn, table, rows)
	}
	insert := "INSERT INTO " + table + " VALUES (?" + strings.Repeat(", ?", len(rows[0])-1) + ")"
	for _, row := range rows {
		if _, err := t.run(ctx, insert, row); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) AfterCommit(fn func()) { t.after = append(t.after, fn) }
