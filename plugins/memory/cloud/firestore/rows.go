package firestore

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/cloud/internal/rowmirror"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// rowStore stores the rows of data.*. A table is a document in ducklake_inlined with the number of its last change, and
// has its rows in the collection rows below it. A removed row remains for a while, with the operation D. Conditions of
// a workflow are evaluated on a copy of the table. It is safe for concurrent use.
type rowStore struct {
	d      *db
	mirror *rowmirror.Mirror
}

var _ tabular.RowStore = rowStore{}

const (
	inlinedName = "ducklake_inlined"
	rowsName    = "rows"
	// callsName is the collection of the results of calls that can be repeated.
	callsName = "tea-calls"
	// keepCalls is how long these are kept.
	keepCalls = 30 * 24 * time.Hour
)

// The fields of a row besides its columns, and of a table.
const (
	opField      = "_op" // I, U, or D for a removed row
	numberField  = "_version"
	keyField     = "_pk"
	removedField = "removed" // changes up to this number can include forgotten removals
	goneRows     = "gone"    // the number of rows with the operation D
)

const inserted, updated, deleted = "I", "U", "D"

// keepGone bounds the rows with the operation D in a table.
const keepGone = 10_000

func (s rowStore) table(name string) string {
	if !plainName.MatchString(name) {
		name = "~" + base64.RawURLEncoding.EncodeToString([]byte(name))
	}
	return s.d.name(inlinedName, name)
}

func rowName(table, key string) string { return table + "/" + rowsName + "/" + hexOf(key) }

// tableState is the content of a table's document.
type tableState struct {
	name                         string
	born                         string
	version, removed, rows, gone int64
}

func toTableState(d document) tableState {
	f := d.Fields
	return tableState{f["name"].text(), f[bornField].text(), f["version"].int(), f[removedField].int(), f["count"].int(), f[goneRows].int()}
}

func (t tableState) write(name, updateTime string) write {
	return write{CurrentDocument: unchanged(updateTime), Update: &document{Name: name, Fields: map[string]value{
		"name": text(t.name), bornField: text(t.born), "version": integer(t.version), removedField: integer(t.removed), "count": integer(t.rows), goneRows: integer(t.gone),
	}}}
}

// rowChange is a change of a table, based on the documents that were read.
type rowChange struct {
	tableState
	document string
	found    map[string]document
	writes   []write
	result   store.TableResult
}

func (x *rowChange) body(key string) json.RawMessage {
	if d, ok := x.found[rowName(x.document, key)]; ok && d.Fields[opField].text() != deleted {
		return json.RawMessage(d.Fields[bodyField].text())
	}
	return nil
}

func (x *rowChange) exists(key string) bool { return x.body(key) != nil }

// put writes a row. Without a key, its number becomes the key.
func (x *rowChange) put(key string, body json.RawMessage) error {
	x.version++
	op := updated
	if key == "" {
		key = fmt.Sprintf("%020d", x.version)
	}
	if !x.exists(key) {
		x.rows++
		op = inserted
		if _, gone := x.found[rowName(x.document, key)]; gone {
			x.gone--
		}
	}
	all, err := toFields(body)
	if err != nil {
		return err
	}
	all[opField], all[numberField], all[keyField], all[bodyField] = text(op), integer(x.version), text(key), text(string(body))
	if err := checkSize("the row "+key, all); err != nil {
		return err
	}
	x.writes = append(x.writes, write{Update: &document{Name: rowName(x.document, key), Fields: all}})
	return nil
}

func (x *rowChange) remove(key string) {
	x.version, x.rows, x.gone = x.version+1, x.rows-1, x.gone+1
	x.writes = append(x.writes, write{Update: &document{Name: rowName(x.document, key), Fields: map[string]value{opField: text(deleted), numberField: integer(x.version), keyField: text(key)}}})
}

// rowFields are the fields of the table, its rows and the call that a change reads.
var rowFields = []string{"name", bornField, "version", removedField, "count", goneRows, opField, numberField, bodyField, "hash", "result"}

// change executes the change that fn builds, unless the call was already done. The numbers of changes are the time in
// milliseconds, or the number after the last if that is greater.
func (s rowStore) change(ctx context.Context, table string, call store.TableCall, keys []string, fn func(x *rowChange) error) (store.TableResult, error) {
	head := s.table(table)
	names := []string{head}
	for _, key := range keys {
		names = append(names, rowName(head, key))
	}
	done := ""
	if call.Key != "" {
		done = s.d.name(callsName, hexOf(call.Key))
		names = append(names, done)
	}
	now, born := s.d.now(), rand.Text()
	return change(ctx, s.d, rowFields, names, func(found map[string]document) (a attempt[store.TableResult], err error) {
		if before, ok := found[done]; ok && before.Fields["hash"].text() == call.Hash {
			return a, json.Unmarshal([]byte(before.Fields["result"].text()), &a.result)
		}
		x := &rowChange{tableState: tableState{name: table, born: born}, document: head, found: found}
		if before, ok := found[head]; ok {
			x.tableState = toTableState(before)
		}
		before := x.version
		x.version = max(before, now.UnixMilli())
		if err := fn(x); err != nil {
			return a, err
		}
		if len(x.writes) == 0 {
			x.version = before
		}
		x.result.Version = x.version
		// A change of a row also changes the document of its table.
		a.result, a.writes = x.result, x.writes
		if len(x.writes) > 0 {
			a.writes = append(a.writes, x.write(head, found[head].UpdateTime))
		}
		if done != "" {
			raw, err := json.Marshal(x.result)
			if err != nil {
				return a, err
			}
			a.writes = append(a.writes, write{CurrentDocument: unchanged(found[done].UpdateTime), Update: &document{Name: done, Fields: map[string]value{
				"hash": text(call.Hash), "result": text(string(raw)), opExpiry: timestamp(time.Now().Add(keepCalls).UnixMicro()),
			}}})
		}
		return a, nil
	})
}

// errStale reports that the copy of the table is older than the table.
var errStale = errors.New("the table has changed")

func (s rowStore) Change(ctx context.Context, c *tabular.RowChange) (result store.TableResult, err error) {
	gone := int64(0)
	if c.Where.SQL != "" {
		result, err = s.changeSelected(ctx, c, &gone)
	} else {
		var keys []string
		for _, w := range c.Writes {
			if w.Key != "" {
				keys = append(keys, w.Key)
			}
		}
		result, err = s.change(ctx, c.Table, c.Call, keys, func(x *rowChange) error {
			err := x.writeRows(c)
			gone = x.gone
			return err
		})
	}
	if err == nil && gone >= keepGone {
		if err := s.forget(ctx, c.Table); err != nil {
			s.d.logger.Warn("remove deleted rows", "table", c.Table, "error", err)
		}
	}
	return result, err
}

// writeRows adds the writes whose conditions are met.
func (x *rowChange) writeRows(c *tabular.RowChange) error {
	for i := range c.Writes {
		w := &c.Writes[i]
		w.Before = 0
		if w.Key != "" && x.exists(w.Key) {
			w.Before = x.found[rowName(x.document, w.Key)].Fields[numberField].int()
		}
	}
	if c.Refused() != nil {
		return tabular.ErrRefused
	}
	x.result = c.Count()
	for i := range c.Writes {
		w := &c.Writes[i]
		if w.Seq = w.Before; !c.Met(w) || w.Deleted && w.Before == 0 {
			continue
		}
		var err error
		switch {
		case w.Deleted:
			x.remove(w.Key)
		case c.Merge:
			err = x.set(w.Key, x.body(w.Key), w.Body)
		default:
			err = x.put(w.Key, w.Body)
		}
		if err != nil {
			return err
		}
		if w.Seq = x.version; w.Deleted {
			w.Seq = 0
		}
	}
	return nil
}

// set writes a row with some members of another body.
func (x *rowChange) set(key string, body, some json.RawMessage) error {
	var members map[string]json.RawMessage
	for _, raw := range []json.RawMessage{body, some} {
		if err := json.Unmarshal(raw, &members); err != nil {
			return fmt.Errorf("read the row %s: %w", key, err)
		}
	}
	merged, err := json.Marshal(members)
	if err != nil {
		return err
	}
	return x.put(key, merged)
}

// changeSelected changes the rows that match a condition in the copy of the table, which must be up to date. It sets
// gone, the number of rows with the operation D.
func (s rowStore) changeSelected(ctx context.Context, c *tabular.RowChange, gone *int64) (store.TableResult, error) {
	for range maxTries {
		found, version, err := s.mirror.Where(ctx, c.Table, c.Where)
		if err != nil {
			return store.TableResult{}, err
		}
		keys := make([]string, len(found))
		for i, r := range found {
			keys[i] = r.Key
		}
		result, err := s.change(ctx, c.Table, c.Call, keys, func(x *rowChange) error {
			if toTableState(x.found[x.document]).version != version {
				return errStale
			}
			x.result = c.CountSelected(int64(len(found)))
			for _, r := range found {
				if c.Set == nil {
					x.remove(r.Key)
				} else if err := x.set(r.Key, r.Body, c.Set); err != nil {
					return err
				}
			}
			*gone = x.gone
			return nil
		})
		if !errors.Is(err, errStale) {
			return result, err
		}
	}
	e := tea.Errorf(tea.ConnectionError, "other writers change the table %s all the time", c.Table)
	e.Retryable = true
	return store.TableResult{}, e
}

// forget removes the documents of deleted rows if there are many. A device that has not seen them reads the whole table
// again.
func (s rowStore) forget(ctx context.Context, table string) error {
	head := s.table(table)
	found, err := s.d.get(ctx, rowFields, head)
	if err != nil || toTableState(found[head]).gone < keepGone {
		return err
	}
	state := toTableState(found[head])
	state.removed, state.gone = state.version, 0
	if err := s.d.commit(ctx, []write{state.write(head, found[head].UpdateTime)}); err != nil {
		if conflicts(err) {
			return nil // another device was faster
		}
		return err
	}
	q := structured{From: []from{{rowsName}}, Where: equal(opField, text(deleted)), Limit: batch, Select: selected([]string{nameField})}
	for {
		p, err := s.d.query(ctx, head, q, "")
		if err != nil || len(p.documents) == 0 {
			return err
		}
		if err := s.d.remove(ctx, p.documents); err != nil {
			return err
		}
	}
}

// Read returns a page of rows. The stable order is by the names of their documents.
func (s rowStore) Read(ctx context.Context, q tabular.RowQuery) (page tabular.RowPage, err error) {
	head := s.table(q.Table)
	rows := head + "/" + rowsName + "/"
	by, after := numberField, integer(q.After)
	if q.Stable {
		last := rows + q.Position
		by, after = nameField, value{Reference: &last}
	}
	query := structured{From: []from{{rowsName}}, OrderBy: []order{{field{by}}}, Select: selected([]string{opField, numberField, keyField, bodyField}), Limit: q.Limit}
	if !q.Stable || q.Position != "" {
		query.Where = &filterOf{FieldFilter: &fieldFilter{field{by}, "GREATER_THAN", after}}
	}
	p, err := s.d.query(ctx, head, query, "")
	for _, d := range p.documents {
		page.Next = d.Name[len(rows):]
		page.Rows = append(page.Rows, toTableRow(d))
	}
	page.More = p.more
	return page, err
}

func toTableRow(d document) tabular.Row {
	f := d.Fields
	return tabular.Row{Key: f[keyField].text(), Seq: f[numberField].int(), Body: json.RawMessage(f[bodyField].text()), Gone: f[opField].text() == deleted}
}

func (s rowStore) Find(ctx context.Context, table string, keys []string) (all []tabular.Row, err error) {
	head := s.table(table)
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = rowName(head, key)
	}
	found, err := s.d.get(ctx, []string{opField, numberField, keyField, bodyField}, names...)
	for _, d := range found {
		if r := toTableRow(d); !r.Gone {
			all = append(all, r)
		}
	}
	return all, err
}

func (s rowStore) Count(ctx context.Context, table string) (rows, version int64, err error) {
	head := s.table(table)
	found, err := s.d.get(ctx, rowFields, head)
	state := toTableState(found[head])
	return state.rows, state.version, err
}

func (s rowStore) States(ctx context.Context) (map[string]tabular.TableState, error) {
	states := map[string]tabular.TableState{}
	err := s.d.tables(ctx, func(_ string, t tableState) error {
		states[t.name] = tabular.TableState{Version: t.version, Removed: t.removed, Born: t.born}
		return nil
	})
	return states, err
}

// tables calls use with the documents of all tables.
func (d *db) tables(ctx context.Context, use func(name string, t tableState) error) error {
	var failed error
	err := d.all(ctx, "", structured{From: []from{{d.prefix + inlinedName}}}, func(one document) bool {
		failed = use(one.Name, toTableState(one))
		return failed == nil
	})
	return errors.Join(err, failed)
}

// emptyTables removes the rows of all tables.
func (d *db) emptyTables(ctx context.Context) error {
	return d.tables(ctx, func(name string, _ tableState) error { return d.empty(ctx, name, rowsName) })
}
