// Package deletion keeps the names of deleted records in the database, as
// tombstones for the feeds of a [store.Replica], and returns pages of these
// feeds.
package deletion

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
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

// Check returns an error that wraps [store.ErrTooOld] if the feed no longer has
// all deletions after the query's number. last is the feed's last number.
func Check(ctx context.Context, engine store.QueryEngine, query store.ChangeQuery, last int64) error {
	if query.After == 0 {
		return nil
	}
	forgotten, err := store.Int(engine.Query(ctx, "SELECT coalesce(max(seq), 0) FROM tea_forgotten WHERE feed = ?", string(query.Feed)))
	if err != nil {
		return fmt.Errorf("read the deletions of %s: %w", query.Feed, err)
	}
	return CheckBounds(query, forgotten, last)
}

// CheckBounds is Check for a feed whose tombstones were removed up to the number
// forgotten.
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

// Complete adds the numbers and times of the tombstones to deleted records.
func Complete(ctx context.Context, engine store.QueryEngine, records []store.Record) error {
	at := map[store.RecordName]int{}
	var keys []string
	for i, r := range records {
		if r.Deleted {
			at[r.RecordName] = i
			keys = append(keys, r.Key)
		}
	}
	for part := range slices.Chunk(keys, lookUp) {
		list, args := store.InList(part)
		rows, err := engine.Query(ctx, "SELECT feed, space, key, seq, deleted_at FROM tea_deleted WHERE key IN "+list+" ORDER BY seq", args...)
		var feed string
		var name store.RecordName
		var seq, deleted int64
		err = store.Scan(rows, err, func() {
			name.Feed = store.Feed(feed)
			if i, ok := at[name]; ok {
				records[i].Seq, records[i].Updated = seq, clock.FromMicro(deleted)
			}
		}, &feed, &name.Space, &name.Key, &seq, &deleted)
		if err != nil {
			return fmt.Errorf("read the deletions: %w", err)
		}
	}
	return nil
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
