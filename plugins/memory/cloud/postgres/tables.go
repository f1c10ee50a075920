package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// keepCalls is how long the results of calls are kept.
const keepCalls = "30 days"

// rowStore has the rows of data.*. It is safe for concurrent use.
type rowStore struct{ d *database }

var _ tabular.RowStore = rowStore{}

// tableSelector runs queries that can read the given views only.
type tableSelector struct{ selector }

func (s tableSelector) Select(ctx context.Context, query string, bounds store.Sandbox) (store.Table, error) {
	return s.run(ctx, query, bounds)
}

// States has versions only, since no table is copied.
func (s rowStore) States(ctx context.Context) (states map[string]tabular.TableState, err error) {
	err = s.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		states = map[string]tabular.TableState{}
		rows, _ := c.Query(ctx, "SELECT name, version FROM tea_tables") // ForEachRow returns the error
		var name string
		var one tabular.TableState
		_, err := pgx.ForEachRow(rows, []any{&name, &one.Version}, func() error { states[name] = one; return nil })
		return err
	})
	return states, err
}

func (s rowStore) Count(ctx context.Context, table string) (rows, version int64, err error) {
	err = s.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		return c.QueryRow(ctx, "SELECT (SELECT count(*) FROM tea_rows WHERE name = $1), coalesce((SELECT version FROM tea_tables WHERE name = $1), 0)", table).Scan(&rows, &version)
	})
	return rows, version, err
}

// Read returns a page of rows. The stable order is by hash.
func (s rowStore) Read(ctx context.Context, q tabular.RowQuery) (p tabular.RowPage, err error) {
	order, after := "seq", any(q.After)
	if q.Stable {
		if order = "key"; q.Position != "" {
			after, err = hex.DecodeString(q.Position)
		} else {
			after = []byte{}
		}
	}
	if err != nil {
		return p, tea.Errorf(tea.ValidationError, "the position %q is not valid: %w", q.Position, err)
	}
	// The server reads no more than a page of large rows.
	sql := strings.ReplaceAll(`SELECT key, seq, body::text, before FROM (SELECT *, sum(pg_column_size(body)) OVER (ORDER BY {order}) AS before
		FROM (SELECT key, seq, body FROM tea_rows WHERE name = $1 AND {order} > $2 ORDER BY {order} LIMIT $3) AS page) AS sized ORDER BY {order}`, "{order}", order)
	err = s.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		p = tabular.RowPage{}
		rows, _ := c.Query(ctx, sql, q.Table, after, q.Limit+1)
		var r tabular.Row
		var key []byte
		var body string
		var size int64
		_, err := pgx.ForEachRow(rows, []any{&key, &r.Seq, &body, &size}, func() error {
			if p.More = p.More || len(p.Rows) == q.Limit || len(p.Rows) > 0 && size > maxPage; p.More {
				return nil
			}
			r.Body, p.Next = json.RawMessage(body), hex.EncodeToString(key)
			p.Rows = append(p.Rows, r)
			return nil
		})
		return err
	})
	return p, err
}

func (s rowStore) Find(ctx context.Context, table string, keys []string) (all []tabular.Row, err error) {
	hashes := make([][]byte, len(keys))
	for i, key := range keys {
		hashes[i] = keyOf(key)
	}
	err = s.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		all = nil
		rows, _ := c.Query(ctx, "SELECT seq, body::text FROM tea_rows WHERE name = $1 AND key = ANY($2)", table, hashes)
		var r tabular.Row
		var body string
		_, err := pgx.ForEachRow(rows, []any{&r.Seq, &body}, func() error {
			r.Body = json.RawMessage(body)
			all = append(all, r)
			return nil
		})
		return err
	})
	return all, err
}

func keyOf(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

// change is a change of a table in its transaction.
type change struct {
	*tabular.RowChange
	keys     [][]byte // of the writes; nil = none
	version  int64
	selected int64
	result   store.TableResult
}

// Change runs a change in a transaction after other changes of the table, unless the call
// was done before.
func (s rowStore) Change(ctx context.Context, rc *tabular.RowChange) (result store.TableResult, err error) {
	if err := rc.CheckText(); err != nil {
		return result, err
	}
	results, err := s.d.write(ctx, func(ctx context.Context, c conn, id []byte) ([]string, error) {
		x := &change{RowChange: rc, keys: make([][]byte, len(rc.Writes))}
		var hash, before string
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		b.Queue(noteSQL, id)
		b.Queue("INSERT INTO tea_tables VALUES ($1, 0) ON CONFLICT (name) DO UPDATE SET version = tea_tables.version RETURNING version", rc.Table).
			QueryRow(func(row pgx.Row) error { return row.Scan(&x.version) })
		b.Queue("SELECT hash, result FROM tea_calls WHERE key = $1", rc.Call.Key).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&hash, &before}, func() error { return nil })
			return err
		})
		x.find(b)
		if err := s.d.transaction(ctx, c, b); err != nil {
			return nil, err
		}
		var err error
		if rc.Call.Key == "" || hash != rc.Call.Hash {
			before, b, err = x.done(id)
		} else {
			b = &pgx.Batch{}
			b.Queue("ROLLBACK")
		}
		if err != nil {
			_, failed := c.Exec(context.WithoutCancel(ctx), "ROLLBACK")
			return nil, errors.Join(err, failed)
		}
		return []string{before}, s.d.transaction(ctx, c, b)
	})
	if err == nil && len(results) > 0 {
		err = json.Unmarshal([]byte(results[0]), &result)
	}
	return result, err
}

// find adds the statement that counts the selected rows, or reads the numbers of the
// rows of the writes.
func (x *change) find(b *pgx.Batch) {
	if x.Where.SQL != "" {
		sql, args := conditionOf(x.Where, x.Table)
		b.Queue("SELECT count(*) FROM tea_rows WHERE name = $1 AND "+sql, args...).QueryRow(func(row pgx.Row) error { return row.Scan(&x.selected) })
		return
	}
	at := map[string]int{}
	var named [][]byte
	for i := range x.Writes {
		w := &x.Writes[i]
		if w.Before, w.Seq = 0, 0; w.Key != "" {
			x.keys[i] = keyOf(w.Key)
			at[string(x.keys[i])], named = i, append(named, x.keys[i])
		}
	}
	if len(named) == 0 {
		return
	}
	b.Queue("SELECT key, seq FROM tea_rows WHERE name = $1 AND key = ANY($2)", x.Table, named).Query(func(rows pgx.Rows) error {
		var key []byte
		var seq int64
		_, err := pgx.ForEachRow(rows, []any{&key, &seq}, func() error { x.Writes[at[string(key)]].Before = seq; return nil })
		return err
	})
}

// done returns the result of a change, and the statements that write and commit
// it.
func (x *change) done(id []byte) (text string, b *pgx.Batch, err error) {
	b = &pgx.Batch{}
	if x.Where.SQL != "" {
		x.writeSelected(b)
	} else if err := x.write(b); err != nil {
		return "", nil, err
	}
	x.result.Version = x.version
	raw, err := json.Marshal(x.result)
	if err != nil {
		return "", nil, err
	}
	text = string(raw)
	b.Queue("UPDATE tea_tables SET version = $2 WHERE name = $1", x.Table, x.version)
	b.Queue("UPDATE tea_writes SET result = $2 WHERE id = $1", id, text)
	if x.Call.Key != "" {
		b.Queue("INSERT INTO tea_calls VALUES ($1, $2, $3) ON CONFLICT (key) DO UPDATE SET hash = excluded.hash, result = excluded.result, at = now()", x.Call.Key, x.Call.Hash, text)
		b.Queue("DELETE FROM tea_calls WHERE key IN (SELECT key FROM tea_calls WHERE at < now() - interval '" + keepCalls + "' LIMIT 100)")
	}
	b.Queue("COMMIT")
	return text, b, nil
}

// writeSelected adds the statement that changes the selected rows.
func (x *change) writeSelected(b *pgx.Batch) {
	x.result = x.CountSelected(x.selected)
	before := x.version
	switch x.version += x.selected; {
	case x.selected == 0:
	case x.Set == nil:
		sql, args := conditionOf(x.Where, x.Table)
		b.Queue("DELETE FROM tea_rows WHERE name = $1 AND "+sql, args...)
	default:
		sql, args := conditionOf(x.Where, x.Table, before, string(x.Set))
		b.Queue("UPDATE tea_rows AS r SET seq = n.seq, body = body || $3::jsonb FROM (SELECT key AS of, $2 + row_number() OVER (ORDER BY seq) AS seq FROM tea_rows WHERE name = $1 AND "+sql+") AS n WHERE r.name = $1 AND r.key = n.of", args...)
	}
}

const (
	// insertRowsSQL writes rows in the order of their numbers.
	insertRowsSQL = `INSERT INTO tea_rows SELECT $1, i.key, i.seq, i.body::jsonb FROM unnest($2::bytea[], $3::bigint[], $4::text[]) AS i (key, seq, body)
	ON CONFLICT (name, key) DO UPDATE SET seq = excluded.seq, body = excluded.body`
	// mergeRowsSQL sets members of rows.
	mergeRowsSQL = `UPDATE tea_rows AS r SET seq = i.seq, body = r.body || i.body::jsonb FROM unnest($2::bytea[], $3::bigint[], $4::text[]) AS i (key, seq, body)
	WHERE r.name = $1 AND r.key = i.key`
)

// write adds the statements of the writes whose conditions are met.
func (x *change) write(b *pgx.Batch) error {
	if x.Refused() != nil {
		return tabular.ErrRefused
	}
	x.result = x.Count()
	var keys, gone [][]byte
	var numbers []int64
	var bodies []string
	for i := range x.Writes {
		w := &x.Writes[i]
		if w.Seq = w.Before; !x.Met(w) || w.Deleted && w.Before == 0 {
			continue
		}
		if x.version++; w.Deleted {
			w.Seq, gone = 0, append(gone, x.keys[i])
			continue
		}
		if w.Seq = x.version; w.Key == "" { // the number is unique
			x.keys[i] = keyOf(strconv.FormatInt(w.Seq, 10))
		}
		keys, numbers, bodies = append(keys, x.keys[i]), append(numbers, w.Seq), append(bodies, string(w.Body))
	}
	if len(keys) > 0 {
		sql := insertRowsSQL
		if x.Merge {
			sql = mergeRowsSQL
		}
		b.Queue(sql, x.Table, keys, numbers, bodies)
	}
	if len(gone) > 0 {
		b.Queue("DELETE FROM tea_rows WHERE name = $1 AND key = ANY($2)", x.Table, gone)
	}
	return nil
}

// conditionOf returns a condition with parameters that follow others, and all
// arguments.
func conditionOf(where tabular.Where, before ...any) (sql string, args []any) {
	parts := strings.Split(where.SQL, "?")
	for i := range parts[1:] {
		parts[i] += fmt.Sprintf("$%d", len(before)+i+1)
	}
	return "(" + strings.Join(parts, "") + ")", append(before, where.Args...)
}
