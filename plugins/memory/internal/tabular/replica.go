package tabular

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// record returns a row as a record. Its body is the same for all stores.
func (t *table) record(row json.RawMessage, seq int64) (store.Record, error) {
	r, _, err := t.readRow(row)
	if err != nil {
		return store.Record{}, err
	}
	body, err := t.canonical(r)
	if err != nil {
		return store.Record{}, err
	}
	hash, err := store.DocumentHash(body.Body)
	return store.Record{RecordName: t.rowName(r.key), Seq: seq, Body: body.Body, Hash: hash}, err
}

// canonical returns a row without nulls.
func (t *table) canonical(r *newRow) (RowWrite, error) {
	values := map[int]any{}
	for at, v := range r.values {
		if v != nil {
			values[at] = v
		}
	}
	return t.body(r.key, values)
}

func (t *table) readRow(row json.RawMessage) (*newRow, int, error) {
	var members store.TableRow
	if err := json.Unmarshal(row, &members); err != nil {
		return nil, 0, tea.Errorf(tea.ValidationError, "a row of table %s is not an object: %w", t.entry.Name, err)
	}
	return t.checkRow(members)
}

func (t *table) rowName(key string) store.RecordName {
	return store.RecordName{Feed: store.RowFeed, Space: t.name, Key: key}
}

// inOrder returns the records with the keys; missing records are Deleted.
func (t *table) inOrder(keys []string, byKey map[string]store.Record) []store.Record {
	all := make([]store.Record, len(keys))
	for i, key := range keys {
		if record, there := byKey[key]; there {
			all[i] = record
		} else {
			all[i].Deleted = true
		}
		all[i].RecordName = t.rowName(key)
	}
	return all
}

type rowWrite struct {
	*newRow
	size int
}

// checkWrites returns the writes that the table can store. results gets the
// errors of the others.
func (t *table) checkWrites(writes []store.RecordWrite, results []store.PutResult) []rowWrite {
	checked := make([]rowWrite, len(writes))
	for i, w := range writes {
		var r *newRow
		var size int
		var err error
		if w.Deleted {
			r, err = t.deletion(w.Key)
		} else if r, size, err = t.readRow(w.Body); err == nil && r.key != w.Key {
			err = tea.Errorf(tea.ValidationError, "the row has the key %s", r.key)
		}
		if err != nil {
			results[i].Err = err
			continue
		}
		r.at = i
		checked[i] = rowWrite{r, size}
	}
	return slices.DeleteFunc(checked, func(w rowWrite) bool { return w.newRow == nil })
}

func (t *table) deletion(key string) (*newRow, error) {
	parts, err := t.keyValues(json.RawMessage(key))
	if err != nil {
		return nil, err
	}
	r := &newRow{op: deleted, values: make([]any, len(t.columns))}
	for part, at := range t.key {
		r.values[at] = parts[part]
	}
	r.key, err = keyOf(t.keyColumns(), parts)
	return r, err
}

// Versions returns the number of the last change of each table.
func (s *Tables) Versions(ctx context.Context) (map[string]int64, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	tables := maps.Clone(s.byName)
	s.mu.Unlock()
	versions := make(map[string]int64, len(tables))
	for name, t := range tables {
		t.mu.Lock()
		versions[name] = t.done
		t.mu.Unlock()
	}
	return versions, nil
}

// CountRows returns the number of a table's rows.
func (s *Tables) CountRows(ctx context.Context, name string) (int64, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return 0, err
	}
	defer s.readers.begin()()
	return store.Int(s.o.Engine.Query(ctx, "SELECT count(*) FROM "+t.live()))
}

// ChangedRows returns the rows that changed after a number, in the order of their
// changes, without deletions.
func (s *Tables) ChangedRows(ctx context.Context, name string, after int64, limit int) (store.ChangePage, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return store.ChangePage{}, err
	}
	found, err := s.keyed(ctx, t, "_tea_seq > ? ORDER BY _tea_seq", limit, after)
	page := store.ChangePage{Last: after, More: found.Truncated}
	for _, row := range found.Rows {
		record, err := t.keyedRecord(row)
		if err != nil {
			return page, err
		}
		page.Records, page.Last = append(page.Records, record), record.Seq
	}
	return page, err
}

// keyedRecord returns a row of keyed as a record.
func (t *table) keyedRecord(row []any) (store.Record, error) {
	raw, err := t.object(row)
	if err != nil {
		return store.Record{}, err
	}
	seq, _ := row[1].(int64)
	return t.record(raw, seq)
}

// RowRecords returns the rows with these keys, in their order.
func (s *Tables) RowRecords(ctx context.Context, name string, keys ...string) ([]store.Record, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	byKey := map[string]store.Record{}
	for rest := keys; len(rest) > 0; {
		in, args := store.InList(rest)
		found, err := s.keyed(ctx, t, "_tea_key IN "+in, len(rest), args...)
		if err != nil {
			return nil, err
		}
		for _, row := range found.Rows {
			key, _ := row[0].(string)
			if byKey[key], err = t.keyedRecord(row); err != nil {
				return nil, err
			}
		}
		if !found.Truncated {
			break
		}
		rest = slices.DeleteFunc(slices.Clone(rest), func(key string) bool { _, there := byKey[key]; return there })
	}
	return t.inOrder(keys, byKey), nil
}

// PutRows writes and deletes rows. A row is written if its number is the If of
// the write.
func (s *Tables) PutRows(ctx context.Context, name string, writes ...store.RecordWrite) ([]store.PutResult, error) {
	return s.PutRowsWith(ctx, name, writes, nil)
}

// PutRowsWith is PutRows, and calls also in the transaction, possibly more than
// once.
func (s *Tables) PutRowsWith(ctx context.Context, name string, writes []store.RecordWrite, also func(context.Context, store.Tx, []store.PutResult) error) ([]store.PutResult, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	results := make([]store.PutResult, len(writes))
	checked := t.checkWrites(writes, results)
	_, err = s.write(ctx, t, store.TableCall{}, func(ctx context.Context, w *writing) error {
		if err := w.putRows(ctx, checked, writes, results); err != nil || also == nil {
			return err
		}
		return also(ctx, w.tx, results)
	})
	return results, err
}

// putRows writes the rows whose conditions are met.
func (w *writing) putRows(ctx context.Context, checked []rowWrite, writes []store.RecordWrite, results []store.PutResult) error {
	keys := make([]string, len(checked))
	for i, c := range checked {
		keys[i] = c.key
	}
	have, err := w.numbers(ctx, keys)
	if err != nil {
		return err
	}
	var rows []*newRow
	size := 0
	for _, c := range checked {
		seq := have[c.key]
		results[c.at] = store.PutResult{Seq: seq}
		if want := writes[c.at].If; want != store.AnySeq && want != seq {
			results[c.at].Conflict = true
			continue
		}
		r := *c.newRow // the transaction can run again
		switch {
		case r.op == deleted && seq == 0:
			continue
		case r.op == deleted:
			w.result.Deleted++
		case seq == 0:
			w.result.Inserted++
		default:
			r.op = updated
			w.result.Updated++
		}
		rows, size = append(rows, &r), size+c.size
	}
	if len(rows) == 0 {
		return nil
	}
	n := int64(len(rows))
	before := w.t.take(n)
	for i, r := range rows {
		if results[r.at].Seq = before + int64(i) + 1; r.op == deleted {
			results[r.at].Seq = 0
		}
	}
	if err := w.append(ctx, before, rows); err != nil {
		return err
	}
	return w.settle(ctx, before, n, size)
}

// numbers returns the numbers of the rows with keys.
func (w *writing) numbers(ctx context.Context, keys []string) (map[string]int64, error) {
	list, err := json.Marshal(keys)
	if err != nil {
		return nil, err
	}
	numbers := map[string]int64{}
	var key string
	var seq int64
	found, err := w.tx.Query(ctx, "SELECT _tea_key, _tea_seq FROM "+w.t.live()+" WHERE "+within(w.s.dialect()), string(list))
	err = store.Scan(found, err, func() { numbers[key] = seq }, &key, &seq)
	return numbers, err
}

// Versions returns the number of the last change of each table.
func (s *Shared) Versions(ctx context.Context) (map[string]int64, error) {
	states, err := s.Stored.States(ctx)
	versions := make(map[string]int64, len(states))
	for name, state := range states {
		versions[name] = state.Version
	}
	return versions, err
}

// CountRows returns the number of a table's rows.
func (s *Shared) CountRows(ctx context.Context, name string) (int64, error) {
	rows, _, err := s.Stored.Count(ctx, strings.ToLower(name))
	return rows, err
}

// ChangedRows returns the rows that changed after a number, without deletions.
func (s *Shared) ChangedRows(ctx context.Context, name string, after int64, limit int) (store.ChangePage, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return store.ChangePage{}, err
	}
	page := store.ChangePage{Last: after, More: true}
	for page.More && len(page.Records) == 0 {
		read, err := s.Stored.Read(ctx, RowQuery{Table: t.name, After: page.Last, Limit: limit})
		if err != nil {
			return page, err
		}
		page.More = read.More
		for _, row := range read.Rows {
			if page.Last = row.Seq; row.Gone {
				continue
			}
			record, err := t.record(row.Body, row.Seq)
			if err != nil {
				return page, err
			}
			page.Records = append(page.Records, record)
		}
	}
	return page, nil
}

// RowRecords returns the rows with these keys, in their order.
func (s *Shared) RowRecords(ctx context.Context, name string, keys ...string) ([]store.Record, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	rows, err := s.Stored.Find(ctx, t.name, keys)
	if err != nil {
		return nil, err
	}
	byKey := make(map[string]store.Record, len(rows))
	for _, row := range rows {
		record, err := t.record(row.Body, row.Seq)
		if err != nil {
			return nil, err
		}
		byKey[record.Key] = record
	}
	return t.inOrder(keys, byKey), nil
}

// PutRows writes and deletes rows. A row is written if its number is the If of
// the write.
func (s *Shared) PutRows(ctx context.Context, name string, writes ...store.RecordWrite) ([]store.PutResult, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	results := make([]store.PutResult, len(writes))
	c := &RowChange{Table: t.name}
	for _, checked := range t.checkWrites(writes, results) {
		w := RowWrite{Key: checked.key}
		if checked.op != deleted {
			if w, err = t.canonical(checked.newRow); err != nil {
				return nil, err
			}
		}
		if w.At, w.If, w.Deleted = checked.at, writes[checked.at].If, checked.op == deleted; hasNUL(w.Body) {
			results[w.At].Err = tea.Errorf(tea.ValidationError, "the database cannot store the character U+0000")
			continue
		}
		c.Writes = append(c.Writes, w)
	}
	if len(c.Writes) == 0 {
		return results, nil
	}
	_, err = s.Stored.Change(ctx, c)
	for _, w := range c.Writes {
		results[w.At] = store.PutResult{Seq: w.Seq, Conflict: !c.Met(&w)}
	}
	return results, err
}
