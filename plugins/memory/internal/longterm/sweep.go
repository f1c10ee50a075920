package longterm

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

// sweepBatch is how many rows or blobs go at a time: a sweep must not keep
// writers waiting.
const sweepBatch = 200

// Sweep removes what expired before the given instant, what the index does not
// need to be told any more, and blobs that no row names.
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
	return removed, m.sweepBlobs(ctx)
}

func (m *Memory) sweepRows(ctx context.Context, before int64) (removed int, err error) {
	for {
		n := 0
		err := m.o.Engine.Write(ctx, func(ctx context.Context, tx store.Tx) error {
			b := &batch{m: m, tx: tx, now: before}
			old, err := b.old(ctx)
			if err != nil {
				return err
			}
			n = len(old)
			for _, r := range old {
				if err := b.remove(ctx, r); err != nil {
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

// old are some of the rows that expired before b.now.
func (b *batch) old(ctx context.Context) ([]*row, error) {
	rows, err := b.tx.Query(ctx, "SELECT id, key FROM ltm WHERE expires_at < ? LIMIT ?", b.now, sweepBatch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var old []*row
	for rows.Next() {
		r := &row{}
		if err := rows.Scan(&r.id, &r.key); err != nil {
			return nil, err
		}
		old = append(old, r)
	}
	return old, rows.Err()
}

// sweepGone forgets what the index's files are past; where there is no index,
// all is past. The last number stays, so that it is not given again, as an
// entry or as a change; so do those of entries that are still there.
func (m *Memory) sweepGone(ctx context.Context) error {
	m.opening.Lock() // whoever opens an index relies on what is gone
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

// pastOfIndex is the change up to which no index needs to be told what is gone.
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

// sweepBlobs removes the blobs that no row names.
func (m *Memory) sweepBlobs(ctx context.Context) error {
	var batch []string
	for info, err := range m.o.Blobs.List(ctx, blobPrefix) {
		if err != nil {
			return err
		}
		if batch = append(batch, info.Name); len(batch) < sweepBatch {
			continue
		}
		if err := m.removeUnnamed(ctx, batch); err != nil {
			return err
		}
		batch = batch[:0]
	}
	return m.removeUnnamed(ctx, batch)
}

// removeUnnamed removes those of the blobs that no row names. Few are so: they
// are found first, and asked for again while nobody can begin to rely on one.
func (m *Memory) removeUnnamed(ctx context.Context, names []string) error {
	unnamed, err := m.unnamed(ctx, names)
	if err != nil || len(unnamed) == 0 {
		return err
	}
	m.blobs.Lock()
	defer m.blobs.Unlock()
	if unnamed, err = m.unnamed(ctx, unnamed); err != nil {
		return err
	}
	for _, name := range unnamed {
		if err := m.o.Blobs.Delete(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (m *Memory) unnamed(ctx context.Context, names []string) (unnamed []string, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	hashes := make([]any, len(names))
	for i, name := range names {
		hashes[i] = path.Base(name)
	}
	rows, err := m.o.Engine.Query(ctx, "SELECT DISTINCT content_hash FROM ltm WHERE value IS NULL AND content_hash IN (?"+strings.Repeat(", ?", len(hashes)-1)+")", hashes...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	named := map[string]bool{}
	for rows.Next() {
		var hash string
		if err := rows.Scan(&hash); err != nil {
			return nil, err
		}
		named[hash] = true
	}
	for _, name := range names {
		if !named[path.Base(name)] {
			unnamed = append(unnamed, name)
		}
	}
	return unnamed, rows.Err()
}
