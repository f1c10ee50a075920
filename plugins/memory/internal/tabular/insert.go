package tabular

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// The operations of a row.
const (
	inserted = "I"
	updated  = "U"
	deleted  = "D"
)

// newRow is a row to be written.
type newRow struct {
	op, key string
	values  []any
	at      int // its position in the parameters
}

// Insert adds rows, atomically.
func (s *Tables) Insert(ctx context.Context, name string, rows []store.TableRow, conflict store.RowConflict, call store.TableCall) (store.TableResult, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return store.TableResult{}, err
	}
	checked, size, err := t.check(rows, conflict)
	if err != nil {
		return store.TableResult{}, err
	}
	return s.write(ctx, t, call, func(ctx context.Context, w *writing) error { return w.insert(ctx, checked, size, conflict) })
}

// check converts rows to values. conflict decides which of two rows with the same
// key is kept.
func (t *table) check(rows []store.TableRow, conflict store.RowConflict) (checked []*newRow, size int, err error) {
	at := map[string]int{}
	for i, row := range rows {
		r, bytes, err := t.checkRow(row)
		if err != nil {
			return nil, 0, in(fmt.Sprintf("row %d", i), err)
		}
		r.at = i
		size += bytes
		first, twice := at[r.key]
		switch {
		case len(t.key) == 0 || !twice:
			at[r.key] = len(checked)
			checked = append(checked, r)
		case conflict == store.RowReplace:
			checked[first] = r
		case conflict == store.RowIgnore:
		default:
			return nil, 0, tea.Errorf(tea.ValidationError, "row %d: the key %s appears in an earlier row too; set on_conflict to replace or ignore to allow that", i, r.key)
		}
	}
	return checked, size, nil
}

func (t *table) checkRow(row store.TableRow) (*newRow, int, error) {
	size, used := 0, 0
	r := &newRow{op: inserted, values: make([]any, len(t.columns))}
	for i, c := range t.columns {
		raw, there := row[c.Name]
		if there {
			used++
			size += len(raw) + len(c.Name)
		}
		var err error
		if r.values[i], err = c.parse(raw); err != nil {
			return nil, 0, err
		}
	}
	if used < len(row) {
		for _, name := range slices.Sorted(maps.Keys(row)) {
			if _, err := t.column(name); err != nil {
				return nil, 0, err
			}
		}
	}
	if len(t.key) == 0 {
		return r, size, nil
	}
	var err error
	r.key, err = t.keyOfRow(r.values)
	return r, size, err
}

func (t *table) keyOfRow(values []any) (string, error) {
	parts := make([]any, len(t.key))
	for i, at := range t.key {
		parts[i] = values[at]
	}
	return keyOf(t.keyColumns(), parts)
}

func (w *writing) insert(ctx context.Context, rows []*newRow, size int, conflict store.RowConflict) error {
	t := w.t
	var there map[string]int64
	if len(t.key) > 0 {
		keys := make([]string, len(rows))
		for i, r := range rows {
			keys[i] = r.key
		}
		var err error
		if there, err = w.numbers(ctx, keys); err != nil {
			return err
		}
	}
	chosen := make([]*newRow, 0, len(rows))
	for _, r := range rows {
		_, found := there[r.key]
		n := *r // the transaction can run again
		switch {
		case !found:
			w.result.Inserted++
		case conflict == store.RowReplace:
			n.op = updated
			w.result.Updated++
		case conflict == store.RowIgnore:
			w.result.Ignored++
			continue
		default:
			return t.exists(r)
		}
		chosen = append(chosen, &n)
	}
	if len(chosen) == 0 {
		return nil
	}
	before := t.take(int64(len(chosen)))
	if err := w.append(ctx, before, chosen); err != nil {
		return err
	}
	return w.settle(ctx, before, int64(len(chosen)), size)
}

func (t *table) exists(r *newRow) error {
	return tea.Errorf(tea.ValidationError, "row %d: table %q already has a row with the key %s; set on_conflict to replace or ignore to allow that", r.at, t.entry.Name, r.key)
}

func (w *writing) append(ctx context.Context, before int64, rows []*newRow) error {
	dialect := w.s.dialect()
	all := make([][]any, len(rows))
	for i, r := range rows {
		seq := before + int64(i) + 1
		if len(w.t.key) == 0 && r.key == "" {
			r.key = strconv.FormatInt(seq, 10) // unique
		}
		values := append(make([]any, 0, len(r.values)+3), seq, r.op, r.key)
		for j, c := range w.t.columns {
			values = append(values, c.stored(dialect, r.values[j]))
		}
		all[i] = values
	}
	return w.tx.Append(ctx, w.t.log(), all...)
}

// writing is a change of one table in its transaction.
type writing struct {
	s      *Tables
	t      *table
	tx     store.Tx
	result store.TableResult
	// file is the path of the written Parquet file, "" for none.
	file string
}

// write runs a change in a transaction, unless the call has already been done.
func (s *Tables) write(ctx context.Context, t *table, call store.TableCall, change func(context.Context, *writing) error) (store.TableResult, error) {
	before, err := s.done(ctx, call)
	if err != nil || before.same {
		return before.Result, err
	}
	w := &writing{}
	var unused []string // files of attempts that were rolled back
	err = s.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		if w.file != "" {
			unused = append(unused, w.file)
		}
		w = &writing{s: s, t: t, tx: tx}
		err := change(ctx, w)
		if err == nil {
			w.result.Version = t.take(0)
			err = w.remember(ctx, call, before)
		}
		if err != nil && w.file != "" {
			unused, w.file = append(unused, w.file), ""
		}
		return err
	})
	// After a failed commit, the last file may or may not be in the catalog; the
	// sweep at the next start decides.
	if len(unused) > 0 {
		s.readers.retire(unused...)
	}
	if err != nil {
		if after, gone := s.done(ctx, call); gone == nil && after.same {
			return after.Result, nil // by a concurrent call
		}
		return store.TableResult{}, err
	}
	s.consolidateIfLarge(ctx, t)
	if s.countCall(call) {
		if err := s.forget(ctx); err != nil && !errors.Is(err, context.Canceled) {
			s.o.Logger.Warn("remove old calls", "error", err)
		}
	}
	return w.result, nil
}
