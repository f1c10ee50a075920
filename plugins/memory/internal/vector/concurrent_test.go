package vector

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
)

// While one goroutine changes the index, which builds, mends and flushes, a
// search finds each vector that exists all the time, and what was put last.
func TestSearchesDuringChanges(t *testing.T) {
	t.Parallel()
	const ids, changes = 400, 1500
	path := filepath.Join(t.TempDir(), "vectors")
	o := Options{Dimension: 8, Exact: 100, M: 4, EfConstruction: 16, EfSearch: 10}
	ix := open(t, path, o)
	from := newSource(8, 10, 0.6)
	home := from.many(ids) // id i is always put with this vector
	for i, vec := range home {
		put(t, ix, int64(i), int64(i+1), vec...)
	}
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for n := range 2 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(3, uint64(n)))
			for ctx.Err() == nil {
				i := random.IntN(ids)
				hits, err := ix.Search(t.Context(), home[i], 3, SearchOptions{Exact: n == 0})
				if err != nil {
					t.Error(err)
					return
				}
				if n == 0 && (len(hits) == 0 || hits[0].ID != int64(i)) {
					t.Errorf("vector %d is gone for a moment: %v", i, hits)
					return
				}
			}
		})
	}
	group.Go(func() {
		for ctx.Err() == nil {
			if err := ix.Flush(); err != nil {
				t.Error(err)
				return
			}
		}
	})
	seq := int64(ids)
	random := rand.New(rand.NewPCG(5, 5))
	for n := range changes {
		seq++
		i := random.Int64N(ids)
		put(t, ix, i, seq, home[i]...)
		if n%5 != 0 {
			continue
		}
		// Its own vector, which is deleted immediately.
		vec := from.noise()
		seq++
		put(t, ix, ids, seq, vec...)
		if hits := search(t, ix, vec, 1, SearchOptions{}); len(hits) != 1 || hits[0].ID != ids {
			t.Errorf("the last put is not found: %v", hits)
		}
		seq++
		remove(t, ix, ids, seq)
		for _, h := range search(t, ix, vec, 5, SearchOptions{}) {
			if h.ID == ids {
				t.Error("what was deleted is found")
			}
		}
	}
	stop()
	group.Wait()
	settle(t, ix)
	if got := ix.Stats(); got.Vectors != ids || got.Watermark != seq || got.Generation == 0 {
		t.Errorf("%+v", got)
	}
	if err := ix.Flush(); err != nil {
		t.Fatal(err)
	}
	again := open(t, path, o)
	if again.Discarded() != nil || again.Watermark() != seq {
		t.Errorf("watermark %d instead of %d: %v", again.Watermark(), seq, again.Discarded())
	}
}

func TestCloseEndsTheBuilding(t *testing.T) {
	t.Parallel()
	ix := fresh(t, Options{Dimension: 16, Exact: -1, M: 16, EfConstruction: 500})
	for i, vec := range newSource(16, 0, 0).many(3000) {
		put(t, ix, int64(i), int64(i+1), vec...)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- ix.WaitBuilt(t.Context()) }()
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; !errors.Is(err, ErrClosed) {
		t.Errorf("Settle: %v", err)
	}
}

func TestSettleEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ix := fresh(t, Options{Dimension: 16, Exact: -1})
	ix.linking.Lock() // nothing gets into the graph
	defer ix.linking.Unlock()
	for i, vec := range newSource(16, 0, 0).many(blockSlots) {
		put(t, ix, int64(i), int64(i+1), vec...)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := ix.WaitBuilt(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestResetDuringBuildingStartsAnew(t *testing.T) {
	t.Parallel()
	ix := fresh(t, graphOptions)
	from := newSource(16, 0, 0)
	for round := range 3 {
		for i, vec := range from.many(200 + round) {
			put(t, ix, int64(i), int64(i+1), vec...)
		}
		if round < 2 {
			if err := ix.Reset(); err != nil {
				t.Fatal(err)
			}
		}
	}
	settle(t, ix)
	if got := ix.Stats(); got.Vectors != 202 || got.Graphed != 192 || got.Watermark != 202 {
		t.Errorf("%+v", got)
	}
}
