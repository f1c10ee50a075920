package remotesqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// rowTables are the tables of version 3, with the rows of data.*. Their definitions are in the catalog. A row has the
// number of its last change. tea_tables has the numbers of the last change and the last removal of each table; born
// distinguishes a table from an earlier one with its name. tea_calls has the results of calls that can be repeated.
var rowTables = []string{
	"CREATE TABLE IF NOT EXISTS tea_tables (name TEXT PRIMARY KEY, version INTEGER NOT NULL, removed INTEGER NOT NULL, born TEXT NOT NULL) WITHOUT ROWID",
	"CREATE TABLE IF NOT EXISTS tea_rows (name TEXT NOT NULL, key TEXT NOT NULL, seq INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (name, key))",
	"CREATE INDEX IF NOT EXISTS tea_rows_seq ON tea_rows (name, seq)",
	"CREATE TABLE IF NOT EXISTS tea_calls (key TEXT PRIMARY KEY, hash TEXT NOT NULL, result TEXT NOT NULL, at INTEGER NOT NULL)",
	"CREATE INDEX IF NOT EXISTS tea_calls_at ON tea_calls (at)",
}

// keepCalls is the number of seconds that the results of calls are kept.
const keepCalls = 30 * 86400

// rowStore has the rows of data.*. It is safe for concurrent use.
type rowStore struct{ d *database }

var _ tabular.RowStore = rowStore{}

func (rowStore) From(table string) string {
	return "SELECT * FROM main.tea_rows WHERE name = '" + table + "'"
}

func (s rowStore) Count(ctx context.Context, table string) (rows, version int64, err error) {
	found, err := s.d.query(ctx, "SELECT (SELECT count(*) FROM tea_rows WHERE name = ?1), coalesce((SELECT version FROM tea_tables WHERE name = ?1), 0)", table)
	if err != nil || len(found) == 0 {
		return 0, 0, err
	}
	return number(found[0], 0), number(found[0], 1), nil
}

// pageSQL reads the first rows in an order that fit on a page, at least one.
const pageSQL = "SELECT key, seq, body, n FROM (SELECT *, count(*) OVER () AS n, sum(length(body)) OVER (ORDER BY %[1]s) - length(body) AS size FROM (SELECT key, seq, body FROM tea_rows WHERE name = ?1 AND %[1]s > %[2]s ORDER BY %[1]s LIMIT %[3]d)) WHERE size < %[4]d ORDER BY %[1]s"

func (s rowStore) Page(ctx context.Context, table, after string, limit int) (bodies []json.RawMessage, next string, err error) {
	rows, err := s.d.query(ctx, fmt.Sprintf(pageSQL, "key", "?2", limit, maxPage), table, after)
	for _, row := range rows {
		bodies, next = append(bodies, json.RawMessage(text(row, 2))), text(row, 0)
	}
	if len(rows) == 0 || len(rows) < limit && number(rows[0], 3) == int64(len(rows)) {
		next = ""
	}
	return bodies, next, err
}

// change is a change of a table. Its first parameters are the table and the call.
type change struct {
	write
	table string
	call  store.TableCall
	// results are the expressions of the further results, from the third on.
	results []string
}

const (
	lastChange = "coalesce((SELECT version FROM tea_tables WHERE name = ?2), 0)"
	sameCall   = "(SELECT result FROM tea_calls WHERE key = ?3 AND hash = ?4)"
	// found is the first result; see before.
	found = "(SELECT result FROM tea_ops WHERE id = ?1)"
)

func newChange(table string, call store.TableCall) *change {
	c := &change{table: table, call: call}
	c.args = []string{table, call.Key, call.Hash}
	c.refused = sameCall + " IS NOT NULL"
	c.add("INSERT INTO tea_tables SELECT ?2, 0, 0, lower(hex(randomblob(16))) WHERE "+pending+" ON CONFLICT DO NOTHING", table)
	return c
}

// arg adds a parameter of the conditions and returns its placeholder.
func (c *change) arg(value string) string {
	c.args = append(c.args, value)
	return "?" + strconv.Itoa(len(c.args)+1)
}

// existing adds a result: which rows of a list exist.
func (c *change) existing(rows string, refuse bool) {
	from := " FROM json_each(" + c.arg(rows) + ") AS j JOIN tea_rows AS r ON r.name = ?2 AND r.key = json_extract(j.value, '$[0]')"
	c.results = append(c.results, "json((SELECT json_group_array(j.key)"+from+"))")
	if refuse {
		c.refused += " OR EXISTS (SELECT 1" + from + ")"
	}
}

// outcome is the result of a change.
type outcome struct {
	version int64
	again   bool // the call was already done
	refused bool
	results []json.RawMessage
}

// do runs a change. numbers is the SQL expression of how many change numbers it uses.
func (s rowStore) do(ctx context.Context, c *change, numbers string) (o outcome, err error) {
	c.before = "json_array(" + strings.Join(append([]string{lastChange, sameCall}, c.results...), ", ") + ")"
	c.add("UPDATE tea_tables SET version = version + "+numbers+" WHERE name = ?2 AND "+pending, c.table)
	if c.call.Key != "" {
		c.add("INSERT INTO tea_calls SELECT ?2, ?3, "+found+", unixepoch() WHERE "+pending+" ON CONFLICT (key) DO UPDATE SET hash = excluded.hash, result = excluded.result, at = excluded.at", c.call.Key, c.call.Hash)
		c.add(fmt.Sprintf("DELETE FROM tea_calls WHERE at < unixepoch() - %d AND %s", keepCalls, pending))
	}
	var text string
	results, err := s.d.do(ctx, c.write)
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		text, o.refused = refused.before, true
	} else if err != nil {
		return o, err
	} else {
		text = results[0]
	}
	for range 2 {
		var all []json.RawMessage
		var earlier *string
		if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) < 2 {
			return o, tea.Errorf(tea.QueryError, "the server did not return the result of a change: %w", err)
		}
		if err := errors.Join(json.Unmarshal(all[0], &o.version), json.Unmarshal(all[1], &earlier)); err != nil {
			return o, tea.Errorf(tea.QueryError, "the server did not return the result of a change: %w", err)
		}
		if o.results = all[2:]; earlier == nil || o.again {
			break
		}
		text, o.again, o.refused = *earlier, true, false
	}
	return o, nil
}

// rowList is a part of the rows of a change, as a parameter.
type rowList struct {
	text string
	rows []tabular.JSONRow
}

func lists(rows []tabular.JSONRow) (all []rowList, err error) {
	values := make([][]any, len(rows))
	for i, r := range rows {
		if tabular.HasNUL(r.Body) {
			return nil, tea.Errorf(tea.ValidationError, "row %d: the database cannot store the character U+0000; replace it", r.At)
		}
		values[i] = []any{orNull(r.Key), string(r.Body)}
	}
	texts, err := chunks(values)
	for _, text := range texts {
		var parsed []json.RawMessage
		if err := json.Unmarshal([]byte(text), &parsed); err != nil {
			return nil, err
		}
		all = append(all, rowList{text, rows[:len(parsed)]})
		rows = rows[len(parsed):]
	}
	return all, err
}

func (s rowStore) Insert(ctx context.Context, table string, rows []tabular.JSONRow, conflict store.RowConflict, call store.TableCall) (result store.TableResult, refused *tabular.JSONRow, err error) {
	all, err := lists(rows)
	if err != nil {
		return result, nil, err
	}
	c := newChange(table, call)
	offset := 0
	for _, list := range all {
		c.existing(list.text, conflict == store.RowFail)
		then := "NOTHING"
		if conflict == store.RowReplace {
			then = "UPDATE SET seq = excluded.seq, body = excluded.body"
		}
		n := fmt.Sprintf("%s + %d + j.key", lastChange, offset+1)
		c.add("INSERT INTO tea_rows (name, key, seq, body) SELECT ?2, coalesce(json_extract(j.value, '$[0]'), printf('%020d', "+n+")), "+n+", json_extract(j.value, '$[1]') FROM json_each(?3) AS j WHERE "+pending+
			" ON CONFLICT (name, key) DO "+then, table, list.text)
		offset += len(list.rows)
	}
	o, err := s.do(ctx, c, strconv.Itoa(len(rows)))
	if err != nil {
		return result, nil, err
	}
	there := int64(0)
	for i, list := range all {
		var at []int
		if err := json.Unmarshal(o.results[i], &at); err != nil {
			return result, nil, err
		}
		if there += int64(len(at)); o.refused && len(at) > 0 {
			return result, &list.rows[slices.Min(at)], nil
		}
	}
	result.Inserted, result.Version = int64(len(rows))-there, o.version+int64(len(rows))
	if conflict == store.RowReplace {
		result.Updated = there
	} else {
		result.Ignored = there
	}
	return result, nil, nil
}

// where returns a condition whose parameters are added with arg.
func where(w tabular.Where, arg func(string) string) string {
	parts := strings.Split(w.SQL, "?")
	for i := range parts[1:] {
		var text string
		switch v := w.Args[i].(type) {
		case bool:
			text = strconv.Itoa(flag(v))
		default:
			text = fmt.Sprint(v)
		}
		parts[i] += arg(text)
	}
	return "(" + strings.Join(parts, "") + ")"
}

// selected adds a result, the number of matching rows, and returns the condition for the statements, whose parameters
// begin with the table.
func (c *change) selected(w tabular.Where) (sql string, args []string) {
	c.results = append(c.results, "(SELECT count(*) FROM tea_rows WHERE name = ?2 AND "+where(w, c.arg)+")")
	args = []string{c.table}
	sql = where(w, func(value string) string {
		args = append(args, value)
		return "?" + strconv.Itoa(len(args)+1)
	})
	return sql, args
}

// selectedCount is the number of selected rows, in a statement.
const selectedCount = "json_extract(" + found + ", '$[2]')"

// setAtOnce bounds the arguments of an SQLite function.
const setAtOnce = 30

// setting returns the SQL expression of a body with some members of another one.
func setting(names []string, from string) string {
	sql := "body"
	for part := range slices.Chunk(names, setAtOnce) {
		for i, name := range part {
			part[i] = fmt.Sprintf("'$.\"%s\"', json(%s -> '$.\"%[1]s\"')", name, from)
		}
		sql = "json_set(" + sql + ", " + strings.Join(part, ", ") + ")"
	}
	return sql
}

func membersOf(body json.RawMessage) ([]string, error) {
	var members map[string]json.RawMessage
	err := json.Unmarshal(body, &members)
	return slices.Sorted(maps.Keys(members)), err
}

func (s rowStore) Update(ctx context.Context, table string, w tabular.Where, rows []tabular.JSONRow, call store.TableCall) (result store.TableResult, err error) {
	if w.SQL == "" {
		return s.updateRows(ctx, table, rows, call)
	}
	if _, err := lists(rows); err != nil {
		return result, err
	}
	names, err := membersOf(rows[0].Body)
	if err != nil {
		return result, err
	}
	c := newChange(table, call)
	sql, args := c.selected(w)
	args = append(args, string(rows[0].Body))
	c.add("UPDATE tea_rows SET seq = "+lastChange+" + n.rank, body = "+setting(names, "?"+strconv.Itoa(len(args)+1))+
		" FROM (SELECT key AS k, row_number() OVER (ORDER BY seq) AS rank FROM tea_rows WHERE name = ?2 AND "+sql+") AS n WHERE name = ?2 AND key = n.k AND "+pending, args...)
	o, err := s.do(ctx, c, selectedCount)
	if err != nil {
		return result, err
	}
	err = json.Unmarshal(o.results[0], &result.Updated)
	result.Missing, result.Version = max(0, w.Keys-result.Updated), o.version+result.Updated
	return result, err
}

func (s rowStore) updateRows(ctx context.Context, table string, rows []tabular.JSONRow, call store.TableCall) (result store.TableResult, err error) {
	groups := map[string][]tabular.JSONRow{}
	for _, r := range rows {
		names, err := membersOf(r.Body)
		if err != nil {
			return result, err
		}
		set := strings.Join(names, ",")
		groups[set] = append(groups[set], r)
	}
	c := newChange(table, call)
	offset := 0
	for _, set := range slices.Sorted(maps.Keys(groups)) {
		all, err := lists(groups[set])
		if err != nil {
			return result, err
		}
		for _, list := range all {
			c.existing(list.text, false)
			c.add(fmt.Sprintf("UPDATE tea_rows SET seq = %s + %d + n.i, body = %s FROM (SELECT key AS i, json_extract(value, '$[0]') AS k, json_extract(value, '$[1]') AS b FROM json_each(?3)) AS n WHERE name = ?2 AND tea_rows.key = n.k AND %s",
				lastChange, offset+1, setting(strings.Split(set, ","), "n.b"), pending), table, list.text)
			offset += len(list.rows)
		}
	}
	o, err := s.do(ctx, c, strconv.Itoa(len(rows)))
	if err != nil {
		return result, err
	}
	for _, raw := range o.results {
		var at []int
		if err := json.Unmarshal(raw, &at); err != nil {
			return result, err
		}
		result.Updated += int64(len(at))
	}
	result.Missing, result.Version = int64(len(rows))-result.Updated, o.version+int64(len(rows))
	return result, nil
}

func (s rowStore) Delete(ctx context.Context, table string, w tabular.Where, call store.TableCall) (result store.TableResult, err error) {
	c := newChange(table, call)
	sql, args := c.selected(w)
	c.add("DELETE FROM tea_rows WHERE name = ?2 AND "+sql+" AND "+pending, args...)
	c.add("UPDATE tea_tables SET removed = version + "+selectedCount+" WHERE name = ?2 AND "+selectedCount+" > 0 AND "+pending, table)
	o, err := s.do(ctx, c, selectedCount)
	if err != nil {
		return result, err
	}
	err = json.Unmarshal(o.results[0], &result.Deleted)
	result.Missing, result.Version = max(0, w.Keys-result.Deleted), o.version+result.Deleted
	return result, err
}
