package exact_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/the-edge-agent/tea/plugins/graph/internal/exact"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// The candidates have all of the most similar vectors, and are few.
func TestCandidatesHaveTheMostSimilarVectors(t *testing.T) {
	t.Parallel()
	const n, dimension, limit = 2000, 48, 10
	random := rand.New(rand.NewPCG(3, 4))
	vector := func() []float32 {
		v := make([]float32, dimension)
		for i := range v {
			v[i] = random.Float32() - 0.5
		}
		return v
	}
	index, vectors := exact.New[int64, int64](dimension), map[int64][]float32{}
	for key := range int64(n) {
		vectors[key] = vector()
		index.Put(key, key%2, vector())
		index.Put(key, key%2, vectors[key]) // replaced
	}
	for key := int64(0); key < n; key += 7 {
		index.Delete(key)
		delete(vectors, key)
	}
	for range 20 {
		query := vector()
		var keys []int64
		for key := range vectors {
			if key%2 == 1 {
				keys = append(keys, key)
			}
		}
		slices.SortFunc(keys, func(a, b int64) int {
			return cmp.Compare(store.Cosine(query, vectors[b]), store.Cosine(query, vectors[a]))
		})
		got := index.Candidates(query, limit, func(t int64) bool { return t == 1 })
		for _, key := range keys[:limit] {
			if !slices.Contains(got, key) {
				t.Errorf("%d is among the most similar and is missing", key)
			}
		}
		if len(got) > 10*limit {
			t.Errorf("%d candidates for %d vectors", len(got), limit)
		}
	}
}
