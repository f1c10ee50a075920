package embedded

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// sweepBatch is the number of rows removed by one transaction. It is small because
// writers wait for it.
const sweepBatch = 200

// sweep removes the entries that expired before an instant, removals that the index has applied, and blobs that no row
// refers to.
func (m *entries) sweep(ctx context.Context, before int64) (int, error) {
	if err := m.ready(ctx); err != nil {
		return 0, err
	}
	removed, err := m.sweepRows(ctx, before)
	if err != nil {
		return removed, err
	}
	if err := m.sweepGone(ctx); err != nil {
		return removed, err
	}
	return removed, m.sweepContents(ctx)
}

func (m *entries) sweepRows(ctx context.Context, before int64) (removed int, err error) {
	for {
		n := 0
		err := m.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
			b := &batch{m: m, tx: tx, now: before}
			old, err := b.old(ctx, "expires_at < ?", before, sweepBatch)
			if err != nil {
				return err
			}
			n = len(old)
			for _, r := range old {
				if _, err := b.drop(ctx, r); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return removed, err
		}
		removed += n
		if n < sweepBatch {
			return removed, nil
		}
	}
}

// old reads rows that are to be removed.
func (b *batch) old(ctx context.Context, condition string, args ...any) ([]*row, error) {
	rows, err := b.tx.Query(ctx, "SELECT id, key, coalesce(expires_at, 0) FROM ltm WHERE "+condition+" LIMIT ?", args...)
	var old []*row
	var r row
	err = store.Scan(rows, err, func() {
		one := r
		old = append(old, &one)
	}, &r.id, &r.key, &r.expiresAt)
	return old, err
}

// sweepGone deletes the removals up to the watermark of the index, all if there is no
// index. It keeps the last sequence number and the last id, so that they are not
// assigned again, the removals of existing entries, and the last mark that the index has.
func (m *entries) sweepGone(ctx context.Context) error {
	m.opening.Lock() // opening an index reads ltm_gone
	defer m.opening.Unlock()
	watermark, err := m.indexWatermark(ctx)
	if err != nil || watermark == 0 {
		return err
	}
	return m.engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM ltm_gone WHERE seq <= ? AND seq < (SELECT max(seq) FROM ltm_gone)
			AND id < (SELECT max(id) FROM ltm_gone) AND id NOT IN (SELECT id FROM ltm)
			AND (id > 0 OR seq < (SELECT max(seq) FROM ltm_gone WHERE id < 0 AND seq <= ?))`, watermark, watermark)
		return err
	})
}

// indexWatermark returns the number of the last change whose removals the index no longer needs.
func (m *entries) indexWatermark(ctx context.Context) (int64, error) {
	m.mu.Lock()
	index := m.index
	m.mu.Unlock()
	if index != nil {
		return index.Watermark(), nil
	}
	identity, err := m.engine.Identity(ctx)
	if err != nil {
		return 0, err
	}
	_, err = os.Stat(m.indexDir(identity))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return math.MaxInt64, nil
	default:
		return 0, err
	}
}

// sweepContents removes the blobs that no row refers to.
func (m *entries) sweepContents(ctx context.Context) error { return m.large.Sweep(ctx, m.named) }

// named returns the hashes that rows with values in blobs refer to.
func (m *entries) named(ctx context.Context, hashes []string) (map[string]bool, error) {
	list, args := store.InList(hashes)
	rows, err := m.engine.Query(ctx, "SELECT DISTINCT content_hash FROM ltm WHERE value IS NULL AND content_hash IN "+list, args...)
	named := make(map[string]bool)
	var hash string
	err = store.Scan(rows, err, func() { named[hash] = true }, &hash)
	return named, err
}
