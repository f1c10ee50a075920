package vector

import (
	"context"
	"fmt"
	"math"
	"sync"
)

// Index holds the vectors of one collection. It is safe for concurrent use; the
// owner of the rows determines the order of the changes.
type Index struct {
	path    string
	options Options
	// discarded is the reason why the file was not used.
	discarded error

	mu       sync.RWMutex // guards the fields below
	gen      *generation
	seq      int64
	mark     int64
	saved    savedState
	isClosed bool
	built    chan struct{} // closed when the builder has nothing left to do

	// linking is held while the graph of the current generation changes or is
	// written to the file.
	linking  sync.Mutex
	flushing sync.Mutex
	walks    sync.Pool

	wake chan struct{}
	stop context.CancelFunc
	done chan struct{}
}

// savedState is the state that the file contains.
type savedState struct {
	seq        int64
	built      uint32
	generation int
}

// Open reads the file at the path and starts the goroutine that builds the graph.
// It only fails for invalid options: if the file cannot be used, the index starts
// empty and Discarded returns the reason. The directory of the path must exist
// when Flush is called. No other process may use the path.
func Open(path string, options Options) (*Index, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open the vector index %s: %w", path, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ix := &Index{
		path: path, options: options, built: make(chan struct{}),
		wake: make(chan struct{}, 1), stop: stop, done: make(chan struct{}),
	}
	if g, h, err := load(path, options); err == nil {
		ix.gen, ix.seq, ix.mark = g, h.Watermark, h.Mark
	} else {
		ix.discarded = fmt.Errorf("read the vector index %s: %w", path, err)
		ix.gen = newGeneration(0, options.Dimension, options.M)
	}
	ix.saved = savedState{seq: ix.seq, built: ix.gen.built.Load()}
	go ix.build(ctx, ix.saved)
	ix.wakeBuilder()
	return ix, nil
}

// Discarded returns why the file was not used, nil if it was. It wraps
// [io/fs.ErrNotExist] if there is none.
func (ix *Index) Discarded() error { return ix.discarded }

// Watermark returns the sequence number of the last change in the index. After
// Open the owner repeats every later change. If the rows have no change with that
// number, for example because they were restored from an older copy, the owner
// calls Reset first.
func (ix *Index) Watermark() int64 {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	return ix.seq
}

// Mark returns the last mark, 0 for none.
func (ix *Index) Mark() int64 {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	return ix.mark
}

// SetMark makes a change that has only a mark. The owner adds one, chosen at random,
// to the changes of each process, since the numbers of the changes alone do not show
// that the rows were replaced by others. The errors are ErrSequence and ErrClosed.
func (ix *Index) SetMark(mark, seq int64) error {
	err := ix.change(seq, func(*generation) error {
		ix.mark = mark
		return nil
	})
	if err != nil {
		return fmt.Errorf("set the mark of the vector index: %w", err)
	}
	return nil
}

// Stats returns the current statistics of the index.
func (ix *Index) Stats() Stats {
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	return Stats{
		Vectors: ix.gen.live, Tombstones: ix.gen.tombstones(), Graphed: int(ix.gen.built.Load()),
		Watermark: ix.seq, Flushed: ix.saved.seq, Generation: ix.gen.number,
	}
}

// Put stores the vector under the id and replaces an existing one. The next
// Search finds it. The index does not keep the slice. The errors are
// ErrDimension, ErrNotFinite, ErrZero, ErrSequence, ErrFull and ErrClosed. If the
// new vector of a row is refused, Delete with the same sequence number removes
// the old one.
func (ix *Index) Put(id, seq int64, vec []float32) error {
	row, directed, err := normalise(vec, ix.options.Dimension)
	if err == nil && !directed {
		err = ErrZero
	}
	if err == nil {
		err = ix.change(seq, func(g *generation) error {
			if g.count == math.MaxUint32 {
				return fmt.Errorf("%w: %d vectors and tombstones", ErrFull, g.count)
			}
			g.markDeleted(id, seq)
			g.add(id, row)
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("put vector %d: %w", id, err)
	}
	return nil
}

// Delete removes the id's vector, if there is one. The errors are ErrSequence
// and ErrClosed.
func (ix *Index) Delete(id, seq int64) error {
	err := ix.change(seq, func(g *generation) error {
		g.markDeleted(id, seq)
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete vector %d: %w", id, err)
	}
	return nil
}

// markDeleted turns the id's vector into a tombstone.
func (g *generation) markDeleted(id, seq int64) {
	slot, ok := g.slotOf()[id]
	if !ok {
		return
	}
	g.blocks[slot>>blockBits].deletedAt[slot%blockSlots].Store(seq)
	g.live--
	delete(g.slots, id)
}

// change applies one change of the sequence.
func (ix *Index) change(seq int64, apply func(*generation) error) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.isClosed {
		return ErrClosed
	}
	if seq <= ix.seq {
		return fmt.Errorf("%w: %d after %d", ErrSequence, seq, ix.seq)
	}
	if err := apply(ix.gen); err != nil {
		return err
	}
	ix.seq = seq
	ix.wakeBuilder()
	return nil
}

// Reset removes everything, so that the owner can repeat all changes. The next
// Flush replaces the file.
func (ix *Index) Reset() error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.isClosed {
		return fmt.Errorf("reset the vector index: %w", ErrClosed)
	}
	ix.replaceGeneration(newGeneration(ix.gen.number+1, ix.options.Dimension, ix.options.M))
	ix.seq, ix.mark = 0, 0
	ix.wakeBuilder()
	return nil
}

// Close stops the goroutine that builds the graph, frees the memory and closes the
// file. It does not flush. Running searches finish; the last one closes the file. A
// second Close does nothing.
func (ix *Index) Close() error {
	ix.mu.Lock()
	closed := ix.isClosed
	ix.isClosed = true
	ix.mu.Unlock()
	ix.stop()
	<-ix.done
	if closed {
		return nil
	}
	ix.flushing.Lock() // a flush that has begun finishes
	defer ix.flushing.Unlock()
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.replaceGeneration(newGeneration(ix.gen.number, ix.options.Dimension, ix.options.M))
	return nil
}

// replaceGeneration makes another generation current. The caller holds ix.mu.
func (ix *Index) replaceGeneration(g *generation) {
	ix.gen.release()
	ix.gen = g
}

// currentView returns a view of the current state of the index, which the caller
// releases.
func (ix *Index) currentView() (*view, error) {
	v, _, _, err := ix.selectSlots(nil)
	return v, err
}
