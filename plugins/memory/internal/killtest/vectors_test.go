package killtest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
)

const (
	vectorKeys = 5 // of each worker
	dimension  = 8
)

// vectorArea stores vectors, two at a time.
type vectorArea struct {
	gens    generations
	cells   [workers][vectorKeys]cell
	batches [workers]batch
}

func vectorID(worker, key int) string { return fmt.Sprintf("%d-%d", worker, key) }

// embedding is the vector of a generation.
func embedding(gen int64) []float64 {
	r := rand.New(rand.NewPCG(uint64(gen), 3)) //nolint:gosec // a test's data
	v := make([]float64, dimension)
	for i := range v {
		v[i] = float64(float32(r.NormFloat64()))
	}
	return v
}

func cosine(a, b []float64) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot, aa, bb = dot+a[i]*b[i], aa+a[i]*a[i], bb+b[i]*b[i]
	}
	return dot / math.Sqrt(aa*bb)
}

func (a *vectorArea) write(ctx context.Context, p *plugin, worker int, r *rand.Rand) error {
	b := &a.batches[worker]
	var texts, ids []string
	var embeddings [][]float64
	var metadata []map[string]any
	for _, key := range r.Perm(vectorKeys)[:2] {
		gen := a.gens.next(worker)
		b.send(&a.cells[worker][key], gen)
		texts, ids = append(texts, "text of "+word(gen)), append(ids, vectorID(worker, key))
		embeddings, metadata = append(embeddings, embedding(gen)), append(metadata, map[string]any{"gen": gen})
	}
	err := p.change(ctx, "vector.store", map[string]any{"texts": texts, "ids": ids, "embeddings": embeddings, "metadata": metadata, "collection": "killed"}, nil)
	if err == nil {
		b.ack()
	}
	return err
}

func (a *vectorArea) check(ctx context.Context, p *plugin) error {
	query := embedding(-1)
	var found struct {
		Results []struct {
			ID        string         `json:"id"`
			Text      string         `json:"text"`
			Score     float64        `json:"score"`
			Metadata  map[string]any `json:"metadata"`
			Embedding []float64      `json:"embedding"`
		} `json:"results"`
	}
	if err := p.call(ctx, "vector.query", map[string]any{"embedding": query, "k": 1000, "collection": "killed", "min_score": -1, "include_embeddings": true}, &found); err != nil {
		return err
	}
	there := map[string]int64{}
	for _, hit := range found.Results {
		gen, _ := hit.Metadata["gen"].(int64)
		there[hit.ID] = gen
		// The score comes from the index, the rest from the row.
		if want := cosine(query, embedding(gen)); math.Abs(hit.Score-want) > 1e-4 || hit.Text != "text of "+word(gen) || cosine(hit.Embedding, embedding(gen)) < 0.9999 {
			return fmt.Errorf("vector %s of %d: score %v instead of %v, text %q", hit.ID, gen, hit.Score, want, hit.Text)
		}
	}
	if len(there) != len(found.Results) {
		return fmt.Errorf("%d results have %d ids", len(found.Results), len(there))
	}
	for worker := range workers {
		for key := range vectorKeys {
			if _, err := a.cells[worker][key].see(there[vectorID(worker, key)]); err != nil {
				return fmt.Errorf("vector %s: %w", vectorID(worker, key), err)
			}
			delete(there, vectorID(worker, key))
		}
		if err := a.batches[worker].see(); err != nil {
			return fmt.Errorf("vector.store of worker %d: %w", worker, err)
		}
	}
	if len(there) > 0 {
		return fmt.Errorf("the vectors %v were never stored", there)
	}
	return nil
}

func (*vectorArea) blobs(context.Context, *plugin) ([]string, error) { return nil, nil }
