package graph

import (
	"context"
	"math"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/embedding"
)

// maxDimension is the maximum length of an embedding.
const maxDimension = 16_384

// Embedding is a vector as a parameter.
type Embedding = embedding.Vector

// checkEmbedding checks the numbers of an entity's embedding.
func checkEmbedding(id string, e Embedding) error {
	if e != nil && len(e) == 0 || len(e) > maxDimension {
		return tea.Errorf(tea.ValidationError, "the embedding of %q has %d dimensions; it needs 1 to %d", id, len(e), maxDimension)
	}
	zeros := e != nil
	for i, f := range e {
		zeros = zeros && f == 0
		if math.IsInf(float64(f), 0) || math.IsNaN(float64(f)) {
			return tea.Errorf(tea.ValidationError, "dimension %d of the embedding of %q is too large, or not a number", i, id)
		}
	}
	if zeros {
		return tea.Errorf(tea.ValidationError, "the embedding of %q is all zeros, which are similar to nothing", id)
	}
	return nil
}

// embed calls the host's embedding.create and returns one vector per text.
func embed(ctx context.Context, req *tea.Request, texts []string, model string) ([]Embedding, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	vectors, _, err := embedding.Create(ctx, req, texts, model)
	if err != nil {
		return nil, err
	}
	for i, e := range vectors {
		if err := checkEmbedding(texts[i], e); err != nil || e == nil {
			return nil, tea.Errorf(tea.InternalError, "embedding.create returned a vector that is not valid for text %d", i)
		}
	}
	return vectors, nil
}
