// Package deletion keeps the names of deleted records in the database, as
// tombstones for the feeds of a [store.Replica], and returns pages of these
// feeds.
package deletion

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Table has a row for each tombstone. See Row.
const Table = "tea_deleted"

// Row returns the row of a tombstone, for [store.Tx.Append]. now is in
// microseconds.
func Row(feed store.Feed, seq int64, space, key string, now int64) []any {
	return []any{string(feed), seq, space, key, now}
}

// Last returns the largest number of the feed's tombstones, including removed
// ones.
func Last(ctx context.Context, engine store.QueryEngine, feed store.Feed) (int64, error) {
	return store.Int(engine.Query(ctx, `SELECT coalesce(max(seq), 0) FROM (SELECT max(seq) AS seq FROM tea_deleted WHERE feed = ?
		UNION ALL SELECT max(seq) FROM tea_forgotten WHERE feed = ?) AS taken`, string(feed), string(feed)))
}

// Forgotten returns the number up to which the tombstones of a feed were removed.
func Forgotten(ctx context.Context, engine store.QueryEngine, feed store.Feed) (int64, error) {
	return store.Int(engine.Query(ctx, "SELECT coalesce(max(seq), 0) FROM tea_forgotten WHERE feed = ?", string(feed)))
}

// CheckBounds returns an error that wraps [store.ErrTooOld] if a feed no longer has all
// deletions after the query's number. last is the feed's last number, forgotten the
// number up to which its tombstones were removed.
func CheckBounds(query store.ChangeQuery, forgotten, last int64) error {
	switch {
	case query.After == 0:
	case query.After > last:
		return fmt.Errorf("%s after change %d, but the last one is %d: %w, and %w", query.Feed, query.After, last, store.ErrTooOld, store.ErrUnknownChange)
	case query.After < forgotten && !query.FromStart:
		return fmt.Errorf("%s after change %d, but deletions up to %d were removed: %w", query.Feed, query.After, forgotten, store.ErrTooOld)
	}
	return nil
}

// Rows returns the last tombstones under these names.
func Rows(ctx context.Context, engine store.QueryEngine, names []store.RecordName) ([]store.Row, error) {
	wanted := make(map[store.RecordName]bool, len(names))
	keys := make([]string, len(names))
	for i, n := range names {
		wanted[n], keys[i] = true, n.Key
	}
	found := map[store.RecordName]store.Row{}
	for part := range slices.Chunk(keys, lookUp) {
		list, args := store.InList(part)
		rows, err := engine.Query(ctx, "SELECT feed, space, key, seq, deleted_at FROM tea_deleted WHERE key IN "+list+" ORDER BY seq", args...)
		var feed string
		r := store.Row{Deleted: true}
		err = store.Scan(rows, err, func() {
			if r.Feed = store.Feed(feed); wanted[r.RecordName] {
				found[r.RecordName] = r
			}
		}, &feed, &r.Space, &r.Key, &r.Seq, &r.Updated)
		if err != nil {
			return nil, fmt.Errorf("read the deletions: %w", err)
		}
	}
	return slices.Collect(maps.Values(found)), nil
}

// RowPage returns the page of changes with these rows, of which the query's limit was
// read.
func RowPage(q store.RowChanges, rows []store.Row) store.RowPage {
	page := store.RowPage{Rows: rows, Last: q.After, More: len(rows) == q.Limit}
	if len(rows) > 0 {
		page.Last = rows[len(rows)-1].Seq
	}
	return page
}

// lookUp is how many keys one statement looks up.
const lookUp = 500

// Sweep removes the tombstones of deletions before an instant.
func Sweep(ctx context.Context, engine store.QueryEngine, before time.Time) error {
	old, err := store.Int(engine.Query(ctx, "SELECT count(*) FROM tea_deleted WHERE deleted_at < ?", before.UnixMicro()))
	if err != nil || old == 0 {
		return err
	}
	return engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		for _, feed := range store.Feeds() {
			// Remove all up to the last old one: the numbers count, not the clock.
			last, err := store.Int(tx.Query(ctx, "SELECT coalesce(max(seq), 0) FROM tea_deleted WHERE feed = ? AND deleted_at < ?", string(feed), before.UnixMicro()))
			if err != nil {
				return err
			}
			if last == 0 {
				continue
			}
			if _, err := tx.Exec(ctx, "DELETE FROM tea_deleted WHERE feed = ? AND seq <= ?", string(feed), last); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "INSERT INTO tea_forgotten VALUES (?, ?) ON CONFLICT (feed) DO UPDATE SET seq = excluded.seq", string(feed), last); err != nil {
				return err
			}
		}
		return nil
	})
}

// Page returns a page of rows. rows has one more row than the query's limit if
// there are more. record returns false for a row that is no longer a record.
func Page[T any](query store.ChangeQuery, rows []T, seq func(T) int64, record func(T) (store.Record, bool, error)) (store.ChangePage, error) {
	page := store.ChangePage{Last: query.After}
	size := int64(0)
	for i, row := range rows {
		if i == max(query.Limit, 1) {
			page.More = true
			break
		}
		r, ok, err := record(row)
		if err != nil {
			return store.ChangePage{}, err
		}
		if size += int64(len(r.Body)); query.MaxBytes > 0 && size > query.MaxBytes && len(page.Records) > 0 {
			page.More = true
			break
		}
		page.Last = seq(row)
		if ok {
			page.Records = append(page.Records, r)
		}
	}
	return page, nil
}
