package memory

import (
	"cmp"
	"context"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/embedding"
)

// Embedding is a vector as a parameter.
type Embedding = embedding.Vector

// model returns the model that an action names, or else the model of the settings.
func (m *Memory) model(given string) string {
	return cmp.Or(given, m.folder.settings.EmbeddingModel)
}

// embed asks the host's embedding.create for one vector per text.
func embed(ctx context.Context, req *tea.Request, texts []string, model string) ([][]float32, error) {
	vectors, _, err := embedBy(ctx, req, texts, model)
	return vectors, err
}

// embedBy is embed, and also returns the model.
func embedBy(ctx context.Context, req *tea.Request, texts []string, model string) (vectors [][]float32, used string, err error) {
	embeddings, used, err := embedding.Create(ctx, req, texts, model)
	if err != nil {
		return nil, "", err
	}
	return toVectors(embeddings), used, nil
}

// toVectors are the embeddings as package store takes them.
func toVectors(embeddings []Embedding) [][]float32 {
	vectors := make([][]float32, len(embeddings))
	for i, e := range embeddings {
		vectors[i] = e
	}
	return vectors
}
