package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"github.com/the-edge-agent/tea/plugins/memory/internal/metadata"
	"github.com/the-edge-agent/tea/plugins/memory/internal/vector"
	internal "github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// replayBytes is the approximate size of the vectors that replay reads at a time, at
	// least catchUp vectors. DuckDB scans the whole table each time.
	replayBytes = 8 << 20
	// flushAfter is the number of changes after which the companion file is written, or
	// half of the vectors if that is more, so that a bulk load does not write it often.
	flushAfter = 2000
	flushShare = 2
)

// collection is an open index and its state.
type collection struct {
	x         *vectors
	name      string
	dimension int
	index     *vector.Index
	// applied is the last change applied when the index was opened.
	applied int64
	// since counts the changes after the last flush.
	since    atomic.Int64
	flushing atomic.Bool
	metadata metadata.Cache
}

func (x *vectors) openCollection(ctx context.Context, name string, dimension int) (*collection, error) {
	options := x.search
	options.Dimension, options.Logger = dimension, x.Logger.With("collection", name)
	var err error
	if options.Owner, err = x.engine.Identity(ctx); err != nil {
		return nil, err
	}
	index, err := vector.Open(x.path(name), options)
	if err != nil {
		return nil, err
	}
	if lost := index.Discarded(); lost != nil && !errors.Is(lost, fs.ErrNotExist) {
		x.Logger.Warn("a vector index is rebuilt", "collection", name, "reason", lost.Error())
	}
	c := &collection{x: x, name: name, dimension: dimension, index: index}
	if err := c.replay(ctx); err != nil {
		return nil, errors.Join(err, index.Close())
	}
	return c, nil
}

// close writes the companion file. An error loses nothing, because the next start reads
// the rows.
func (c *collection) close() {
	if err := errors.Join(c.flush(), c.index.Close()); err != nil {
		c.x.Logger.Warn("a vector index cannot be written; the next start rebuilds it", "collection", c.name, "error", err.Error())
	}
}

// replay applies all changes after the watermark. The last few are applied while
// commits are blocked; after that, each commit updates the index.
func (c *collection) replay(ctx context.Context) error {
	if err := c.resetIfAhead(ctx); err != nil {
		return err
	}
	last, err := c.applyAll(ctx, c.index.Watermark(), catchUp)
	if err != nil {
		return err
	}
	var failed error
	closed := false
	err = c.x.engine.Barrier(ctx, func() {
		if c.applied, failed = c.applyAll(ctx, last, 1); failed != nil {
			return
		}
		c.x.mu.Lock()
		defer c.x.mu.Unlock()
		if closed = c.x.closed; closed {
			return
		}
		c.x.open[c.name] = c
		delete(c.x.stale, c.name)
	})
	if closed {
		return errClosed()
	}
	return errors.Join(err, failed)
}

// resetIfAhead empties an index with changes that the rows do not have, since the
// database was restored from an older copy, and one that may lack some: a commit
// failed, but its rows may have been written.
func (c *collection) resetIfAhead(ctx context.Context) error {
	known, _ := c.x.numbers.last()
	c.x.mu.Lock()
	stale := c.x.stale[c.name]
	c.x.mu.Unlock()
	last := c.index.Watermark()
	mark, err := store.Int(c.x.engine.Query(ctx, "SELECT id FROM vectors_gone WHERE collection = ? AND id < 0 AND seq <= ? ORDER BY seq DESC LIMIT 1", c.name, last))
	if err != nil {
		return fmt.Errorf("read the mark of the vector index: %w", err)
	}
	replaced := mark != c.index.Mark()
	if replaced {
		c.x.Logger.Warn("a vector index is rebuilt", "collection", c.name, "reason", "the database was replaced by a copy")
	}
	if last > known || stale || replaced {
		return c.index.Reset()
	}
	return nil
}

// applyAll applies the changes after last until fewer than enough are left.
func (c *collection) applyAll(ctx context.Context, last int64, enough int) (int64, error) {
	limit := max(catchUp, replayBytes/(4*c.dimension))
	for {
		changes, err := c.changesAfter(ctx, last, limit)
		if err != nil || len(changes) < enough {
			return last, err
		}
		for _, one := range changes {
			if err := c.apply(one); err != nil {
				return last, err
			}
			last = one.seq
		}
	}
}

// change is an item that was written or removed.
type change struct {
	seq, id  int64
	vector   []float32 // nil for a removal
	metadata string    // JSON or "", not set by replay
}

// changesAfter reads the next changes in their order.
func (c *collection) changesAfter(ctx context.Context, seq int64, limit int) ([]change, error) {
	rows, err := c.x.engine.Query(ctx, `SELECT seq, id, embedding FROM vectors WHERE collection = ? AND seq > ?
		UNION ALL SELECT seq, id, NULL FROM vectors_gone WHERE collection = ? AND seq > ? ORDER BY 1 LIMIT ?`, c.name, seq, c.name, seq, limit)
	var changes []change
	var one change
	var raw []byte
	err = store.Scan(rows, err, func() {
		one.vector = internal.Decode(raw)
		changes = append(changes, one)
	}, &one.seq, &one.id, &raw)
	return changes, err
}

// apply applies a change to the index. A damaged vector is not indexed.
func (c *collection) apply(one change) error {
	if one.id < 0 {
		return c.index.SetMark(one.id, one.seq)
	}
	if one.vector == nil {
		return c.index.Delete(one.id, one.seq)
	}
	err := c.index.Put(one.id, one.seq, one.vector)
	if errors.Is(err, vector.ErrZero) || errors.Is(err, vector.ErrDimension) || errors.Is(err, vector.ErrNotFinite) {
		c.x.Logger.Error("a vector is damaged and cannot be found", "collection", c.name, "error", err.Error())
		return c.index.Delete(one.id, one.seq)
	}
	return err
}

// applyCommitted applies committed changes. If this fails, the index is closed, and the
// next search opens it again and reads the rows.
func (c *collection) applyCommitted(changes []change) {
	for _, one := range changes {
		c.metadata.Apply(metadata.Change{ID: one.id, Metadata: one.metadata, Deleted: one.vector == nil})
	}
	for _, one := range changes {
		if one.seq <= c.applied {
			continue
		}
		if err := c.apply(one); err != nil {
			c.drop(err)
			return
		}
	}
	limit := max(flushAfter, int64(c.index.Stats().Vectors/flushShare))
	if c.since.Add(int64(len(changes))) < limit || !c.flushing.CompareAndSwap(false, true) {
		return
	}
	c.since.Store(0)
	c.x.mu.Lock()
	defer c.x.mu.Unlock()
	if c.x.closed {
		return // which flushes
	}
	c.x.background.Go(func() {
		defer c.flushing.Store(false)
		if err := c.flush(); err != nil && !errors.Is(err, vector.ErrClosed) {
			c.x.Logger.Error("a vector index cannot be written", "collection", c.name, "error", err.Error())
		}
	})
}

// flush writes the companion file and deletes the removals that it has. The last number
// stays, so that it is not assigned again, and so does the mark of the file.
func (c *collection) flush() error {
	if c.x.readOnly {
		return nil
	}
	if err := c.index.Flush(); err != nil {
		return err
	}
	flushed := c.index.Stats().Flushed
	return c.x.engine.Write(context.Background(), func(ctx context.Context, tx store.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM vectors_gone WHERE collection = ? AND seq <= ? AND seq < (SELECT max(seq) FROM vectors_gone) AND id < (SELECT max(id) FROM vectors_gone)
			AND (id > 0 OR seq < (SELECT max(seq) FROM vectors_gone WHERE collection = ? AND id < 0 AND seq <= ?))`, c.name, flushed, c.name, flushed)
		return err
	})
}

func (c *collection) drop(reason error) {
	c.x.Logger.Error("a vector index failed and is opened again", "collection", c.name, "error", reason.Error())
	c.x.mu.Lock()
	if c.x.open[c.name] == c {
		delete(c.x.open, c.name)
	}
	c.x.mu.Unlock()
	if err := c.index.Close(); err != nil {
		c.x.Logger.Error("a vector index cannot be closed", "collection", c.name, "error", err.Error())
	}
}
