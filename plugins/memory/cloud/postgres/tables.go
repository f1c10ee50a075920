package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/catalog"
	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// keepCalls is how long the results of calls are kept.
const keepCalls = "30 days"

// rowStore has the rows of data.*. It is safe for concurrent use.
type rowStore struct{ d *database }

var _ tabular.RowStore = rowStore{}

func newTables(d *database, metadata store.MetadataStore) store.TableStore {
	shared := &tabular.Shared{Catalog: catalog.New(metadata, clock.New()), Stored: rowStore{d}, Selector: tableSelector{selector{d}}}
	return &tabular.SharedReplica{Shared: shared, Numbered: rowStore{d}}
}

// tableSelector runs queries that can read the given views only.
type tableSelector struct{ selector }

func (s tableSelector) Select(ctx context.Context, query string, bounds store.Sandbox) (store.Table, error) {
	return s.run(ctx, query, bounds)
}

func (rowStore) From(table string) string {
	return "SELECT * FROM main.tea_rows WHERE name = '" + table + "'"
}

func (s rowStore) Count(ctx context.Context, table string) (rows, version int64, err error) {
	err = s.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		return c.QueryRow(ctx, "SELECT (SELECT count(*) FROM tea_rows WHERE name = $1), coalesce((SELECT version FROM tea_tables WHERE name = $1), 0)", table).Scan(&rows, &version)
	})
	return rows, version, err
}

func (s rowStore) Page(ctx context.Context, table, after string, limit int) (bodies []json.RawMessage, next string, err error) {
	err = s.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		bodies, next = nil, ""
		// The server reads at most one page of large rows.
		rows, _ := c.Query(ctx, `SELECT encode(key, 'hex'), body::text, before FROM (SELECT key, body, sum(pg_column_size(body)) OVER (ORDER BY key) AS before
			FROM (SELECT key, body FROM tea_rows WHERE name = $1 AND key > decode($2, 'hex') ORDER BY key LIMIT $3) AS page) AS sized ORDER BY key`, table, after, limit)
		var key, body string
		var size int64
		more := false
		n := 0
		_, err := pgx.ForEachRow(rows, []any{&key, &body, &size}, func() error {
			if n++; len(bodies) > 0 && size > maxPage {
				more = true
				return nil
			}
			bodies, next = append(bodies, json.RawMessage(body)), key
			return nil
		})
		if err == nil && n < limit && !more {
			next = ""
		}
		return err
	})
	return bodies, next, err
}

// change is a change of a table in its transaction.
type change struct {
	s       rowStore
	c       conn
	table   string
	version int64
	result  store.TableResult
}

// write runs fn in a transaction that is serialized with other changes of the table, unless the call was already done.
// fn returns the statements that write.
func (s rowStore) write(ctx context.Context, table string, call store.TableCall, fn func(ctx context.Context, x *change) (*pgx.Batch, error)) (result store.TableResult, err error) {
	results, err := s.d.write(ctx, func(ctx context.Context, c conn, id []byte) ([]string, error) {
		x := &change{s: s, c: c, table: table}
		var hash, before string
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		b.Queue(noteSQL, id)
		b.Queue("INSERT INTO tea_tables VALUES ($1, 0) ON CONFLICT (name) DO UPDATE SET version = tea_tables.version RETURNING version", table).
			QueryRow(func(row pgx.Row) error { return row.Scan(&x.version) })
		b.Queue("SELECT hash, result FROM tea_calls WHERE key = $1", call.Key).Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&hash, &before}, func() error { return nil })
			return err
		})
		if err := s.d.transaction(ctx, c, b); err != nil {
			return nil, err
		}
		var err error
		if call.Key == "" || hash != call.Hash {
			before, b, err = x.done(ctx, id, call, fn)
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

// done returns the result of a change, and the statements that write and commit it.
func (x *change) done(ctx context.Context, id []byte, call store.TableCall, fn func(ctx context.Context, x *change) (*pgx.Batch, error)) (text string, b *pgx.Batch, err error) {
	if b, err = fn(ctx, x); err != nil {
		return "", nil, err
	}
	x.result.Version = x.version
	raw, err := json.Marshal(x.result)
	if err != nil {
		return "", nil, err
	}
	text = string(raw)
	b.Queue("UPDATE tea_tables SET version = $2 WHERE name = $1", x.table, x.version)
	b.Queue("UPDATE tea_writes SET result = $2 WHERE id = $1", id, text)
	if call.Key != "" {
		b.Queue("INSERT INTO tea_calls VALUES ($1, $2, $3) ON CONFLICT (key) DO UPDATE SET hash = excluded.hash, result = excluded.result, at = now()", call.Key, call.Hash, text)
		b.Queue("DELETE FROM tea_calls WHERE key IN (SELECT key FROM tea_calls WHERE at < now() - interval '" + keepCalls + "' LIMIT 100)")
	}
	b.Queue("COMMIT")
	return text, b, nil
}

// take assigns the next n numbers and returns the number before them.
func (x *change) take(n int) int64 {
	before := x.version
	x.version += int64(n)
	return before
}

func keyOf(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return sum[:]
}

// checkText refuses text that jsonb cannot store.
func checkText(rows []tabular.JSONRow) error {
	for _, r := range rows {
		if tabular.HasNUL(r.Body) {
			return tea.Errorf(tea.ValidationError, "row %d: PostgreSQL cannot store the character U+0000; replace it", r.At)
		}
	}
	return nil
}

// insertRowsSQL writes rows in the order of their numbers.
const insertRowsSQL = `INSERT INTO tea_rows SELECT $1, i.key, i.seq, i.body::jsonb FROM unnest($2::bytea[], $3::bigint[], $4::text[]) AS i (key, seq, body)
	ON CONFLICT (name, key) DO UPDATE SET seq = excluded.seq, body = excluded.body`

func (s rowStore) Insert(ctx context.Context, table string, rows []tabular.JSONRow, conflict store.RowConflict, call store.TableCall) (result store.TableResult, refused *tabular.JSONRow, err error) {
	if err := checkText(rows); err != nil {
		return result, nil, err
	}
	result, err = s.write(ctx, table, call, func(ctx context.Context, x *change) (*pgx.Batch, error) {
		exists, err := x.existing(ctx, rows)
		if err != nil {
			return nil, err
		}
		var keys [][]byte
		var bodies []string
		for i, r := range rows {
			there := r.Key != "" && exists[string(keyOf(r.Key))]
			written, err := tabular.CountInsert(&x.result, there, conflict)
			if err != nil {
				refused = &rows[i]
				return nil, err
			}
			if !written {
				continue
			}
			if r.Key == "" { // the number is unique
				r.Key = strconv.FormatInt(x.version+int64(len(keys))+1, 10)
			}
			keys, bodies = append(keys, keyOf(r.Key)), append(bodies, string(r.Body))
		}
		b := &pgx.Batch{}
		if len(keys) > 0 {
			b.Queue(insertRowsSQL, table, keys, numbers(x.take(len(keys)), len(keys)), bodies)
		}
		return b, nil
	})
	if errors.Is(err, tabular.ErrKeyExists) {
		err = nil
	}
	return result, refused, err
}

// numbers returns the n numbers after before.
func numbers(before int64, n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = before + int64(i) + 1
	}
	return all
}

// existing returns the keys of the rows that exist.
func (x *change) existing(ctx context.Context, rows []tabular.JSONRow) (map[string]bool, error) {
	var keys [][]byte
	for _, r := range rows {
		if r.Key != "" {
			keys = append(keys, keyOf(r.Key))
		}
	}
	exists := map[string]bool{}
	if len(keys) == 0 {
		return exists, nil
	}
	found, _ := x.c.Query(ctx, "SELECT key FROM tea_rows WHERE name = $1 AND key = ANY($2)", x.table, keys) // ForEachRow returns the error
	var key []byte
	_, err := pgx.ForEachRow(found, []any{&key}, func() error { exists[string(key)] = true; return nil })
	return exists, err
}

// updateRowsSQL sets members of rows with keys.
const updateRowsSQL = `UPDATE tea_rows AS r SET seq = i.seq, body = r.body || i.body::jsonb FROM unnest($2::bytea[], $3::bigint[], $4::text[]) AS i (key, seq, body)
	WHERE r.name = $1 AND r.key = i.key`

func (s rowStore) Update(ctx context.Context, table string, where tabular.Where, rows []tabular.JSONRow, call store.TableCall) (store.TableResult, error) {
	if err := checkText(rows); err != nil {
		return store.TableResult{}, err
	}
	return s.write(ctx, table, call, func(ctx context.Context, x *change) (*pgx.Batch, error) {
		b := &pgx.Batch{}
		if where.SQL != "" {
			n, err := x.count(ctx, where)
			x.result.Updated, x.result.Missing = n, max(0, where.Keys-n)
			before := x.take(int(n))
			if n > 0 {
				sql, args := conditionOf(where, table, before, string(rows[0].Body))
				b.Queue("UPDATE tea_rows AS r SET seq = n.seq, body = body || $3::jsonb FROM (SELECT key AS of, $2 + row_number() OVER (ORDER BY seq) AS seq FROM tea_rows WHERE name = $1 AND "+sql+") AS n WHERE r.name = $1 AND r.key = n.of", args...)
			}
			return b, err
		}
		exists, err := x.existing(ctx, rows)
		if err != nil {
			return nil, err
		}
		var keys [][]byte
		var bodies []string
		for _, r := range rows {
			key := keyOf(r.Key)
			if !exists[string(key)] {
				x.result.Missing++
				continue
			}
			keys, bodies = append(keys, key), append(bodies, string(r.Body))
		}
		if x.result.Updated = int64(len(keys)); len(keys) > 0 {
			b.Queue(updateRowsSQL, table, keys, numbers(x.take(len(keys)), len(keys)), bodies)
		}
		return b, nil
	})
}

func (s rowStore) Delete(ctx context.Context, table string, where tabular.Where, call store.TableCall) (store.TableResult, error) {
	return s.write(ctx, table, call, func(ctx context.Context, x *change) (*pgx.Batch, error) {
		n, err := x.count(ctx, where)
		x.result.Deleted, x.result.Missing = n, max(0, where.Keys-n)
		x.take(int(n))
		b := &pgx.Batch{}
		if n > 0 {
			sql, args := conditionOf(where, table)
			b.Queue("DELETE FROM tea_rows WHERE name = $1 AND "+sql, args...)
		}
		return b, err
	})
}

// count returns the number of selected rows.
func (x *change) count(ctx context.Context, where tabular.Where) (n int64, err error) {
	sql, args := conditionOf(where, x.table)
	err = x.c.QueryRow(ctx, "SELECT count(*) FROM tea_rows WHERE name = $1 AND "+sql, args...).Scan(&n)
	return n, err
}

// conditionOf returns a condition whose parameters follow others, and all arguments.
func conditionOf(where tabular.Where, before ...any) (sql string, args []any) {
	parts := strings.Split(where.SQL, "?")
	for i := range parts[1:] {
		parts[i] += fmt.Sprintf("$%d", len(before)+i+1)
	}
	return "(" + strings.Join(parts, "") + ")", append(before, where.Args...)
}
