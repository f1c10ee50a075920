package tabular

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	rowsTimeout = 10 * time.Minute
	// rowsBytes bounds the size of rows that are read together.
	rowsBytes = 16 << 20
	// rowBytes bounds the size of a row.
	rowBytes = 256 << 20
)

// Rows returns rows in the order of their keys, which never change.
func (s *Tables) Rows(ctx context.Context, name, after string, limit int) (rows []json.RawMessage, next string, err error) {
	if err := s.open(ctx); err != nil {
		return nil, "", err
	}
	t, err := s.find(ctx, name)
	if err != nil {
		return nil, "", err
	}
	found, err := s.keyed(ctx, t, "_tea_key > ? ORDER BY _tea_key", limit, after)
	if err != nil {
		return nil, "", err
	}
	for _, row := range found.Rows {
		raw, err := t.object(row)
		if err != nil {
			return nil, "", err
		}
		rows = append(rows, raw)
		next, _ = row[0].(string)
	}
	if !found.Truncated {
		next = ""
	}
	return rows, next, nil
}

// keyed returns rows with their keys and numbers, at least one if there are any.
func (s *Tables) keyed(ctx context.Context, t *table, which string, limit int, args ...any) (store.Table, error) {
	defer s.readers.begin()() // keeps replaced files meanwhile
	box := store.Sandbox{Views: []store.View{t.withKeys(s.dialect())}, MaxRows: limit, MaxBytes: rowsBytes, MaxValue: rowBytes, Timeout: rowsTimeout, Args: args}
	found, err := s.o.Engine.Select(ctx, "SELECT * FROM tea_keyed WHERE "+which, box)
	if errors.Is(err, sandbox.ErrFirstRow) {
		box.MaxRows, box.MaxBytes = 1, rowBytes
		found, err = s.o.Engine.Select(ctx, "SELECT * FROM tea_keyed WHERE "+which, box)
	}
	return found, err
}

// object returns a row of keyed as a JSON object.
func (t *table) object(row []any) (json.RawMessage, error) {
	members := make(map[string]any, len(t.columns))
	for i, c := range t.columns {
		members[c.Name] = row[i+2]
	}
	return value.Encode(members)
}

// withKeys returns a view of the rows with their keys and numbers.
func (t *table) withKeys(dialect store.Dialect) store.View {
	v := store.View{Name: "tea_keyed", Columns: []store.Column{{Name: "_tea_key"}, {Name: "_tea_seq"}}}
	for _, c := range t.columns {
		v.Columns = append(v.Columns, store.Column{Name: c.Name, Type: c.shown()})
	}
	if v.Query = "SELECT _tea_key, _tea_seq, " + t.userColumns() + t.lastChanges(); dialect == store.DuckDB {
		v.Query = "SELECT _tea_key, _tea_seq, " + t.shownColumns() + " FROM " + t.live()
	}
	return v
}

// shown returns the column's type in a view.
func (c Column) shown() store.ColumnType {
	switch c.Type {
	case JSON:
		return store.JSON
	case Bool:
		return store.Boolean
	case Timestamp:
		return store.Instant
	}
	return store.Plain
}

// Rows returns rows in the order of the hashes of their keys.
func (s *Shared) Rows(ctx context.Context, name, after string, limit int) (rows []json.RawMessage, next string, err error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return nil, "", err
	}
	for {
		page, err := s.Stored.Read(ctx, RowQuery{Table: t.name, Stable: true, Position: after, Limit: limit})
		if err != nil {
			return nil, "", err
		}
		for _, row := range page.Rows {
			if !row.Gone {
				rows = append(rows, row.Body)
			}
		}
		switch after = page.Next; {
		case !page.More:
			return rows, "", nil
		case len(rows) > 0:
			return rows, after, nil
		}
	}
}
