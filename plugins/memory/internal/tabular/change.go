package tabular

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// condition is a WHERE clause and its arguments.
type condition struct {
	clauses []string
	args    []any
	keys    int64 // the number of keys, if there are no other conditions
}

func (c *condition) add(clause string, args ...any) {
	c.clauses = append(c.clauses, clause)
	c.args = append(c.args, args...)
}

// condition converts a row selection to SQL.
func (t *table) condition(dialect store.Dialect, which store.RowSelection) (c condition, err error) {
	if which.Keys == nil && len(which.Where) == 0 {
		if !which.All {
			return c, tea.Errorf(tea.ValidationError, "table %q: select rows with keys or where, or all rows with all: true", t.entry.Name)
		}
		return c, nil
	}
	if which.All {
		return c, tea.Errorf(tea.ValidationError, "all: true cannot be combined with keys or where")
	}
	given := which.Keys != nil
	if !given {
		which = t.keyed(which)
	}
	if which.Keys != nil {
		list, n, err := t.keyList(which.Keys)
		if err != nil {
			return c, err
		}
		if given && len(which.Where) == 0 {
			c.keys = n
		}
		c.add(within(dialect), list)
	}
	for _, name := range slices.Sorted(maps.Keys(which.Where)) {
		at, err := t.column(name)
		if err != nil {
			return c, err
		}
		if err := c.compare(dialect, t.columns[at], which.Where[name]); err != nil {
			return c, err
		}
	}
	return c, nil
}

// keyed moves the primary key from Where to Keys if Where has all of its columns.
func (t *table) keyed(which store.RowSelection) store.RowSelection {
	if len(t.key) == 0 {
		return which
	}
	parts := make([]json.RawMessage, len(t.key))
	rest := maps.Clone(which.Where)
	for i, c := range t.keyColumns() {
		raw := bytes.TrimSpace(which.Where[c.Name])
		if len(raw) == 0 || raw[0] == '[' || string(raw) == "null" {
			return which
		}
		parts[i] = raw
		delete(rest, c.Name)
	}
	key, err := json.Marshal(parts)
	if err != nil {
		return which
	}
	return store.RowSelection{Keys: []json.RawMessage{key}, Where: rest}
}

// keyList returns a JSON array of the keys in the form of the log, and the number
// of distinct keys.
func (t *table) keyList(keys []json.RawMessage) (list string, n int64, err error) {
	if len(t.key) == 0 {
		return "", 0, tea.Errorf(tea.ValidationError, "table %q has no primary key: select rows with where", t.entry.Name)
	}
	texts := make([]string, len(keys))
	different := map[string]bool{}
	for i, raw := range keys {
		if texts[i], err = t.readKey(bytes.TrimSpace(raw)); err != nil {
			return "", 0, in(fmt.Sprintf("key %d", i), err)
		}
		different[texts[i]] = true
	}
	text, err := json.Marshal(texts)
	return string(text), int64(len(different)), err
}

func (t *table) readKey(raw json.RawMessage) (string, error) {
	values, err := t.keyValues(raw)
	if err != nil {
		return "", err
	}
	return keyOf(t.keyColumns(), values)
}

// keyValues reads the values of a key.
func (t *table) keyValues(raw json.RawMessage) ([]any, error) {
	columns := t.keyColumns()
	var parts []json.RawMessage
	switch {
	case bytes.HasPrefix(raw, []byte("[")):
		if err := json.Unmarshal(raw, &parts); err != nil {
			return nil, err
		}
	case bytes.HasPrefix(raw, []byte("{")):
		var row store.TableRow
		if err := json.Unmarshal(raw, &row); err != nil {
			return nil, err
		}
		for _, c := range columns {
			parts = append(parts, row[c.Name])
			delete(row, c.Name)
		}
		for name := range row {
			return nil, tea.Errorf(tea.ValidationError, "%q is not a column of the primary key (%s)", name, strings.Join(t.entry.PrimaryKey, ", "))
		}
	default:
		parts = []json.RawMessage{raw}
	}
	if len(parts) != len(columns) {
		return nil, tea.Errorf(tea.ValidationError, "the primary key has %d columns (%s), not %d", len(columns), strings.Join(t.entry.PrimaryKey, ", "), len(parts))
	}
	values := make([]any, len(parts))
	for i, c := range columns {
		var err error
		if values[i], err = c.parse(parts[i]); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// compare adds the condition that a column has a value, or any of a list.
func (c *condition) compare(dialect store.Dialect, column Column, raw json.RawMessage) error {
	if column.Type == JSON {
		return tea.Errorf(tea.ValidationError, "column %q has the type json, which where cannot compare", column.Name)
	}
	wanted := []json.RawMessage{raw}
	if trimmed := bytes.TrimSpace(raw); bytes.HasPrefix(trimmed, []byte("[")) {
		if err := json.Unmarshal(trimmed, &wanted); err != nil {
			return tea.Errorf(tea.ValidationError, "column %q: %w", column.Name, err)
		}
	}
	either := []string{"1 = 0"} // matches nothing, for an empty list
	column.Nullable = true      // where accepts null for any column
	var args []any
	for _, one := range wanted {
		v, err := column.parse(one)
		switch {
		case err != nil:
			return err
		case v == nil:
			either = append(either, column.value(dialect)+" IS NULL")
		default:
			either = append(either, column.value(dialect)+" = "+column.parameter(dialect))
			args = append(args, column.bound(dialect, v))
		}
	}
	c.add("("+strings.Join(either, " OR ")+")", args...)
	return nil
}

// Update sets columns of the selected rows, atomically. The primary key cannot
// change.
func (s *Tables) Update(ctx context.Context, name string, which store.RowSelection, set store.TableRow, call store.TableCall) (store.TableResult, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return store.TableResult{}, err
	}
	given, err := t.settings(set)
	if err != nil {
		return store.TableResult{}, err
	}
	values := make([]string, len(t.columns))
	var args []any
	for i, c := range t.columns {
		if v, there := given[i]; there {
			values[i] = c.parameter(s.dialect())
			args = append(args, c.bound(s.dialect(), v))
		} else {
			values[i] = quote(c.Name)
		}
	}
	return s.change(ctx, t, which, call, change{updated, values, args})
}

// settings returns the new values of columns, by their positions.
func (t *table) settings(set store.TableRow) (map[int]any, error) {
	if len(set) == 0 {
		return nil, tea.Errorf(tea.ValidationError, "table %q: set has no columns", t.entry.Name)
	}
	values := make(map[int]any, len(set))
	for i, c := range t.columns {
		raw, there := set[c.Name]
		if !there {
			continue
		}
		if slices.Contains(t.key, i) {
			return nil, tea.Errorf(tea.ValidationError, "column %q is part of the primary key, which cannot change: delete the row and insert a new one", c.Name)
		}
		v, err := c.parse(raw)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if _, err := t.column(name); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// Delete removes the selected rows, atomically.
func (s *Tables) Delete(ctx context.Context, name string, which store.RowSelection, call store.TableCall) (store.TableResult, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return store.TableResult{}, err
	}
	values := make([]string, len(t.columns))
	for i, c := range t.columns {
		values[i] = "NULL"
		if slices.Contains(t.key, i) {
			values[i] = quote(c.Name)
		}
	}
	return s.change(ctx, t, which, call, change{deleted, values, nil})
}

type change struct {
	op     string
	values []string
	args   []any
}

// change appends to the log a row with the operation and the new values for each
// selected row.
func (s *Tables) change(ctx context.Context, t *table, which store.RowSelection, call store.TableCall, x change) (store.TableResult, error) {
	c, err := t.condition(s.dialect(), which)
	if err != nil {
		return store.TableResult{}, err
	}
	where := ""
	if len(c.clauses) > 0 {
		where = " WHERE " + strings.Join(c.clauses, " AND ")
	}
	insert := "INSERT INTO " + t.log() + " (" + t.allColumns() + ") SELECT CAST(? AS BIGINT) + row_number() OVER (ORDER BY _tea_seq), '" + x.op + "', _tea_key, " + strings.Join(x.values, ", ") + " FROM " + t.live() + where
	return s.write(ctx, t, call, func(ctx context.Context, w *writing) error {
		bound := append([]any{t.take(0)}, x.args...)
		n, err := w.tx.Exec(ctx, insert, append(bound, c.args...)...)
		w.result.Missing = max(0, c.keys-n)
		if err != nil || n == 0 {
			return err
		}
		if x.op == updated {
			w.result.Updated = n
		} else {
			w.result.Deleted = n
		}
		return w.settle(ctx, t.take(n), n, -1)
	})
}
