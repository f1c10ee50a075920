package remotesqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/rowmirror"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// database is shared by the stores of a database.
type database struct {
	name     string
	server   Server
	terms    *fulltext.Terms
	now      func() time.Time
	inline   int
	readOnly string
	lengths  lengths
	logger   *slog.Logger
	writes   atomic.Int64
	turn     chan struct{} // held by the writer

	prepareLock chan struct{} // guards the fields below
	prepared    bool
	fullText    bool // FTS5 is available
}

// Open returns the stores of a database, which close the server. name is the name of the backend, for errors.
func Open(name string, server Server, c store.Config) (*store.Stores, error) {
	terms, err := fulltext.NewTerms(c.Language)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "settings.ltm.language: %w", err)
	}
	d := &database{name: name, server: server, terms: terms, now: c.Now, inline: c.InlineBytes, readOnly: c.ReadOnly, logger: c.Logger, turn: make(chan struct{}, 1), prepareLock: make(chan struct{}, 1)}
	c.Engine = name
	stores := records.Open(d, c)
	mirror := rowmirror.New(rowStore{d}, d.logger)
	stores.Tables = tabular.NewShared(stores.Metadata, rowStore{d}, mirror)
	stores.Close = func() error { return errors.Join(mirror.Close(), server.Close()) }
	return stores, nil
}

func (d *database) micro() int64 { return d.now().UnixMicro() }

func (d *database) query(ctx context.Context, sql string, args ...string) (Result, error) {
	if err := d.prepare(ctx); err != nil {
		return nil, err
	}
	return d.server.Query(ctx, Statement{sql, args})
}

// write is a transaction that takes effect once, however often its request is sent. In all its statements ?1 is the id
// of the write, and statements that change something contain the condition pending.
type write struct {
	// refused is an SQL condition under which the write is refused, "" = none. before is an SQL expression whose value
	// is the first result, "" = none. Args are the parameters of both, from ?2.
	refused, before string
	args            []string
	statements      []Statement
}

const (
	// pending is true unless the write was already done or is refused.
	pending = "(SELECT done FROM tea_ops WHERE id = ?1) = 0"
	// before is the first result of the write.
	before = "(SELECT result FROM tea_ops WHERE id = ?1)"
)

// arg adds a parameter of refused and before and returns its placeholder.
func (w *write) arg(value string) string {
	w.args = append(w.args, value)
	return "?" + strconv.Itoa(len(w.args)+1)
}

// add adds a statement whose parameters begin at ?2.
func (w *write) add(sql string, args ...string) {
	w.statements = append(w.statements, Statement{sql, args})
}

// addResult adds an expression whose value is a further result.
func (w *write) addResult(n int, expression string, args ...string) {
	w.add(fmt.Sprintf("INSERT INTO tea_ops (id, done, result) SELECT ?1 || '/%d', 1, %s WHERE %s", n, expression, pending), args...)
}

const (
	// keepWrites is the number of seconds after which a request is no longer repeated.
	keepWrites = 86400
	// cleanEvery is the number of writes after which old rows of tea_ops are removed.
	cleanEvery = 64
)

// refusedError is returned by do for a refused write.
type refusedError struct{ before string }

func (*refusedError) Error() string { return "the condition of the write is not met" }

func (d *database) writable(ctx context.Context) error {
	if d.readOnly != "" {
		return tea.Errorf(tea.PermissionDenied, "the memory is %w: %s", store.ErrReadOnly, d.readOnly)
	}
	return d.prepare(ctx)
}

// do runs a write and returns its results. The error of a refused write is a *refusedError.
func (d *database) do(ctx context.Context, w write) ([]string, error) {
	if err := d.writable(ctx); err != nil {
		return nil, err
	}
	id := rand.Text()
	done, result := "0", "NULL"
	if w.refused != "" {
		done = "CASE WHEN " + w.refused + " THEN 2 ELSE 0 END"
	}
	if w.before != "" {
		result = w.before
	}
	statements := []Statement{
		{"UPDATE tea_ops SET done = 1 WHERE id = ?1 AND done = 0", nil},
		{"INSERT INTO tea_ops (id, done, result) SELECT ?1, " + done + ", " + result + " WHERE NOT EXISTS (SELECT 1 FROM tea_ops WHERE id = ?1)", w.args},
	}
	statements = append(statements, w.statements...)
	// "0" sorts directly after "/".
	statements = append(statements, Statement{"SELECT done, result FROM tea_ops WHERE id >= ?1 AND id < ?1 || '0' ORDER BY length(id), id", nil})
	for i := range statements {
		statements[i].Args = append([]string{id}, statements[i].Args...)
	}
	if d.writes.Add(1)%cleanEvery == 0 {
		for _, table := range []string{"tea_ops", "tea_args"} {
			statements = append([]Statement{{SQL: fmt.Sprintf("DELETE FROM %s WHERE at < unixepoch() - %d", table, keepWrites)}}, statements...)
		}
	}
	select { // writes are serialized here because the server does not queue them fairly
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	rows, err := d.server.Transaction(ctx, id, statements...)
	<-d.turn
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, tea.Errorf(tea.QueryError, "the server did not return the result of a write")
	}
	results := make([]string, len(rows))
	for i, row := range rows {
		results[i] = text(row, 1)
	}
	if number(rows[0], 0) == 2 {
		return nil, &refusedError{results[0]}
	}
	return results, nil
}

func (d *database) Inspect(ctx context.Context) (entries, bytes map[string]int64, err error) {
	rows, err := d.query(ctx, `SELECT 'ltm', count(*), coalesce(sum(size), 0) FROM ltm
		UNION ALL SELECT 'vectors', count(*), coalesce(sum(length(embedding) * 3 / 4 + length(text)), 0) FROM vectors
		UNION ALL SELECT kind, count(*), sum(length(body)) FROM documents GROUP BY kind
		UNION ALL SELECT 'rows', count(*), coalesce(sum(length(body)), 0) FROM tea_rows
		UNION ALL SELECT 'blobs', count(*), coalesce(sum(size), 0) FROM blobs`)
	entries, bytes = map[string]int64{}, map[string]int64{}
	for _, row := range rows {
		entries[text(row, 0)], bytes[text(row, 0)] = number(row, 1), number(row, 2)
	}
	return entries, bytes, err
}

// Reset removes all data. Change numbers continue, so that other devices recognize their cached data as old.
func (d *database) Reset(ctx context.Context) error {
	if err := d.prepare(ctx); err != nil {
		return err
	}
	var w write
	w.untracked(func() {
		for _, table := range data {
			w.add("DELETE FROM " + table + " WHERE " + pending)
		}
	})
	w.add("UPDATE tea_settings SET value = lower(hex(randomblob(16))) WHERE name = '" + settingIdentity + "' AND " + pending)
	if d.fullText {
		w.add("INSERT INTO ltm_text (ltm_text) SELECT 'delete-all' WHERE " + pending)
	}
	_, err := d.do(ctx, w)
	return err
}

// prefixed adds the conditions that a column begins with prefix.
func prefixed(column, prefix string, args []string) (string, []string) {
	if prefix == "" {
		return "", args
	}
	args = append(args, prefix)
	sql := fmt.Sprintf(" AND %s >= ?%d", column, len(args))
	if end := documents.Behind(prefix); end != "" {
		args = append(args, end)
		sql += fmt.Sprintf(" AND %s < ?%d", column, len(args))
	}
	return sql, args
}

// quoteAll returns strings in double quotes, for FTS5.
func quoteAll(words []string) string { return `"` + strings.Join(words, " ") + `"` }
