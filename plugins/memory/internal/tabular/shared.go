package tabular

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Shared is the tables of a database that devices share, whose rows are JSON
// objects. It is safe for concurrent use.
type Shared struct {
	Catalog *catalog.Catalog
	Stored  RowStore
	// Selector runs the queries over the database of Stored.
	Selector store.Selector
}

// RowStore stores the rows of tables. Changes of one table run one after the
// other and get consecutive numbers.
type RowStore interface {
	// Insert writes rows, and returns those that conflict refuses as conflicts.
	Insert(ctx context.Context, table string, rows []JSONRow, conflict store.RowConflict, call store.TableCall) (result store.TableResult, refused *JSONRow, err error)
	// Update sets members of the selected rows to the members of the bodies: of the
	// rows that match where, or of the rows with the same keys.
	Update(ctx context.Context, table string, where Where, rows []JSONRow, call store.TableCall) (store.TableResult, error)
	// Delete removes the selected rows.
	Delete(ctx context.Context, table string, where Where, call store.TableCall) (store.TableResult, error)
	// Page returns the bodies of rows in the order of the hashes of their keys.
	// after is a position that an earlier call returned, in hex; "" = from the
	// beginning. next is "" after the last row.
	Page(ctx context.Context, table, after string, limit int) (bodies []json.RawMessage, next string, err error)
	// Count returns the number of a table's rows and the number of its last change.
	Count(ctx context.Context, table string) (rows, version int64, err error)
	// From returns the part of a SELECT of a table's rows that follows the columns.
	From(table string) string
}

// JSONRows is the dialect of SQLite for rows that are JSON objects, in the columns
// key and body.
const JSONRows store.Dialect = "sqlite, rows in JSON"

// JSONRow is a row as an object. Key identifies it, "" for a row of a table
// without a primary key. At is its position in the call.
type JSONRow struct {
	Key  string
	Body json.RawMessage
	At   int
}

// ErrKeyExists ends an insertion because of a row whose key exists.
var ErrKeyExists = tea.Errorf(tea.ValidationError, "a row with the key exists")

// CountInsert counts a row of an insertion and reports whether it is written.
// exists reports that its key exists; if conflict refuses that, the error is
// ErrKeyExists.
func CountInsert(r *store.TableResult, exists bool, conflict store.RowConflict) (written bool, err error) {
	switch {
	case !exists:
		r.Inserted++
	case conflict == store.RowReplace:
		r.Updated++
	case conflict == store.RowIgnore:
		r.Ignored++
		return false, nil
	default:
		return false, ErrKeyExists
	}
	return true, nil
}

// Where selects rows by a condition in SQL with ? as parameters.
type Where struct {
	SQL  string
	Args []any
	// Keys is the number of keys, if there are no other conditions.
	Keys int64
}

var _ store.TableStore = (*Shared)(nil)

// Create creates a table.
func (s *Shared) Create(ctx context.Context, n store.NewTable) (created bool, err error) {
	t, err := fromDefinition(n)
	if err != nil {
		return false, err
	}
	if err = s.Catalog.CreateManaged(ctx, t.entry); !errors.Is(err, store.ErrConflict) {
		return err == nil, err
	}
	have, err := s.Catalog.Table(ctx, n.Name)
	switch {
	case err != nil:
		return false, err
	case !have.Managed:
		return false, catalog.Registered(n.Name)
	}
	old, err := newTable(have)
	if err != nil {
		return false, err
	}
	return false, old.matches(t)
}

// find returns the table with a name, or a not_found error.
func (s *Shared) find(ctx context.Context, name string) (*table, error) {
	entry, err := s.Catalog.Table(ctx, name)
	switch kind := tea.AsError(err); {
	case err == nil && entry.Managed:
		return newTable(entry)
	case err != nil && kind.Type != tea.NotFound && kind.Type != tea.ValidationError:
		return nil, err
	}
	all, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, t := range all {
		names = append(names, t.Name)
	}
	return nil, catalog.NotFound("table of data.create_table", name, names)
}

func (s *Shared) all(ctx context.Context) ([]catalog.Table, error) {
	all, _, err := s.Catalog.Tables(ctx, catalog.TableQuery{Managed: true, Page: catalog.Page{Limit: maxTables}})
	return all, err
}

// Insert adds rows.
func (s *Shared) Insert(ctx context.Context, name string, rows []store.TableRow, conflict store.RowConflict, call store.TableCall) (store.TableResult, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return store.TableResult{}, err
	}
	checked, _, err := t.check(rows, conflict)
	if err != nil {
		return store.TableResult{}, err
	}
	bodies := make([]JSONRow, len(checked))
	for i, r := range checked {
		if bodies[i], err = t.canonical(r); err != nil {
			return store.TableResult{}, err
		}
		bodies[i].At = r.at
	}
	result, refused, err := s.Stored.Insert(ctx, t.name, bodies, conflict, call)
	if refused != nil && err == nil {
		err = t.exists(&newRow{key: refused.Key, at: refused.At})
	}
	return result, err
}

// Update sets columns of the selected rows.
func (s *Shared) Update(ctx context.Context, name string, which store.RowSelection, set store.TableRow, call store.TableCall) (store.TableResult, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return store.TableResult{}, err
	}
	values, err := t.settings(set)
	if err != nil {
		return store.TableResult{}, err
	}
	where, err := s.where(t, which)
	if err != nil {
		return store.TableResult{}, err
	}
	body, err := t.body("", values)
	if err != nil {
		return store.TableResult{}, err
	}
	return s.Stored.Update(ctx, t.name, where, []JSONRow{body}, call)
}

// UpdateRows sets the given columns of the rows with the same primary keys.
func (s *Shared) UpdateRows(ctx context.Context, name string, rows []store.TableRow, call store.TableCall) (store.TableResult, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return store.TableResult{}, err
	}
	edits, err := t.edits(rows)
	if err != nil || len(edits) == 0 {
		return store.TableResult{}, err
	}
	bodies := make([]JSONRow, len(edits))
	for i, e := range edits {
		if bodies[i], err = t.body(e.key, e.values); err != nil {
			return store.TableResult{}, err
		}
	}
	return s.Stored.Update(ctx, t.name, Where{}, bodies, call)
}

// Delete removes the selected rows.
func (s *Shared) Delete(ctx context.Context, name string, which store.RowSelection, call store.TableCall) (store.TableResult, error) {
	t, err := s.find(ctx, name)
	if err != nil {
		return store.TableResult{}, err
	}
	where, err := s.where(t, which)
	if err != nil {
		return store.TableResult{}, err
	}
	return s.Stored.Delete(ctx, t.name, where, call)
}

func (s *Shared) where(t *table, which store.RowSelection) (Where, error) {
	c, err := t.condition(s.Selector.Dialect(), which)
	if err != nil || len(c.clauses) == 0 {
		return Where{SQL: "true"}, err
	}
	return Where{SQL: strings.Join(c.clauses, " AND "), Args: c.args, Keys: c.keys}, nil
}

// body returns a row as an object with the values of some columns.
func (t *table) body(key string, values map[int]any) (JSONRow, error) {
	members := make(map[string]any, len(values))
	for at, v := range values {
		c := t.columns[at]
		if members[c.Name] = c.plain(v); v == nil {
			continue
		}
		switch {
		case c.Type == JSON:
			text, _ := v.(string) // parse returned it
			members[c.Name] = json.RawMessage(text)
		case c.Type.isDecimal():
			members[c.Name] = json.Number(members[c.Name].(string)) //nolint:forcetypeassert // plain returns one
		}
	}
	body, err := json.Marshal(members)
	return JSONRow{Key: key, Body: body}, err
}

// Query runs a SELECT.
func (s *Shared) Query(ctx context.Context, q store.TableQuery) (store.TableAnswer, error) {
	var tables []*table
	if q.Tables != nil {
		for _, name := range q.Tables {
			t, err := s.find(ctx, name)
			if err != nil {
				return store.TableAnswer{}, err
			}
			tables = append(tables, t)
		}
	} else {
		all, err := s.all(ctx)
		if err != nil {
			return store.TableAnswer{}, err
		}
		for _, entry := range all {
			if t, err := newTable(entry); err == nil && !entry.Damaged {
				tables = append(tables, t)
			}
		}
	}
	var views []store.View
	for _, t := range tables {
		views = append(views, s.views(t)...)
	}
	timeout := q.Timeout
	if timeout <= 0 {
		timeout = time.Minute
	}
	found, err := s.Selector.Select(ctx, q.SQL, store.Sandbox{Views: views, MaxRows: q.MaxRows, MaxBytes: q.MaxBytes, Timeout: timeout, Args: q.Args})
	if err != nil {
		return store.TableAnswer{}, err
	}
	return store.AnswerOf(found), nil
}

// views returns the view of a table under its name, and under the name that
// PostgreSQL folds an unquoted name to.
func (s *Shared) views(t *table) []store.View {
	columns := make([]store.Column, len(t.columns))
	values := make([]string, len(t.columns))
	for i, c := range t.columns {
		columns[i], values[i] = store.Column{Name: c.Name}, c.value(s.Selector.Dialect())
		if s.Selector.Dialect() == JSONRows {
			columns[i].Type, values[i] = c.shown(), c.inTime(values[i])
		}
	}
	before, after, _ := strings.Cut(s.Stored.From(t.name), "*")
	names := map[string]bool{t.entry.Name: true}
	if s.Selector.Dialect() == store.PostgreSQL {
		names[t.name] = true
	}
	var all []store.View
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, store.View{Name: name, Columns: columns, Query: before + strings.Join(values, ", ") + after})
	}
	return all
}

// Consolidate only adds a snapshot to the catalog.
func (s *Shared) Consolidate(ctx context.Context, name string) (c store.Consolidated, err error) {
	for {
		t, err := s.find(ctx, name)
		if err != nil {
			return c, err
		}
		rows, version, err := s.Stored.Count(ctx, t.name)
		if err != nil {
			return c, err
		}
		last, err := s.Catalog.LastSnapshot(ctx, t.name)
		if err != nil {
			return c, err
		}
		entry := t.entry
		entry.Version = version
		snapshot, err := s.Catalog.SnapshotManaged(ctx, entry, last)
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		return store.Consolidated{RowsBefore: rows, Rows: rows, Snapshot: snapshot.ID}, err
	}
}

// HasNUL reports whether a text in JSON has the character U+0000.
func HasNUL(body json.RawMessage) bool {
	for rest := string(body); ; {
		at := strings.Index(rest, `\u0000`)
		if at < 0 {
			return false
		}
		slashes := len(rest[:at]) - len(strings.TrimRight(rest[:at], `\`))
		if slashes%2 == 0 {
			return true
		}
		rest = rest[at+1:]
	}
}
