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

func (s rowStore) States(ctx context.Context) (map[string]tabular.TableState, error) {
	rows, err := s.d.query(ctx, "SELECT name, version, removed, born FROM tea_tables")
	states := make(map[string]tabular.TableState, len(rows))
	for _, row := range rows {
		states[text(row, 0)] = tabular.TableState{Version: number(row, 1), Removed: number(row, 2), Born: text(row, 3)}
	}
	return states, err
}

func (s rowStore) Count(ctx context.Context, table string) (rows, version int64, err error) {
	found, err := s.d.query(ctx, "SELECT (SELECT count(*) FROM tea_rows WHERE name = ?1), coalesce((SELECT version FROM tea_tables WHERE name = ?1), 0)", table)
	if err != nil || len(found) == 0 {
		return 0, 0, err
	}
	return number(found[0], 0), number(found[0], 1), nil
}

// page reads rows in an order, after a value, as many as fit on a page, at least one. condition
// restricts them, its parameters begin at ?3.
func (s rowStore) page(ctx context.Context, order, condition string, limit int, args ...string) (p tabular.RowPage, err error) {
	after := "?2"
	if order == "seq" {
		after = "CAST(?2 AS INTEGER)"
	}
	rows, err := s.d.query(ctx, fmt.Sprintf("SELECT key, seq, body, n FROM (SELECT *, count(*) OVER () AS n, sum(length(body)) OVER (ORDER BY %[1]s) - length(body) AS size FROM (SELECT key, seq, body FROM tea_rows WHERE name = ?1 AND %[1]s > %[2]s%[3]s ORDER BY %[1]s LIMIT %[4]d)) WHERE size < %[5]d ORDER BY %[1]s",
		order, after, condition, limit+1, maxPage), args...)
	for _, row := range rows[:min(len(rows), limit)] {
		p.Next = text(row, 0)
		p.Rows = append(p.Rows, tabular.Row{Key: p.Next, Seq: number(row, 1), Body: json.RawMessage(text(row, 2))})
	}
	p.More = len(rows) > 0 && number(rows[0], 3) > int64(len(p.Rows))
	return p, err
}

// Read returns a page of rows. The stable order is by key.
func (s rowStore) Read(ctx context.Context, q tabular.RowQuery) (tabular.RowPage, error) {
	if q.Stable {
		return s.page(ctx, "key", "", q.Limit, q.Table, q.Position)
	}
	return s.page(ctx, "seq", "", q.Limit, q.Table, integer(q.After))
}

func (s rowStore) Find(ctx context.Context, table string, keys []string) (all []tabular.Row, err error) {
	values := make([][]any, len(keys))
	for i, key := range keys {
		values[i] = []any{key}
	}
	lists, err := chunks(values)
	for _, list := range lists {
		for p := (tabular.RowPage{More: true}); err == nil && p.More; all = append(all, p.Rows...) {
			p, err = s.page(ctx, "key", " AND key IN (SELECT json_extract(value, '$[0]') FROM json_each(?3))", nameBatch, table, p.Next, list)
		}
	}
	return all, err
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

// outcome is what a change has found.
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

// Change is one request.
func (s rowStore) Change(ctx context.Context, rc *tabular.RowChange) (store.TableResult, error) {
	if err := rc.CheckText(); err != nil {
		return store.TableResult{}, err
	}
	c := newChange(rc.Table, rc.Call)
	if rc.Where.SQL != "" {
		return s.changeSelected(ctx, c, rc)
	}
	lists, err := listsOf(rc)
	if err != nil {
		return store.TableResult{}, err
	}
	offset := 0
	for _, list := range lists {
		c.addList(rc, list, offset)
		offset += len(list.writes)
	}
	o, err := s.do(ctx, c, strconv.Itoa(offset))
	if err != nil {
		return store.TableResult{}, err
	}
	seq := o.version
	for i, list := range lists[:min(len(lists), len(o.results))] {
		if err := list.readBefore(o.results[i]); err != nil {
			return store.TableResult{}, err
		}
		for _, w := range list.writes {
			seq++
			switch {
			case !rc.Met(w):
				w.Seq = w.Before
			case w.Deleted:
				w.Seq = 0
			default:
				w.Seq = seq
			}
		}
	}
	if o.refused {
		return store.TableResult{}, tabular.ErrRefused
	}
	result := rc.Count()
	result.Version = o.version + int64(offset)
	return result, nil
}

// rowList is a part of the writes of a change, as a parameter: [key, body, number], null for
// a missing key or body. The bodies of a list of a merge have the same members.
type rowList struct {
	text    string
	writes  []*tabular.RowWrite
	members []string
	deletes bool
}

// listsOf returns the writes of a change as parameters.
func listsOf(rc *tabular.RowChange) (all []rowList, err error) {
	groups := map[string][]*tabular.RowWrite{}
	for i := range rc.Writes {
		w := &rc.Writes[i]
		set := ""
		if rc.Merge {
			members, err := membersOf(w.Body)
			if err != nil {
				return nil, err
			}
			set = strings.Join(members, ",")
		}
		groups[set] = append(groups[set], w)
	}
	for _, set := range slices.Sorted(maps.Keys(groups)) {
		writes := groups[set]
		values := make([][]any, len(writes))
		for i, w := range writes {
			values[i] = []any{orNull(w.Key), orNull(string(w.Body)), w.If}
		}
		texts, err := chunks(values)
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			var parsed []json.RawMessage
			if err := json.Unmarshal([]byte(text), &parsed); err != nil {
				return nil, err
			}
			list := rowList{text: text, writes: writes[:len(parsed)], members: strings.Split(set, ",")}
			list.deletes = slices.ContainsFunc(list.writes, func(w *tabular.RowWrite) bool { return w.Deleted })
			all, writes = append(all, list), writes[len(parsed):]
		}
	}
	return all, nil
}

// metSQL selects the writes of a list whose conditions are met. A negative number is always
// met.
const metSQL = " FROM json_each(%s) AS j WHERE json_extract(j.value, '$[2]') %s IN (-1, coalesce((SELECT r.seq FROM tea_rows AS r WHERE r.name = ?2 AND r.key = json_extract(j.value, '$[0]')), 0))"

// addList adds the statements of a list, whose first write has the number offset+1 after
// the last change, and a query for the rows that exist and their numbers.
func (c *change) addList(rc *tabular.RowChange, list rowList, offset int) {
	arg := c.arg(list.text)
	c.results = append(c.results, "json((SELECT json_group_array(json_array(j.key, r.seq)) FROM json_each("+arg+") AS j JOIN tea_rows AS r ON r.name = ?2 AND r.key = json_extract(j.value, '$[0]')))")
	if rc.Merge {
		c.add(fmt.Sprintf("UPDATE tea_rows SET seq = %s + %d + n.i, body = %s FROM (SELECT key AS i, json_extract(value, '$[0]') AS k, json_extract(value, '$[1]') AS b FROM json_each(?3)) AS n WHERE name = ?2 AND tea_rows.key = n.k AND %s",
			lastChange, offset+1, setting(list.members, "n.b"), pending), c.table, list.text)
		return
	}
	if rc.Atomic {
		c.refused += " OR EXISTS (SELECT 1" + fmt.Sprintf(metSQL, arg, "NOT") + ")"
	}
	met := fmt.Sprintf(metSQL, "?3", "")
	removals := met + " AND json_extract(j.value, '$[1]') IS NULL"
	if list.deletes {
		c.add("UPDATE tea_tables SET removed = version + "+strconv.Itoa(len(rc.Writes))+" WHERE name = ?2 AND EXISTS (SELECT 1"+removals+") AND "+pending, c.table, list.text)
	}
	n := fmt.Sprintf("%s + %d + j.key", lastChange, offset+1)
	c.add("INSERT INTO tea_rows (name, key, seq, body) SELECT ?2, coalesce(json_extract(j.value, '$[0]'), printf('%020d', "+n+")), "+n+", json_extract(j.value, '$[1]')"+met+" AND json_extract(j.value, '$[1]') IS NOT NULL AND "+pending+
		" ON CONFLICT (name, key) DO UPDATE SET seq = excluded.seq, body = excluded.body", c.table, list.text)
	if list.deletes {
		c.add("DELETE FROM tea_rows WHERE name = ?2 AND key IN (SELECT json_extract(j.value, '$[0]')"+removals+") AND "+pending, c.table, list.text)
	}
}

// readBefore sets the numbers of the existing rows from a result: their positions in the
// list and numbers. The result of a call of an earlier version has only the positions.
func (l rowList) readBefore(result json.RawMessage) error {
	var found [][2]int64
	if err := json.Unmarshal(result, &found); err != nil {
		var positions []int64
		if err := json.Unmarshal(result, &positions); err != nil {
			return tea.Errorf(tea.QueryError, "the server did not return the result of a change: %w", err)
		}
		found = nil
		for _, at := range positions {
			found = append(found, [2]int64{at, 1})
		}
	}
	for _, f := range found {
		if f[0] < int64(len(l.writes)) { // an earlier version had lists of other lengths
			l.writes[f[0]].Before = f[1]
		}
	}
	return nil
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

func (s rowStore) changeSelected(ctx context.Context, c *change, rc *tabular.RowChange) (result store.TableResult, err error) {
	sql, args := c.selected(rc.Where)
	if rc.Set == nil {
		c.add("DELETE FROM tea_rows WHERE name = ?2 AND "+sql+" AND "+pending, args...)
		c.add("UPDATE tea_tables SET removed = version + "+selectedCount+" WHERE name = ?2 AND "+selectedCount+" > 0 AND "+pending, rc.Table)
	} else {
		names, err := membersOf(rc.Set)
		if err != nil {
			return result, err
		}
		args = append(args, string(rc.Set))
		c.add("UPDATE tea_rows SET seq = "+lastChange+" + n.rank, body = "+setting(names, "?"+strconv.Itoa(len(args)+1))+
			" FROM (SELECT key AS k, row_number() OVER (ORDER BY seq) AS rank FROM tea_rows WHERE name = ?2 AND "+sql+") AS n WHERE name = ?2 AND key = n.k AND "+pending, args...)
	}
	o, err := s.do(ctx, c, selectedCount)
	if err != nil {
		return result, err
	}
	var n int64
	err = json.Unmarshal(o.results[0], &n)
	result = rc.CountSelected(n)
	result.Version = o.version + n
	return result, err
}
