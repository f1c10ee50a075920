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
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Shared is the tables of a database that devices share, whose rows are JSON
// objects, with archives and synchronisation of them. It is safe for concurrent use.
type Shared struct {
	Catalog *catalog.Catalog
	Stored  RowStore
	// Selector runs the queries over the database of Stored.
	Selector store.Selector
}

// NewShared returns the tables of a database.
func NewShared(definitions store.MetadataStore, rows RowStore, queries store.Selector) *Shared {
	return &Shared{Catalog: catalog.New(definitions, clock.New()), Stored: rows, Selector: queries}
}

// RowStore is the part of a driver that stores the rows of tables.
type RowStore interface {
	// States returns the states of all tables, by name.
	States(ctx context.Context) (map[string]TableState, error)
	// Count returns the number of a table's rows and the number of its last change.
	Count(ctx context.Context, table string) (rows, version int64, err error)
	// Read returns a page of rows.
	Read(ctx context.Context, q RowQuery) (RowPage, error)
	// Find returns the rows with keys, in any order.
	Find(ctx context.Context, table string, keys []string) ([]Row, error)
	// Change makes a change and returns its result, which is c.Count with the number of
	// the table's last change. Changes of one table run one after the other. If the call
	// was done before, it returns the earlier result. The error is ErrRefused
	// if an atomic change is refused.
	Change(ctx context.Context, c *RowChange) (store.TableResult, error)
}

// TableState is the state of a table: the number of its last change, and, in a database
// whose tables are copied, a number from which on Read returns all removals. Born tells
// a table from an earlier one.
type TableState struct {
	Version, Removed int64
	Born             string
}

// Row is a row as a JSON object, with the number of its last change. Key identifies it
// in the RowStore. Gone reports whether it was removed.
type Row struct {
	Key  string
	Seq  int64
	Body json.RawMessage
	Gone bool
}

// RowQuery selects rows of a table in the order of their numbers, or in an order that no
// change affects.
type RowQuery struct {
	Table string
	// After is the number after which the rows begin.
	After int64
	// Stable selects the other order. Position is RowPage.Next of an earlier page; "" =
	// from the beginning.
	Stable   bool
	Position string
	Limit    int
}

// RowPage is a page of rows. It can have fewer rows than the limit although there are more.
type RowPage struct {
	Rows []Row
	More bool
	// Next is the position after the last row in the stable order.
	Next string
}

// RowChange changes the rows of Writes, or the rows that Where selects.
type RowChange struct {
	Table string
	Call  store.TableCall
	// Writes are writes of different rows.
	Writes []RowWrite
	// Merge sets the members of existing rows to the members of the bodies.
	Merge bool
	// Atomic reports whether nothing is written if a condition is not met.
	Atomic bool
	// Where selects rows. They get the members of Set; if Set is nil, they are removed.
	Where Where
	Set   json.RawMessage
}

// RowWrite replaces a row if its number is If; 0 = the row does not exist, AnySeq = any
// or none. Deleted removes it.
type RowWrite struct {
	// Key identifies the row, "" for a row of a table without a primary key.
	Key     string
	Body    json.RawMessage
	If      int64
	Deleted bool
	// At is the position in the call.
	At int

	// Before is the number of the row before the change, Seq the number after it; 0 =
	// the row does not exist. The RowStore sets both.
	Before, Seq int64
}

// Where selects rows by a condition in SQL with ? as parameters.
type Where struct {
	SQL  string
	Args []any
	// Keys is the number of keys, if there are no other conditions.
	Keys int64
}

// ErrRefused is the error of an atomic change one of whose conditions is not met.
var ErrRefused = tea.Errorf(tea.ValidationError, "a row with the key exists")

// Met reports whether a write is done, once its Before is known.
func (c *RowChange) Met(w *RowWrite) bool {
	if c.Merge {
		return w.Before != 0
	}
	return w.If == store.AnySeq || w.If == w.Before
}

// Refused returns the first write that refuses the change, nil if there is none.
func (c *RowChange) Refused() *RowWrite {
	for i := range c.Writes {
		if w := &c.Writes[i]; c.Atomic && !c.Met(w) {
			return w
		}
	}
	return nil
}

// Count returns the result of the writes once their Before is known.
func (c *RowChange) Count() (r store.TableResult) {
	for i := range c.Writes {
		switch w := &c.Writes[i]; {
		case !c.Met(w) && c.Merge:
			r.Missing++
		case !c.Met(w):
			r.Ignored++
		case w.Deleted:
			r.Deleted += min(w.Before, 1)
		case w.Before == 0:
			r.Inserted++
		default:
			r.Updated++
		}
	}
	return r
}

// CountSelected returns the result of a change of n selected rows.
func (c *RowChange) CountSelected(n int64) store.TableResult {
	r := store.TableResult{Updated: n, Missing: max(0, c.Where.Keys-n)}
	if c.Set == nil {
		r.Updated, r.Deleted = 0, n
	}
	return r
}

// CheckText refuses bodies that a database without the character U+0000 cannot store.
func (c *RowChange) CheckText() error {
	for i := range c.Writes {
		if w := &c.Writes[i]; hasNUL(w.Body) {
			return tea.Errorf(tea.ValidationError, "row %d: the database cannot store the character U+0000; replace it", w.At)
		}
	}
	if hasNUL(c.Set) {
		return tea.Errorf(tea.ValidationError, "the database cannot store the character U+0000; replace it")
	}
	return nil
}

// JSONRows is the dialect of SQLite for rows that are JSON objects, in the columns
// key and body.
const JSONRows store.Dialect = "sqlite, rows in JSON"

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
	c := &RowChange{Table: t.name, Call: call, Writes: make([]RowWrite, len(checked)), Atomic: conflict == store.RowFail}
	for i, r := range checked {
		w := &c.Writes[i]
		if *w, err = t.canonical(r); err != nil {
			return store.TableResult{}, err
		}
		if w.At = r.at; conflict == store.RowReplace {
			w.If = store.AnySeq
		}
	}
	result, err := s.Stored.Change(ctx, c)
	if w := c.Refused(); w != nil && errors.Is(err, ErrRefused) {
		err = t.exists(&newRow{key: w.Key, at: w.At})
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
	return s.Stored.Change(ctx, &RowChange{Table: t.name, Call: call, Where: where, Set: body.Body})
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
	c := &RowChange{Table: t.name, Call: call, Writes: make([]RowWrite, len(edits)), Merge: true}
	for i, e := range edits {
		if c.Writes[i], err = t.body(e.key, e.values); err != nil {
			return store.TableResult{}, err
		}
	}
	return s.Stored.Change(ctx, c)
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
	return s.Stored.Change(ctx, &RowChange{Table: t.name, Call: call, Where: where})
}

func (s *Shared) where(t *table, which store.RowSelection) (Where, error) {
	c, err := t.condition(s.Selector.Dialect(), which)
	if err != nil || len(c.clauses) == 0 {
		return Where{SQL: "true"}, err
	}
	return Where{SQL: strings.Join(c.clauses, " AND "), Args: c.args, Keys: c.keys}, nil
}

// body returns a row as an object with the values of some columns.
func (t *table) body(key string, values map[int]any) (RowWrite, error) {
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
	return RowWrite{Key: key, Body: body}, err
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
	names := map[string]bool{t.entry.Name: true}
	if s.Selector.Dialect() == store.PostgreSQL {
		names[t.name] = true
	}
	var all []store.View
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, store.View{Name: name, Columns: columns, Query: "SELECT " + strings.Join(values, ", ") + " FROM main.tea_rows WHERE name = '" + t.name + "'"})
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

// hasNUL reports whether a text in JSON has the character U+0000.
func hasNUL(body json.RawMessage) bool {
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
