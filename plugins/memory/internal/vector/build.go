package vector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// A generation with fewer tombstones than these is left as it is.
const fewTombstones = 64

// job is what the builder has to do next.
type job int

const (
	jobNone job = iota
	jobInsert
	jobCompact
)

// next says what there is to do. The caller holds ix.mu.
func (ix *Index) next() job {
	g := ix.gen
	switch dead := g.tombstones(); {
	case dead >= fewTombstones && dead > int(g.count)/4:
		return jobCompact
	case len(g.slots) > ix.options.Exact && g.built.Load() < g.count:
		return jobInsert
	}
	return jobNone
}

// nudge tells the builder that something has changed.
func (ix *Index) nudge() {
	select {
	case ix.wake <- struct{}{}:
	default: // it has been told
	}
}

// build is the goroutine that does the work in the background, one piece after
// the other, until the context ends.
func (ix *Index) build(ctx context.Context) {
	defer close(ix.done)
	w := new(walk)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ix.wake:
		}
		for ctx.Err() == nil {
			ix.mu.Lock()
			work, v := ix.next(), ix.gen.viewAt(ix.seq)
			if work == jobNone {
				close(ix.settling)
				ix.settling = make(chan struct{})
			}
			ix.mu.Unlock()
			if work == jobNone {
				break
			}
			var err error
			if work == jobCompact {
				err = ix.compact(ctx, w, v)
			} else {
				err = ix.insertNext(ctx, w, v)
			}
			if errors.Is(err, ErrClosed) {
				return
			}
			if err != nil && ctx.Err() == nil {
				ix.options.Logger.ErrorContext(ctx, "the vector graph is not built any further",
					slog.String("path", ix.path), slog.String("error", err.Error()))
				return
			}
		}
	}
}

// insertNext takes the next slot into the graph.
func (ix *Index) insertNext(ctx context.Context, w *walk, v *view) error {
	ix.linking.Lock()
	defer ix.linking.Unlock()
	slot := v.built
	if v.visible(slot) {
		// To the end, even when the index is closed: a flush may come next.
		if err := w.insert(context.WithoutCancel(ctx), v, slot, ix.options.EfConstruction); err != nil {
			return err
		}
	}
	v.generation.built.Store(slot + 1)
	return nil
}

// Settle waits until everything is in the graph that should be and the
// tombstones are cleared away. Searches need no such waiting. The errors are
// ErrClosed and the context's.
func (ix *Index) Settle(ctx context.Context) error {
	for {
		ix.mu.RLock()
		work, settling, closed := ix.next(), ix.settling, ix.isClosed
		ix.mu.RUnlock()
		if closed {
			return fmt.Errorf("wait for the vector index: %w", ErrClosed)
		}
		if work == jobNone {
			return nil
		}
		select {
		case <-settling:
		case <-ix.done:
			return fmt.Errorf("wait for the vector index: %w", ErrClosed)
		case <-ctx.Done():
			return fmt.Errorf("wait for the vector index: %w", ctx.Err())
		}
	}
}
