package engine

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// manyRows is from how many rows on an [Appender] is faster.
const manyRows = 8

// tx is the running transaction as a caller sees it. It begins when something
// is asked of the database: a single row that nobody looks at needs none.
type tx struct {
	writer *writer
	begun  bool
	after  []func()
	open   map[*txRows]struct{}
	// appended are rows that are not written yet, by table.
	appended map[string][][]any
	tables   []string // of appended, in the order of their first rows
}

func newTx(w *writer) *tx {
	return &tx{writer: w, open: map[*txRows]struct{}{}, appended: map[string][][]any{}}
}

func (t *tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	if err := t.look(ctx); err != nil {
		return 0, err
	}
	if once(query) {
		result, err := t.writer.conn.ExecContext(ctx, query, args...)
		if err != nil {
			return 0, err
		}
		return result.RowsAffected()
	}
	return t.run(ctx, query, args)
}

// begin begins the transaction. No caller's context ends that: what is undone
// is everybody's.
func (t *tx) begin() error {
	if t.begun {
		return nil
	}
	err := t.writer.begin(context.Background())
	t.begun = err == nil
	return err
}

// look makes the database ready for a statement of the caller's.
func (t *tx) look(ctx context.Context) error {
	if err := t.begin(); err != nil {
		return err
	}
	return t.flush(ctx)
}

// run runs a statement that is kept for the next time.
func (t *tx) run(ctx context.Context, query string, args []any) (int64, error) {
	if t.writer.driver.Dialect() == store.DuckDB {
		query, args = writeNulls(query, args)
	}
	stmt, err := t.writer.statements.take(ctx, query)
	if err != nil {
		return 0, err
	}
	defer t.writer.statements.give(stmt)
	result, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// writeNulls writes NULL in place of the parameters that are none. DuckDB knows
// no type of such a parameter and plans the statement anew for it, which takes
// longer than running it. No text in the statement holds a question mark.
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

// once says that a statement is not worth keeping: a definition, which DuckDB
// cannot run a second time from its prepared form, or a COPY to a new file.
func once(query string) bool {
	return strings.HasPrefix(query, "CREATE ") || strings.HasPrefix(query, "COPY ")
}

func (t *tx) Query(ctx context.Context, query string, args ...any) (store.Rows, error) {
	if err := t.look(ctx); err != nil {
		return nil, err
	}
	stmt, err := t.writer.statements.take(ctx, query)
	if err != nil {
		return nil, err
	}
	found, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		t.writer.statements.give(stmt)
		return nil, err
	}
	r := &txRows{Rows: found, tx: t, stmt: stmt}
	t.open[r] = struct{}{}
	return r, nil
}

// txRows keep their statement until they are closed.
type txRows struct {
	*sql.Rows
	tx   *tx
	stmt *statement
}

// Close gives the rows up.
func (r *txRows) Close() error {
	err := r.Rows.Close()
	if _, open := r.tx.open[r]; open {
		delete(r.tx.open, r)
		r.tx.writer.statements.give(r.stmt)
	}
	return err
}

// finish closes what a function has left open, which would keep the
// connection from ending the transaction.
func (t *tx) finish() {
	for r := range t.open {
		_ = r.Close() // the function has read what it wanted
	}
}

// Append keeps the rows until somebody may look, so that those of many
// callers are written at once.
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

// commit makes what was done durable. A single row that is all there is to be
// written is a transaction of its own and takes a third less time.
func (t *tx) commit(ctx context.Context) error {
	if !t.begun && len(t.tables) == 0 {
		return nil
	}
	alone := !t.begun && !t.writer.uncertain && len(t.tables) == 1 && len(t.appended[t.tables[0]]) == 1
	if alone {
		if err := t.writer.still(); err != nil {
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
	if err := t.writer.still(); err != nil {
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
