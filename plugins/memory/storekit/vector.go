package storekit

import (
	"cmp"
	"math"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// CheckItems returns the metadata of items as canonical JSON, "" for none. An
// invalid name, item or dimension, and two items with the same id, are a
// validation_error. It does not check the dimension of an existing collection.
func CheckItems(collection string, items []store.VectorItem) (metadata []string, err error) {
	if metadata, err = vectors.Check(collection, items); err != nil {
		return nil, err
	}
	for _, i := range items {
		if len(i.Embedding) != len(items[0].Embedding) {
			return nil, vectors.WrongDimension(collection, len(i.Embedding), len(items[0].Embedding))
		}
	}
	return metadata, nil
}

// IsCollection reports whether a collection can have the name.
func IsCollection(name string) bool { return vectors.Named(name) }

// WrongDimension returns the validation_error for an embedding whose dimension
// differs from its collection's.
func WrongDimension(collection string, got, want int) error {
	return vectors.WrongDimension(collection, got, want)
}

// Nearest is an exact scan of a collection with a dimension. It takes about a
// microsecond per thousand numbers.
func Nearest(collection string, dimension int, items []store.VectorItem, q store.VectorQuery) ([]store.VectorHit, error) {
	if len(q.Embedding) != dimension {
		return nil, vectors.WrongDimension(collection, len(q.Embedding), dimension)
	}
	own := length(q.Embedding)
	if own == 0 || math.IsNaN(own) || math.IsInf(own, 0) {
		return nil, tea.Errorf(tea.ValidationError, "the embedding of the query has only zeros, or a number that is not finite")
	}
	var hits []store.VectorHit
	for _, i := range items {
		if !q.Filter.MatchesObject(i.Metadata) {
			continue
		}
		score := dot(i.Embedding, q.Embedding) / length(i.Embedding) / own
		if score < q.MinScore {
			continue
		}
		if !q.Embeddings {
			i.Embedding = nil
		}
		hits = append(hits, store.VectorHit{VectorItem: i, Score: min(1, max(-1, score))})
	}
	slices.SortStableFunc(hits, func(a, b store.VectorHit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:min(len(hits), max(0, q.K))], nil
}

func length(v []float32) float64 { return math.Sqrt(dot(v, v)) }

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
