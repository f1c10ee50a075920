package vector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
)

const (
	// A generation with fewer tombstones is not compacted.
	minTombstones = 64
	// catchUp bounds the vectors that are copied while changes wait.
	catchUp = 256
	// flushGrowth is the number of new slots from which the builder flushes a
	// complete graph, if it also grew by a tenth, so that a process that is killed
	// later does not lose it.
	flushGrowth = 2000
)

// job is the builder's next task.
type job int

const (
	jobNone job = iota
	jobInsert
	jobCompact
)

// next returns the next task. The caller holds ix.mu.
func (ix *Index) next() job {
	g := ix.gen
	switch dead := g.tombstones(); {
	case dead >= minTombstones && dead > int(g.count)/4:
		return jobCompact
	case g.live > ix.options.Exact && g.built.Load() < g.linkable():
		return jobInsert
	}
	return jobNone
}

// wakeBuilder wakes the builder.
func (ix *Index) wakeBuilder() {
	select {
	case ix.wake <- struct{}{}:
	default: // a wake-up is already pending
	}
}

// build works in the background until the context ends. written is the content of
// the file after the builder's last attempt to write it.
func (ix *Index) build(ctx context.Context, written savedState) {
	defer close(ix.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ix.wake:
		}
		if err := ix.work(ctx, &written); err != nil && !errors.Is(err, ErrClosed) && ctx.Err() == nil {
			ix.options.Logger.ErrorContext(ctx, "build the vector graph", slog.String("path", ix.path), slog.String("error", err.Error()))
		}
	}
}

// work does the due tasks.
func (ix *Index) work(ctx context.Context, written *savedState) error {
	for ctx.Err() == nil {
		if more, err := ix.doNext(ctx, written); !more || err != nil {
			return err
		}
	}
	return nil
}

// doNext does the next task, and reports whether there may be more.
func (ix *Index) doNext(ctx context.Context, written *savedState) (more bool, err error) {
	ix.mu.Lock()
	todo, v := ix.next(), ix.gen.viewAt(ix.seq)
	v.users.Add(1)
	damage := v.damaged()
	if todo == jobNone || damage != nil {
		close(ix.built)
		ix.built = make(chan struct{})
	}
	ix.mu.Unlock()
	defer v.release()
	switch {
	case damage != nil:
		return false, damage
	case todo == jobInsert:
		return true, ix.insertNext(ctx, v)
	case todo == jobCompact:
		return true, ix.compact(ctx, v)
	}
	if written.generation != v.number {
		*written = savedState{generation: v.number}
	}
	if v.built < written.built+max(flushGrowth, written.built/10) {
		return false, nil
	}
	written.built = v.built
	return false, ix.Flush()
}

// insertNext adds the next block to the graph.
func (ix *Index) insertNext(ctx context.Context, v *view) error {
	ix.linking.Lock()
	defer ix.linking.Unlock()
	walks, release := ix.borrowWalks(ix.options.builders)
	defer release()
	// Finish even if the index is closed: a flush may follow.
	return v.insert(context.WithoutCancel(ctx), walks, ix.options.EfConstruction)
}

// borrowWalks returns n walks, until release is called.
func (ix *Index) borrowWalks(n int) (walks []*walk, release func()) {
	walks = make([]*walk, n)
	for i := range walks {
		if walks[i], _ = ix.walks.Get().(*walk); walks[i] == nil {
			walks[i] = new(walk)
		}
	}
	return walks, func() {
		for _, w := range walks {
			ix.walks.Put(w)
		}
	}
}

// compact makes a generation without the view's tombstones and builds its graph.
// Searches and changes continue in the old one, which keeps its memory until
// then.
func (ix *Index) compact(ctx context.Context, v *view) error {
	walks, release := ix.borrowWalks(ix.options.builders)
	defer release()
	next := newGeneration(v.number+1, v.dimension, v.m)
	moved := make([]uint32, 0, v.count) // the new position of each old slot
	for {
		newer, err := ix.currentView()
		if err != nil {
			return err
		}
		newer.release() // the caller keeps v
		if newer.generation != v.generation {
			return nil // Reset was called meanwhile
		}
		if len(moved) > 0 && newer.count-uint32(len(moved)) <= catchUp {
			break
		}
		if moved, err = newer.copyTo(ctx, next, moved); err != nil {
			return err
		}
		for n := next.viewAt(0); n.live > ix.options.Exact && n.built < next.linkable(); n.built = next.built.Load() {
			if err := n.insert(ctx, walks, ix.options.EfConstruction); err != nil {
				return err
			}
		}
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.gen != v.generation {
		return nil
	}
	last := ix.gen.viewAt(ix.seq)
	moved, err := last.copyTo(ctx, next, moved)
	if err != nil {
		return err
	}
	// Delete the vectors that were deleted after they were copied.
	for slot, to := range moved {
		slot := uint32(slot)
		if to == math.MaxUint32 || last.visible(slot) {
			continue
		}
		next.blocks[to>>blockBits].deletedAt[to%blockSlots].Store(last.deletedAt(slot))
		next.live--
		if id := last.id(slot); next.slots[id] == to { // unless it was replaced
			delete(next.slots, id)
		}
	}
	if err := v.damaged(); err != nil {
		return err
	}
	ix.replaceGeneration(next)
	return nil
}

// copyTo copies the visible slots that were not moved yet, and returns the new
// positions of all slots: math.MaxUint32 for removed ones.
func (v *view) copyTo(ctx context.Context, next *generation, moved []uint32) ([]uint32, error) {
	var buf []float32
	for slot := uint32(len(moved)); slot < v.count; slot++ {
		if slot%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		to := uint32(math.MaxUint32)
		if v.visible(slot) {
			to = next.add(v.id(slot), v.row(slot, &buf))
		}
		moved = append(moved, to)
	}
	return moved, nil
}

// WaitBuilt waits until the graph has all complete blocks and the tombstones are
// removed. Searches do not need it. The errors are ErrClosed and the context's.
func (ix *Index) WaitBuilt(ctx context.Context) error {
	for {
		ix.mu.RLock()
		todo, settling, closed, damage := ix.next(), ix.built, ix.isClosed, ix.gen.damaged()
		ix.mu.RUnlock()
		if damage != nil {
			return fmt.Errorf("wait for the vector index: %w", damage)
		}
		if closed {
			return fmt.Errorf("wait for the vector index: %w", ErrClosed)
		}
		if todo == jobNone {
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
