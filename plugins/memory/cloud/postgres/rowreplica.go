package postgres

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tabular"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func (s rowStore) Versions(ctx context.Context) (versions map[string]int64, err error) {
	err = s.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		versions = map[string]int64{}
		rows, _ := c.Query(ctx, "SELECT name, version FROM tea_tables") // ForEachRow returns the error
		var name string
		var version int64
		_, err := pgx.ForEachRow(rows, []any{&name, &version}, func() error { versions[name] = version; return nil })
		return err
	})
	return versions, err
}

func (s rowStore) Changed(ctx context.Context, table string, after int64, limit int) (all []tabular.NumberedRow, more bool, err error) {
	err = s.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		all, more = nil, false
		rows, _ := c.Query(ctx, `SELECT seq, body::text, before FROM (SELECT seq, body, sum(pg_column_size(body)) OVER (ORDER BY seq) AS before
			FROM (SELECT seq, body FROM tea_rows WHERE name = $1 AND seq > $2 ORDER BY seq LIMIT $3) AS page) AS sized ORDER BY seq`, table, after, limit+1)
		var r tabular.NumberedRow
		var body string
		var size int64
		_, err := pgx.ForEachRow(rows, []any{&r.Seq, &body, &size}, func() error {
			if more = more || len(all) == limit || len(all) > 0 && size > maxPage; more {
				return nil
			}
			r.Body = json.RawMessage(body)
			all = append(all, r)
			return nil
		})
		return err
	})
	return all, more, err
}

func (s rowStore) Find(ctx context.Context, table string, keys []string) (all []tabular.NumberedRow, err error) {
	names, hashes := make(map[string]string, len(keys)), make([][]byte, len(keys))
	for i, key := range keys {
		hashes[i] = keyOf(key)
		names[string(hashes[i])] = key
	}
	err = s.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		all = nil
		rows, _ := c.Query(ctx, "SELECT key, seq, body::text FROM tea_rows WHERE name = $1 AND key = ANY($2)", table, hashes)
		var hash []byte
		var r tabular.NumberedRow
		var body string
		_, err := pgx.ForEachRow(rows, []any{&hash, &r.Seq, &body}, func() error {
			r.Key, r.Body = names[string(hash)], json.RawMessage(body)
			all = append(all, r)
			return nil
		})
		return err
	})
	return all, err
}

func (s rowStore) Put(ctx context.Context, table string, writes []tabular.RowWrite) (results []int64, err error) {
	all := make([][]byte, len(writes))
	for i, w := range writes {
		all[i] = keyOf(w.Key)
	}
	_, err = s.write(ctx, table, store.TableCall{}, func(ctx context.Context, x *change) (*pgx.Batch, error) {
		have := map[string]int64{}
		found, _ := x.c.Query(ctx, "SELECT key, seq FROM tea_rows WHERE name = $1 AND key = ANY($2)", table, all)
		var hash []byte
		var seq int64
		if _, err := pgx.ForEachRow(found, []any{&hash, &seq}, func() error { have[string(hash)] = seq; return nil }); err != nil {
			return nil, err
		}
		results = make([]int64, len(writes))
		var keys, gone [][]byte
		var bodies []string
		before := x.version
		for i, w := range writes {
			switch seq := have[string(all[i])]; {
			case w.If != store.AnySeq && w.If != seq:
				results[i] = -1
			case w.Deleted && seq != 0:
				gone = append(gone, all[i])
			case !w.Deleted:
				keys, bodies = append(keys, all[i]), append(bodies, string(w.Body))
				results[i] = before + int64(len(keys))
			}
		}
		b := &pgx.Batch{}
		if x.take(len(keys) + len(gone)); len(keys) > 0 {
			b.Queue(insertRowsSQL, table, keys, numbers(before, len(keys)), bodies)
		}
		if len(gone) > 0 {
			b.Queue("DELETE FROM tea_rows WHERE name = $1 AND key = ANY($2)", table, gone)
		}
		return b, nil
	})
	return results, err
}
