package tabular

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// edit has the new values for some columns of one row.
type edit struct {
	key    string
	values map[int]any // by the position of the column
}

// UpdateRows sets the given columns of the rows with the same primary keys,
// atomically. Rows that do not exist are counted as missing.
func (s *Tables) UpdateRows(ctx context.Context, name string, rows []store.TableRow, call store.TableCall) (store.TableResult, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return store.TableResult{}, err
	}
	edits, err := t.edits(rows)
	if err != nil || len(edits) == 0 {
		return store.TableResult{}, err
	}
	return s.write(ctx, t, call, func(ctx context.Context, w *writing) error { return w.edit(ctx, edits) })
}

// edits checks rows with the new values of some columns.
func (t *table) edits(rows []store.TableRow) (edits []edit, err error) {
	if len(t.key) == 0 {
		return nil, tea.Errorf(tea.ValidationError, "table %q has no primary key to find rows by: use set with where", t.entry.Name)
	}
	edits = make([]edit, len(rows))
	first := map[string]int{}
	for i, row := range rows {
		if edits[i], err = t.editOf(row); err != nil {
			return nil, in(fmt.Sprintf("row %d", i), err)
		}
		if before, twice := first[edits[i].key]; twice {
			return nil, tea.Errorf(tea.ValidationError, "row %d: the key %s appears in row %d too", i, edits[i].key, before)
		}
		first[edits[i].key] = i
	}
	return edits, nil
}

func (t *table) editOf(row store.TableRow) (e edit, err error) {
	e.values = make(map[int]any, len(row))
	key := make([]any, len(t.key))
	for _, name := range slices.Sorted(maps.Keys(row)) {
		at, err := t.column(name)
		if err != nil {
			return e, err
		}
		v, err := t.columns[at].parse(row[name])
		if err != nil {
			return e, err
		}
		if part := slices.Index(t.key, at); part >= 0 {
			key[part] = v
		} else {
			e.values[at] = v
		}
	}
	for i, c := range t.keyColumns() {
		if key[i] == nil {
			return e, tea.Errorf(tea.ValidationError, "column %q of the primary key is missing: it selects the row", c.Name)
		}
	}
	if len(e.values) == 0 {
		return e, tea.Errorf(tea.ValidationError, "there is no column to change besides the primary key")
	}
	e.key, err = keyOf(t.keyColumns(), key)
	return e, err
}

// edit writes the changed rows in the transaction.
func (w *writing) edit(ctx context.Context, edits []edit) error {
	have, err := w.current(ctx, edits)
	if err != nil {
		return err
	}
	var rows []*newRow
	for _, e := range edits {
		values := have[e.key]
		if values == nil {
			w.result.Missing++
			continue
		}
		for at, v := range e.values {
			values[at] = v
		}
		rows = append(rows, &newRow{op: updated, key: e.key, values: values})
	}
	if len(rows) == 0 {
		return nil
	}
	n := int64(len(rows))
	w.result.Updated = n
	before := w.t.take(n)
	if err := w.append(ctx, before, rows); err != nil {
		return err
	}
	return w.settle(ctx, before, n, -1)
}

// current returns the values of the rows to change, by their keys.
func (w *writing) current(ctx context.Context, edits []edit) (map[string][]any, error) {
	keys := make([]string, len(edits))
	for i, e := range edits {
		keys[i] = e.key
	}
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	columns := make([]string, len(w.t.columns))
	for i, c := range w.t.columns {
		if columns[i] = quote(c.Name); c.Type.isDecimal() && w.s.dialect() == store.DuckDB {
			columns[i] = "CAST(" + columns[i] + " AS VARCHAR)" // the driver's type cannot be written back
		}
	}
	have := make(map[string][]any, len(edits))
	var key string
	values := make([]any, len(w.t.columns))
	into := []any{&key}
	for i := range values {
		into = append(into, &values[i])
	}
	found, err := w.tx.Query(ctx, "SELECT _tea_key, "+strings.Join(columns, ", ")+" FROM "+w.t.live()+" WHERE "+within(w.s.dialect()), string(list))
	err = store.Scan(found, err, func() {
		for i, c := range w.t.columns {
			if number, ok := values[i].(string); ok && c.Type.isDecimal() {
				digits, scale, _ := c.Type.decimal()
				values[i], _ = parseDecimal(json.RawMessage(number), digits, scale) // it is valid
			}
		}
		have[key] = slices.Clone(values)
	}, into...)
	return have, err
}
