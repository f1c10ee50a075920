package memory

import (
	"cmp"
	"context"

	tea "github.com/the-edge-agent/tea/sdk"
)

// embed asks the host's embedding.create for one vector per text.
func embed(ctx context.Context, req *tea.Request, texts []string, model string) ([][]float32, error) {
	vectors, _, err := embedBy(ctx, req, texts, model)
	return vectors, err
}

// embedBy is embed, and says which model it was.
func embedBy(ctx context.Context, req *tea.Request, texts []string, model string) (vectors [][]float32, used string, err error) {
	params := map[string]any{"input": texts}
	if model != "" {
		params["model"] = model
	}
	answer, err := req.Host.Invoke(ctx, "embedding.create", params)
	if err != nil {
		if e := tea.AsError(err); e.Type == tea.NotFound {
			return nil, "", tea.Errorf(tea.DependencyMissing, "texts are embedded by the action embedding.create, which is not there: install the llm plugin, or give the embeddings yourself")
		}
		return nil, "", err
	}
	var got struct {
		Embeddings [][]float32 `json:"embeddings"`
		Model      string      `json:"model"`
	}
	if err := answer.Result.Decode(&got); err != nil {
		return nil, "", tea.Errorf(tea.InternalError, "the answer of embedding.create: %w", err)
	}
	if len(got.Embeddings) != len(texts) {
		return nil, "", tea.Errorf(tea.InternalError, "embedding.create gave %d vectors for %d texts", len(got.Embeddings), len(texts))
	}
	return got.Embeddings, cmp.Or(got.Model, model), nil
}
