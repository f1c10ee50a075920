package embedded

import (
	"context"
	"fmt"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// tombstoneTable has a row for each tombstone, until forget removes it.
const tombstoneTable = "tea_deleted"

// tombstone returns the row of a tombstone, for [store.Tx.Append].
func tombstone(feed store.Feed, seq int64, space, key string, now int64) []any {
	return []any{string(feed), seq, space, key, now}
}

// tombstones returns the last tombstones of the rows with these names.
func (d *Driver) tombstones(ctx context.Context, feed store.Feed, names []store.RecordName) ([]store.Row, error) {
	wanted := make(map[store.RecordName]bool, len(names))
	keys := make([]string, len(names))
	for i, n := range names {
		wanted[n], keys[i] = true, n.Key
	}
	last := map[store.RecordName]store.Row{}
	err := eachPart(keys, func(list string, args []any) error {
		rows, err := d.engine.Query(ctx, "SELECT space, key, seq, deleted_at FROM tea_deleted WHERE feed = ? AND key IN "+list+" ORDER BY seq", append([]any{string(feed)}, args...)...)
		r := store.Row{RecordName: store.RecordName{Feed: feed}, Deleted: true}
		return store.Scan(rows, err, func() {
			if wanted[r.RecordName] {
				last[r.RecordName] = r
			}
		}, &r.Space, &r.Key, &r.Seq, &r.Updated)
	})
	if err != nil {
		return nil, fmt.Errorf("read the deletions: %w", err)
	}
	all := make([]store.Row, 0, len(last))
	for _, r := range last {
		all = append(all, r)
	}
	return all, nil
}

// lastTombstone returns the largest number of the feed's tombstones, including removed ones.
func lastTombstone(ctx context.Context, engine store.QueryEngine, feed store.Feed) (int64, error) {
	return store.Int(engine.Query(ctx, `SELECT coalesce(max(seq), 0) FROM (SELECT max(seq) AS seq FROM tea_deleted WHERE feed = ?
		UNION ALL SELECT max(seq) FROM tea_forgotten WHERE feed = ?) AS taken`, string(feed), string(feed)))
}

// forget removes the tombstones of deletions before an instant.
func (d *Driver) forget(ctx context.Context, before int64) error {
	old, err := store.Int(d.engine.Query(ctx, "SELECT count(*) FROM tea_deleted WHERE deleted_at < ?", before))
	if err != nil || old == 0 {
		return err
	}
	return d.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		for _, feed := range store.Feeds() {
			// Remove all up to the last old one: the numbers count, not the clock.
			last, err := store.Int(tx.Query(ctx, "SELECT coalesce(max(seq), 0) FROM tea_deleted WHERE feed = ? AND deleted_at < ?", string(feed), before))
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
