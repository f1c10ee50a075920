// Package rowmirror keeps a local copy of the tables of data.*, for databases that cannot run the queries of workflows.
// Start with [New].
package rowmirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/scratch"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// rowsAtOnce is the number of rows that a request reads.
const rowsAtOnce = 5000

// Mirror runs the queries of data.* on a copy of the tables that they read. Before each query it reads the changes. It
// is safe for concurrent use.
type Mirror struct {
	source tabular.RowStore
	logger *slog.Logger
	mu     sync.Mutex
	// engine is opened by the first query, in scratch.
	engine  *engine.Engine
	scratch scratch.Folder
	seen    map[string]tabular.TableState
	closed  bool
}

var _ store.Selector = (*Mirror)(nil)

// New returns the mirror of a database. Nothing is opened before the first query; the caller closes it.
func New(source tabular.RowStore, logger *slog.Logger) *Mirror {
	return &Mirror{source: source, logger: logger}
}

// Where returns the rows of a table that match a condition, and the number of the table's last change at that time.
func (m *Mirror) Where(ctx context.Context, table string, w tabular.Where) (rows []tabular.Row, version int64, err error) {
	if err := m.refresh(ctx, []string{table}); err != nil {
		return nil, 0, fmt.Errorf("read the tables: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.open(ctx); err != nil {
		return nil, 0, err
	}
	found, err := m.engine.Query(ctx, "SELECT key, seq, body FROM tea_rows WHERE name = ? AND ("+w.SQL+") ORDER BY seq", append([]any{table}, w.Args...)...)
	var r tabular.Row
	var body string
	err = store.Scan(found, err, func() {
		r.Body = json.RawMessage(body)
		rows = append(rows, r)
	}, &r.Key, &r.Seq, &body)
	return rows, m.seen[table].Version, err
}

// Dialect is the dialect of the views.
func (*Mirror) Dialect() store.Dialect { return tabular.JSONRows }

// Select runs a query.
func (m *Mirror) Select(ctx context.Context, query string, bounds store.Sandbox) (store.Table, error) {
	var names []string
	for _, v := range bounds.Views {
		names = append(names, strings.ToLower(v.Name))
	}
	slices.Sort(names)
	if err := m.refresh(ctx, slices.Compact(names)); err != nil {
		return store.Table{}, fmt.Errorf("read the tables: %w", err)
	}
	return m.engine.Select(ctx, query, bounds)
}

// maxRounds bounds how often tables that change meanwhile are read again.
const maxRounds = 20

// refresh updates the copies of the tables to one point in time.
func (m *Mirror) refresh(ctx context.Context, names []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.open(ctx); err != nil {
		return err
	}
	for range maxRounds {
		now, err := m.source.States(ctx)
		if err != nil {
			return err
		}
		changed := false
		for _, name := range names {
			if m.seen[name] == now[name] {
				continue
			}
			changed = true
			if err := m.read(ctx, name, now[name]); err != nil {
				return err
			}
		}
		if !changed {
			return nil
		}
	}
	e := tea.Errorf(tea.ConnectionError, "the tables change faster than they can be read")
	e.Retryable = true
	return e
}

// read reads the changes of a table.
func (m *Mirror) read(ctx context.Context, name string, now tabular.TableState) error {
	have := m.seen[name]
	if have.Born != now.Born || now.Removed > have.Version || now.Version < have.Version {
		delete(m.seen, name)
		have = tabular.TableState{}
		if err := m.exec(ctx, "DELETE FROM tea_rows WHERE name = ?", name); err != nil {
			return err
		}
	}
	for after, more := have.Version, have.Version < now.Version; more; {
		page, err := m.source.Read(ctx, tabular.RowQuery{Table: name, After: after, Limit: rowsAtOnce})
		if err != nil {
			return err
		}
		if len(page.Rows) == 0 {
			break
		}
		after, more = page.Rows[len(page.Rows)-1].Seq, page.More
		if err := m.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error { return apply(ctx, tx, name, page.Rows) }); err != nil {
			return err
		}
	}
	if now.Born != "" {
		m.seen[name] = now
	}
	return nil
}

func apply(ctx context.Context, tx store.Tx, name string, rows []tabular.Row) error {
	for _, r := range rows {
		sql, args := "INSERT INTO tea_rows VALUES (?, ?, ?, ?) ON CONFLICT (name, key) DO UPDATE SET seq = excluded.seq, body = excluded.body", []any{name, r.Key, r.Seq, string(r.Body)}
		if r.Gone {
			sql, args = "DELETE FROM tea_rows WHERE name = ? AND key = ?", args[:2]
		}
		if _, err := tx.Exec(ctx, sql, args...); err != nil {
			return err
		}
	}
	return nil
}

func (m *Mirror) exec(ctx context.Context, sql string, args ...any) error {
	return m.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	})
}

func (m *Mirror) open(ctx context.Context) (err error) {
	if m.closed {
		return tea.Errorf(tea.ConnectionError, "the memory is closed")
	}
	if m.engine != nil {
		return nil
	}
	dir, err := m.scratch.Path()
	if err != nil {
		return err
	}
	e, err := engine.Open(ctx, engine.Options{Dir: dir, Driver: sqlite.Driver{}, Logger: m.logger})
	if err != nil {
		return err
	}
	m.engine, m.seen = e, map[string]tabular.TableState{}
	err = m.exec(ctx, "CREATE TABLE IF NOT EXISTS tea_rows (name TEXT NOT NULL, key TEXT NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (name, key))")
	if err == nil {
		err = m.exec(ctx, "DELETE FROM tea_rows")
	}
	if err != nil {
		m.engine = nil
		return errors.Join(err, e.Close())
	}
	return nil
}

// Close removes the copy.
func (m *Mirror) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	var err error
	if m.engine != nil {
		err = m.engine.Close()
	}
	return errors.Join(err, m.scratch.Remove())
}
