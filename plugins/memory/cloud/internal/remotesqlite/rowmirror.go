package remotesqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine"
	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sqlite"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// rowMirror runs the queries of data.* on a copy of the tables that they read: an
// API cannot confine a query of a workflow. It reads what has changed before each
// query. It is safe for concurrent use.
type rowMirror struct {
	d  *database
	mu sync.Mutex
	// engine is opened by the first query, in a temporary folder.
	engine *engine.Engine
	dir    string
	seen   map[string]tableState
	closed bool
}

// tableState is a row of tea_tables.
type tableState struct {
	version, removed int64
	born             string
}

var _ store.Selector = (*rowMirror)(nil)

// Dialect is that of the views.
func (*rowMirror) Dialect() store.Dialect { return tabular.JSONRows }

// Select runs a query.
func (m *rowMirror) Select(ctx context.Context, query string, bounds store.Sandbox) (store.Table, error) {
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

// refresh makes the copies of tables those of one moment.
func (m *rowMirror) refresh(ctx context.Context, names []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.open(ctx); err != nil {
		return err
	}
	for range maxRounds {
		rows, err := m.d.query(ctx, "SELECT name, version, removed, born FROM tea_tables")
		if err != nil {
			return err
		}
		now := map[string]tableState{}
		for _, row := range rows {
			now[text(row, 0)] = tableState{number(row, 1), number(row, 2), text(row, 3)}
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

// read reads what has changed in a table.
func (m *rowMirror) read(ctx context.Context, name string, now tableState) error {
	have := m.seen[name]
	if have.born != now.born || now.removed > have.version || now.version < have.version {
		delete(m.seen, name)
		have = tableState{}
		if err := m.exec(ctx, "DELETE FROM tea_rows WHERE name = ?", name); err != nil {
			return err
		}
	}
	for after := have.version; after < now.version; {
		rows, err := m.d.query(ctx, fmt.Sprintf(pageSQL, "seq", "CAST(?2 AS INTEGER)", rowsAtOnce, maxPage), name, integer(after))
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		err = m.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
			for _, row := range rows {
				_, err := tx.Exec(ctx, "INSERT INTO tea_rows VALUES (?, ?, ?, ?) ON CONFLICT (name, key) DO UPDATE SET seq = excluded.seq, body = excluded.body", name, text(row, 0), number(row, 1), text(row, 2))
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if after = number(rows[len(rows)-1], 1); len(rows) < rowsAtOnce && number(rows[0], 3) == int64(len(rows)) {
			break
		}
	}
	if now.born != "" {
		m.seen[name] = now
	}
	return nil
}

// rowsAtOnce is the number of rows that a request reads.
const rowsAtOnce = 5000

func (m *rowMirror) exec(ctx context.Context, sql string, args ...any) error {
	return m.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	})
}

func (m *rowMirror) open(ctx context.Context) (err error) {
	if m.closed {
		return tea.Errorf(tea.ConnectionError, "the memory is closed")
	}
	if m.engine != nil {
		return nil
	}
	if m.dir == "" {
		if m.dir, err = os.MkdirTemp("", "tea-tables-"); err != nil {
			return store.SystemError(err)
		}
	}
	e, err := engine.Open(ctx, engine.Options{Dir: m.dir, Driver: sqlite.Driver{}, Logger: m.d.logger})
	if err != nil {
		return err
	}
	m.engine, m.seen = e, map[string]tableState{}
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

// close removes the copy.
func (m *rowMirror) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	var err error
	if m.engine != nil {
		err = m.engine.Close()
	}
	if m.dir != "" {
		err = errors.Join(err, store.SystemError(os.RemoveAll(m.dir)))
	}
	return err
}
