package longterm

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// sweepBatch is how many rows go at a time: a sweep must not keep
// writers waiting.
const sweepBatch = 200

// Sweep removes what expired before the given instant, what the index does not
// no longer needs, and blobs that no row names.
func (m *Memory) Sweep(ctx context.Context, before time.Time) (int, error) {
	if err := m.ready(ctx); err != nil {
		return 0, err
	}
	removed, err := m.sweepRows(ctx, before.UnixMicro())
	if err != nil {
		return removed, err
	}
	if err := m.sweepGone(ctx); err != nil {
		return removed, err
	}
	return removed, m.SweepContents(ctx)
}

func (m *Memory) sweepRows(ctx context.Context, before int64) (removed int, err error) {
	for {
		n := 0
		err := m.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
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

// sweepGone forgets what the index's files are past; where there is no index,
// all is past. The last number stays, so that it is not given again, as an
// entry or as a change; so do those of entries that are still there.
func (m *Memory) sweepGone(ctx context.Context) error {
	m.opening.Lock() // opening an index relies on ltm_gone
	defer m.opening.Unlock()
	watermark, err := m.pastOfIndex(ctx)
	if err != nil || watermark == 0 {
		return err
	}
	return m.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM ltm_gone WHERE seq <= ? AND seq < (SELECT max(seq) FROM ltm_gone)
			AND id < (SELECT max(id) FROM ltm_gone) AND id NOT IN (SELECT id FROM ltm)`, watermark)
		return err
	})
}

// pastOfIndex is the change up to which no index needs the removals.
func (m *Memory) pastOfIndex(ctx context.Context) (int64, error) {
	m.mu.Lock()
	index := m.index
	m.mu.Unlock()
	if index != nil {
		return index.Watermark(), nil
	}
	identity, err := m.o.Engine.Identity(ctx)
	if err != nil {
		return 0, err
	}
	_, err = os.Stat(filepath.Join(m.o.IndexDir, identity))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return math.MaxInt64, nil
	default:
		return 0, err
	}
}

// SweepContents removes the blobs that no row names.
func (m *Memory) SweepContents(ctx context.Context) error { return m.large.Sweep(ctx, m.named) }

// named are those of the hashes whose values are not in their rows.
func (m *Memory) named(ctx context.Context, hashes []string) (map[string]bool, error) {
	list, args := store.InList(hashes)
	rows, err := m.o.Engine.Query(ctx, "SELECT DISTINCT content_hash FROM ltm WHERE value IS NULL AND content_hash IN "+list, args...)
	named := make(map[string]bool)
	var hash string
	err = store.Scan(rows, err, func() { named[hash] = true }, &hash)
	return named, err
}
