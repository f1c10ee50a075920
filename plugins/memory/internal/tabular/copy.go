package tabular

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// copied is the number of rows of a copy that are written together.
const copied = 500

// MergeCopy applies the changes made in a copy of the tables since it was taken. mark returns the number of a table's
// last change at that time, by the name of its log. id identifies the copy. A row that changed in both is not merged,
// and is counted in kept. Merging is idempotent, even if the copy has rows of an earlier merge. Both are SQLite
// databases.
func (s *Tables) MergeCopy(ctx context.Context, from *Tables, id string, mark func(log string) int64) (merged, kept int64, err error) {
	names, _, err := from.readable(ctx, nil)
	if err != nil {
		return 0, 0, err
	}
	for _, name := range names {
		old, err := from.find(ctx, name)
		if err != nil {
			return merged, kept, err
		}
		m := &merging{to: s, from: from, old: old, id: id}
		if m.t, err = s.home(ctx, old); err != nil {
			return merged, kept, err
		}
		if m.t.name == old.name {
			m.mark = mark(old.log())
		}
		if err = m.changed(ctx); err == nil {
			err = m.removed(ctx)
		}
		if merged, kept = merged+m.merged, kept+m.kept; err != nil {
			return merged, kept, err
		}
	}
	return merged, kept, nil
}

// maxHomes bounds the names that are tried for a table of a copy.
const maxHomes = 100

// maxTableName is the maximum length of a name; see identifier.
const maxTableName = 63

// home returns the table for the rows of a copy's table: the table with the same
// name or, if that has another definition, NAME_2 and so on.
func (s *Tables) home(ctx context.Context, old *table) (*table, error) {
	for n := 1; ; n++ {
		name := old.entry.Name
		if n > 1 {
			name = name[:min(len(name), maxTableName-4)] + "_" + strconv.Itoa(n)
		}
		_, err := s.Create(ctx, store.NewTable{Name: name, Schema: old.entry.Schema, PrimaryKey: old.entry.PrimaryKey, Description: old.entry.Description})
		switch typed := tea.AsError(err); {
		case err == nil && n > 1:
			s.o.Logger.Warn("another device has created the table with a different definition; the rows of this device are in a separate table", "table", old.entry.Name, "rows", name)
			fallthrough
		case err == nil:
			return s.find(ctx, name)
		case typed.Type != tea.ValidationError || n == maxHomes:
			return nil, err
		}
	}
}

// merging is the merge of one table.
type merging struct {
	to, from     *Tables
	t, old       *table
	id           string
	mark         int64
	merged, kept int64
}

// changed writes the rows that were inserted or updated in the copy.
func (m *merging) changed(ctx context.Context) error {
	for after := m.mark; ; {
		rows, last, err := m.page(ctx, after)
		if err != nil || len(rows) == 0 {
			return err
		}
		after = last
		err = m.write(ctx, func(ctx context.Context, w *writing) (write []*newRow, kept int64, err error) {
			here, err := m.numbers(ctx, w.tx, rows)
			if err != nil {
				return nil, 0, err
			}
			for _, r := range rows {
				n := *r
				switch at, there := here[r.key]; {
				case there && at > m.mark:
					if len(m.t.key) > 0 || !strings.Contains(r.key, "/") { // otherwise it is from an earlier merge
						kept++
					}
					continue
				case there:
					n.op = updated
				}
				write = append(write, &n)
			}
			return write, kept, nil
		})
		if err != nil {
			return err
		}
	}
}

// added reports whether a key belongs to a new row of a table without a primary
// key, where keys are numbers of changes.
func (m *merging) added(key string) bool {
	if len(m.t.key) > 0 {
		return false
	}
	n, err := strconv.ParseInt(key, 10, 64)
	return err == nil && n > m.mark
}

// page reads changed rows of the copy.
func (m *merging) page(ctx context.Context, after int64) (rows []*newRow, last int64, err error) {
	columns := make([]string, len(m.t.columns))
	for i, c := range m.t.columns { // the order of the columns may differ
		columns[i] = quote(c.Name)
	}
	values := make([]any, len(columns))
	var key string
	into := []any{&last, &key}
	for i := range values {
		into = append(into, &values[i])
	}
	found, err := m.from.o.Engine.Query(ctx, "SELECT _tea_seq, _tea_key, "+m.t.userColumns()+" FROM "+m.old.live()+" WHERE _tea_seq > ? ORDER BY _tea_seq LIMIT "+strconv.Itoa(copied), after)
	err = store.Scan(found, err, func() {
		if m.added(key) { // the number may belong to another row here
			key = m.id + "/" + key
		}
		rows = append(rows, &newRow{op: inserted, key: key, values: slices.Clone(values)})
	}, into...)
	return rows, last, err
}

func (m *merging) numbers(ctx context.Context, tx store.Tx, rows []*newRow) (map[string]int64, error) {
	list, err := keysOf(rows)
	if err != nil {
		return nil, err
	}
	numbers := map[string]int64{}
	var key string
	var n int64
	found, err := tx.Query(ctx, "SELECT _tea_key, max(_tea_seq) FROM "+m.t.log()+" WHERE "+within(store.SQLite)+" GROUP BY _tea_key", list)
	err = store.Scan(found, err, func() { numbers[key] = n }, &key, &n)
	return numbers, err
}

func keysOf(rows []*newRow) (string, error) {
	keys := make([]string, len(rows))
	for i, r := range rows {
		keys[i] = r.key
	}
	list, err := json.Marshal(keys)
	return string(list), err
}

// removed deletes the rows that are unchanged since the mark and missing in the
// copy.
func (m *merging) removed(ctx context.Context) error {
	for after := int64(0); ; {
		var rows []*newRow
		var key string
		found, err := m.to.o.Engine.Query(ctx, "SELECT _tea_seq, _tea_key FROM "+m.t.live()+" WHERE _tea_seq > ? AND _tea_seq <= ? ORDER BY _tea_seq LIMIT "+strconv.Itoa(copied), after, m.mark)
		err = store.Scan(found, err, func() { rows = append(rows, &newRow{op: deleted, key: key, values: make([]any, len(m.t.columns))}) }, &after, &key)
		if err != nil || len(rows) == 0 {
			return err
		}
		list, err := keysOf(rows)
		if err != nil {
			return err
		}
		there := map[string]bool{}
		found, err = m.from.o.Engine.Query(ctx, "SELECT _tea_key FROM "+m.old.live()+" WHERE "+within(store.SQLite), list)
		if err := store.Scan(found, err, func() { there[key] = true }, &key); err != nil {
			return err
		}
		gone := slices.DeleteFunc(rows, func(r *newRow) bool { return there[r.key] })
		if len(gone) == 0 {
			continue
		}
		err = m.write(ctx, func(context.Context, *writing) ([]*newRow, int64, error) { return gone, 0, nil })
		if err != nil {
			return err
		}
	}
}

// write writes the rows that choose returns.
func (m *merging) write(ctx context.Context, choose func(context.Context, *writing) (write []*newRow, kept int64, err error)) error {
	var rows []*newRow
	var kept int64
	_, err := m.to.write(ctx, m.t, store.TableCall{}, func(ctx context.Context, w *writing) (err error) {
		if rows, kept, err = choose(ctx, w); err != nil || len(rows) == 0 {
			return err
		}
		for _, r := range rows {
			switch r.op {
			case updated:
				w.result.Updated++
			case deleted:
				w.result.Deleted++
			}
		}
		before := m.t.take(int64(len(rows)))
		if err := w.append(ctx, before, rows); err != nil {
			return err
		}
		return w.settle(ctx, before, int64(len(rows)), -1)
	})
	if err == nil {
		m.merged, m.kept = m.merged+int64(len(rows)), m.kept+kept
	}
	return err
}
