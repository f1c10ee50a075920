package vector

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// still returns an index in which nothing happens in the background.
func still(t *testing.T, o Options) *Index {
	t.Helper()
	o, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	ix := &Index{
		options: o, path: filepath.Join(t.TempDir(), "vectors"),
		gen: newGeneration(0, o.Dimension, o.M), wake: make(chan struct{}, 1),
	}
	return ix
}

func mustView(t *testing.T, ix *Index) *view {
	t.Helper()
	v, err := ix.currentView()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A search that has begun neither loses a vector that is replaced nor finds
// the new one, even when the generation changes.
func TestViewStaysAsItWas(t *testing.T) {
	t.Parallel()
	ix := still(t, Options{Dimension: 2})
	put(t, ix, 1, 1, 1, 0)
	put(t, ix, 2, 2, 0, 1)
	put(t, ix, 3, 3, -1, 0)
	v := mustView(t, ix)
	check := func() {
		t.Helper()
		want := []Hit{{1, 1}, {2, 0}, {3, -1}}
		for _, chosen := range []bitmap{nil, {0b111}} {
			best := &ranking{k: 5}
			if err := v.scan(t.Context(), newTarget([]float32{1, 7: 0}), 0, chosen, 3, best); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, best.hits); diff != "" {
				t.Error(diff)
			}
		}
	}
	put(t, ix, 1, 4, 0, -1)
	remove(t, ix, 2, 5)
	put(t, ix, 4, 6, 1, 1)
	check()
	if err := ix.compact(t.Context(), mustView(t, ix)); err != nil {
		t.Fatal(err)
	}
	check()
}

// What changes while tombstones are cleared away is not forgotten.
func TestChangesDuringCompaction(t *testing.T) {
	t.Parallel()
	ix := still(t, Options{Dimension: 2})
	for id := range int64(1000) {
		put(t, ix, id, id+1, 1, float32(id))
	}
	v := mustView(t, ix) // the compaction begins
	remove(t, ix, 7, 1001)
	put(t, ix, 8, 1002, -1, 0)
	for id := int64(2000); id < 2600; id++ {
		put(t, ix, id, id, 1, float32(id))
	}
	remove(t, ix, 2001, 3000)
	if err := ix.compact(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if got := ix.Stats(); got.Vectors != 1598 || got.Generation != 1 || got.Watermark != 3000 {
		t.Errorf("%+v", got)
	}
	all := map[int64]float32{}
	for _, h := range search(t, ix, []float32{-1, 0}, 5000, SearchOptions{}) {
		all[h.ID] = h.Similarity
	}
	_, seven := all[7]
	_, late := all[2001]
	if len(all) != 1598 || seven || late || all[8] != 1 {
		t.Errorf("%d vectors, deleted ones %v %v, replaced one %v", len(all), seven, late, all[8])
	}
	// And can go on changing.
	remove(t, ix, 8, 3001)
	if got := ix.Stats().Vectors; got != 1597 {
		t.Errorf("%d vectors", got)
	}
}

// Where the graph ends too soon, everything is compared.
func TestGapInTheGraphLosesNothing(t *testing.T) {
	t.Parallel()
	ix := still(t, graphOptions)
	from := newSource(16, 0, 0)
	for i, vec := range from.many(1300) {
		put(t, ix, int64(i), int64(i+1), vec...)
	}
	link(t, ix)
	query := from.next()
	if !usesGraph(t, ix, query, SearchOptions{}) {
		t.Error("the graph is not used")
	}
	v := mustView(t, ix)
	for slot := range v.built {
		setLinks(v.links(slot, 0), nil)
	}
	want := search(t, ix, query, 10, SearchOptions{Exact: true})
	if diff := cmp.Diff(want, search(t, ix, query, 10, SearchOptions{})); diff != "" {
		t.Error(diff)
	}
}
