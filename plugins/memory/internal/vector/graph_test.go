package vector

import (
	"slices"
	"testing"
)

// graphOptions build graphs that small indexes use.
var graphOptions = Options{Dimension: 16, Exact: -1, M: 8, EfConstruction: 48, EfSearch: 24}

// filled returns an index whose graph holds n vectors with the ids from 0 on.
func filled(t *testing.T, o Options, vecs [][]float32) *Index {
	t.Helper()
	ix := fresh(t, o)
	for i, vec := range vecs {
		put(t, ix, int64(i), int64(i+1), vec...)
	}
	settle(t, ix)
	return ix
}

// meanRecall compares searches with exact ones. It fails if none of them used
// the graph.
func meanRecall(t *testing.T, ix *Index, queries [][]float32, o SearchOptions) float64 {
	t.Helper()
	sum := 0.0
	for _, query := range queries {
		exact := o
		exact.Exact = true
		sum += recall(search(t, ix, query, 10, o), search(t, ix, query, 10, exact))
	}
	return sum / float64(len(queries))
}

// usesGraph reports whether the graph answers the search.
func usesGraph(t *testing.T, ix *Index, query []float32, o SearchOptions) bool {
	t.Helper()
	row, _, err := normalise(query, ix.options.Dimension)
	if err != nil {
		t.Fatal(err)
	}
	v, chosen, live, err := ix.selectSlots(o.Among)
	if err != nil {
		t.Fatal(err)
	}
	found, err := ix.searchGraph(t.Context(), v, newTarget(row), max(o.Ef, 10), chosen, live, &ranking{k: 10})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestGraphFindsWhatExactSearchFinds(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]*source{
		"clusters": newSource(16, 30, 0.65),
		"noise":    newSource(16, 0, 0),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ix := filled(t, graphOptions, from.many(2000))
			outside := newSource(16, 0, 0)
			outside.many(2000)
			for kind, queries := range map[string][][]float32{"inside": from.many(60), "outside": outside.many(60)} {
				for ef, least := range map[int]float64{24: 0.8, 40: 0.9} {
					if r := meanRecall(t, ix, queries, SearchOptions{Ef: ef}); r < least {
						t.Errorf("%s: recall %.3f with ef %d", kind, r, ef)
					}
					if !usesGraph(t, ix, queries[0], SearchOptions{Ef: ef}) {
						t.Errorf("%s: the graph was not used with ef %d", kind, ef)
					}
				}
			}
			if missing := ix.gen.viewAt(ix.Watermark()).unreached(); len(missing) > 3 {
				t.Errorf("no way leads to %d vectors", len(missing))
			}
		})
	}
}

func TestRecallOfAGraphThatIsBuiltOnSeveralCores(t *testing.T) {
	t.Parallel()
	from := newSource(48, 40, 0.65)
	ix := filled(t, Options{Dimension: 48, Exact: -1, builders: 4}, from.many(4000))
	// Among so few dimensions, queries outside of the clusters found 0.944 of the
	// nearest when vectors were added one by one.
	least := map[string]float64{"inside": 0.98, "outside": 0.93}
	for kind, queries := range map[string][][]float32{"inside": from.many(60), "outside": foreign(48).many(60)} {
		if r := meanRecall(t, ix, queries, SearchOptions{}); r < least[kind] {
			t.Errorf("%s: recall %.3f", kind, r)
		}
		if !usesGraph(t, ix, queries[0], SearchOptions{Ef: 64}) {
			t.Errorf("%s: the graph was not used", kind)
		}
	}
}

func TestTheSameGraphIsBuiltOnAnyNumberOfCores(t *testing.T) {
	t.Parallel()
	vecs := newSource(16, 10, 0.65).many(1280)
	for i := range 200 { // duplicates in the same block and in others
		vecs[6*i+5] = vecs[i*i%400]
	}
	one, many := graphOptions, graphOptions
	one.builders, many.builders = 1, 15
	a, b := filled(t, one, vecs), filled(t, many, vecs)
	v, w := a.gen.viewAt(1), b.gen.viewAt(1)
	if v.entry.Load() != w.entry.Load() {
		t.Error("other entries")
	}
	if len(v.tails) < 20 {
		t.Errorf("duplicates of %d vectors", len(v.tails))
	}
	for slot := range v.count {
		if v.level(slot) != w.level(slot) || v.isDuplicate(slot) != w.isDuplicate(slot) {
			t.Fatalf("slot %d: other levels", slot)
		}
		if next, other := v.blocks[slot>>blockBits].next[slot%blockSlots].Load(), w.blocks[slot>>blockBits].next[slot%blockSlots].Load(); next != other {
			t.Fatalf("slot %d: other duplicates", slot)
		}
		for l := range v.level(slot) + 1 {
			if !slices.Equal(neighboursOf(v, slot, l), neighboursOf(w, slot, l)) {
				t.Fatalf("slot %d: other neighbours in layer %d", slot, l)
			}
		}
	}
}

func neighboursOf(v *view, slot uint32, layer int) []uint32 {
	links := v.links(slot, layer)
	var slots []uint32
	for i := range links[0].Load() {
		slots = append(slots, links[1+i].Load())
	}
	return slots
}

func TestHigherLevelsHaveFewerVectors(t *testing.T) {
	t.Parallel()
	counts := [maxLevel + 1]int{}
	for id := range int64(160_000) {
		counts[levelOf(id, 16)]++
	}
	if counts[1] < 8_000 || counts[1] > 11_000 || counts[2] < 450 || counts[2] > 750 {
		t.Errorf("%v", counts)
	}
}

// A crowd of equal vectors must not be an island that hides the others, nor be
// hidden by them.
func TestEqualVectorsLeaveTheOthersReachable(t *testing.T) {
	t.Parallel()
	from := newSource(16, 20, 0.65)
	vecs := from.many(2400)
	same := from.next()
	for i := range 1200 {
		vecs[2*i] = same
	}
	ix := filled(t, graphOptions, vecs)
	if r := meanRecall(t, ix, from.many(60), SearchOptions{}); r < 0.9 {
		t.Errorf("recall %.3f", r)
	}
	if missing := ix.gen.viewAt(ix.Watermark()).unreached(); len(missing) > 3 {
		t.Errorf("no way leads to %d vectors", len(missing))
	}
	for _, h := range search(t, ix, same, 10, SearchOptions{}) {
		if h.Similarity < 0.999 {
			t.Errorf("%v is not one of the equal ones", h)
		}
	}
}

func TestTheGraphIsRepairedAfterDeletions(t *testing.T) {
	t.Parallel()
	const count = 2400
	for name, gone := range map[string]func(id, cluster int) bool{
		"one in three":   func(id, _ int) bool { return id%3 == 0 },
		"whole clusters": func(_, cluster int) bool { return cluster < 9 },
		"nearly all":     func(id, _ int) bool { return id%4 != 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := newSource(16, 30, 0.65)
			vecs := make([][]float32, count)
			for i := range vecs {
				vecs[i] = from.near(i % 30)
			}
			ix := filled(t, graphOptions, vecs)
			seq := int64(count)
			for i := range vecs {
				if gone(i, i%30) {
					seq++
					remove(t, ix, int64(i), seq)
				}
			}
			settle(t, ix)
			stats := ix.Stats()
			if stats.Generation == 0 || stats.Tombstones > (stats.Vectors+stats.Tombstones)/4 {
				t.Errorf("%+v", stats)
			}
			if !usesGraph(t, ix, vecs[0], SearchOptions{Ef: 12}) {
				t.Error("the graph was not used")
			}
			if r := meanRecall(t, ix, from.many(60), SearchOptions{}); r < 0.93 {
				t.Errorf("recall %.3f", r)
			}
			if missing := ix.gen.viewAt(seq).unreached(); len(missing) > 3 {
				t.Errorf("no way leads to %d vectors", len(missing))
			}
		})
	}
}

func TestTombstonesAreClearedWithoutGraph(t *testing.T) {
	t.Parallel()
	ix := fresh(t, Options{Dimension: 1})
	for seq := range int64(1000) {
		put(t, ix, seq%10, seq+1, 1)
	}
	settle(t, ix)
	if got := ix.Stats(); got.Vectors != 10 || got.Tombstones >= 100 {
		t.Errorf("%+v", got)
	}
}
