package vector

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// model is what an index stands for: the rows of a database and the changes
// that made them.
type model struct {
	rows    map[int64][]float32
	changes []change
}

// change is a put, or a delete if there is no vector.
type change struct {
	id  int64
	seq int64
	vec []float32
}

// apply makes the change in the model and, if there is one, in the index.
func (m *model) apply(t *testing.T, ix *Index, c change) {
	t.Helper()
	m.changes = append(m.changes, c)
	if c.vec == nil {
		delete(m.rows, c.id)
	} else {
		m.rows[c.id] = c.vec
	}
	tell(t, ix, c)
}

func tell(t *testing.T, ix *Index, c change) {
	t.Helper()
	if c.vec == nil {
		remove(t, ix, c.id, c.seq)
	} else {
		put(t, ix, c.id, c.seq, c.vec...)
	}
}

// nearest compares the query with every row, in double precision.
func (m *model) nearest(query []float32, k int, accept func(int64) bool) []Hit {
	hits := make([]Hit, 0, len(m.rows))
	for id, vec := range m.rows {
		if accept != nil && !accept(id) {
			continue
		}
		var dot, qq, vv float64
		for i := range vec {
			q, v := float64(query[i]), float64(vec[i])
			dot, qq, vv = dot+q*v, qq+q*q, vv+v*v
		}
		hits = append(hits, Hit{id, float32(dot / math.Sqrt(qq*vv))})
	}
	slices.SortFunc(hits, compareHits)
	return hits[:min(k, len(hits))]
}

// checkSimilarities fails unless the hits are rows with the similarity that
// they claim, best first, and each once.
func (m *model) checkSimilarities(t *testing.T, query []float32, hits []Hit) {
	t.Helper()
	want := map[int64]float32{}
	for _, h := range m.nearest(query, len(m.rows), nil) {
		want[h.ID] = h.Similarity
	}
	if !slices.IsSortedFunc(hits, compareHits) {
		t.Errorf("not in order: %v", hits)
	}
	for _, h := range hits {
		if s, ok := want[h.ID]; !ok || math.Abs(float64(s-h.Similarity)) > 1e-5 {
			t.Errorf("hit %v, want similarity %v (exists: %v)", h, s, ok)
		}
		delete(want, h.ID)
	}
}

// Whatever is put, deleted, flushed, forgotten in a crash and repeated: exact
// searches equal the naive one, and those in the graph come close.
func TestRandomChangesAgainstNaiveSearch(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]Options{
		"exact": {Dimension: 9},
		"graph": {Dimension: 9, Exact: -1, M: 6, EfConstruction: 40, EfSearch: 20},
		"mixed": {Dimension: 9, Exact: 500, M: 6, EfConstruction: 40, EfSearch: 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1, uint64(len(name))))
			vectors := newSource(9, 20, 0.6)
			m := &model{rows: map[int64][]float32{}}
			path := filepath.Join(t.TempDir(), "vectors")
			ix := open(t, path, o)
			seq, found, searches := int64(0), 0.0, 0.0
			for step := range 4000 {
				seq += 1 + random.Int64N(3)
				c := change{id: random.Int64N(1500), seq: seq, vec: vectors.next()}
				if random.IntN(4) == 0 {
					c.vec = nil
				}
				m.apply(t, ix, c)
				switch step % 1000 {
				case 700:
					settle(t, ix)
				case 800:
					if err := ix.Flush(); err != nil {
						t.Fatal(err)
					}
				case 950: // a crash
					if err := ix.Close(); err != nil {
						t.Fatal(err)
					}
					ix = open(t, path, o)
					if err := ix.Discarded(); err != nil {
						t.Fatal(err)
					}
					for _, c := range m.changes {
						if c.seq > ix.Watermark() {
							tell(t, ix, c)
						}
					}
				}
				if step%40 != 0 {
					continue
				}
				query := vectors.next()
				want := m.nearest(query, 10, nil)
				near := cmp.Comparer(func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-5 })
				if diff := cmp.Diff(want, search(t, ix, query, 10, SearchOptions{Exact: true}), near); diff != "" {
					t.Fatalf("step %d: %s", step, diff)
				}
				got := search(t, ix, query, 10, SearchOptions{})
				m.checkSimilarities(t, query, got)
				found, searches = found+recall(got, want), searches+1
			}
			if r := found / searches; r < 0.97 || (name == "exact" && r != 1) {
				t.Errorf("recall %.3f", r)
			}
			if got := ix.Stats(); got.Vectors != len(m.rows) || got.Watermark != seq {
				t.Errorf("%+v, want %d vectors up to %d", got, len(m.rows), seq)
			}
		})
	}
}
