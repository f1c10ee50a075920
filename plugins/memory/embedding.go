package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// embed asks the host's embedding.create for one vector per text.
func embed(ctx context.Context, req *tea.Request, texts []string, model string) ([][]float32, error) {
	vectors, _, err := embedBy(ctx, req, texts, model)
	return vectors, err
}

// embedBy is embed, and also returns the model.
func embedBy(ctx context.Context, req *tea.Request, texts []string, model string) (vectors [][]float32, used string, err error) {
	params := map[string]any{"input": texts}
	if model != "" {
		params["model"] = model
	}
	answer, err := req.Host.Invoke(ctx, "embedding.create", params)
	if err != nil {
		if e := tea.AsError(err); e.Type == tea.NotFound {
			return nil, "", tea.Errorf(tea.DependencyMissing, "texts are embedded by the action embedding.create, which is not installed; install the llm plugin, or pass the embeddings")
		}
		return nil, "", err
	}
	var got struct {
		Embeddings []Embedding `json:"embeddings"`
		Model      string      `json:"model"`
	}
	if err := answer.Result.Decode(&got); err != nil {
		return nil, "", tea.Errorf(tea.InternalError, "the answer of embedding.create: %w", err)
	}
	if len(got.Embeddings) != len(texts) {
		return nil, "", tea.Errorf(tea.InternalError, "embedding.create gave %d vectors for %d texts", len(got.Embeddings), len(texts))
	}
	return toVectors(got.Embeddings), cmp.Or(got.Model, model), nil
}

// Embedding is a vector as a parameter: a list of numbers. null is not a number.
type Embedding []float32

// UnmarshalJSON reads a list of numbers.
func (e *Embedding) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	list, ok := bytes.CutPrefix(raw, []byte("["))
	if !ok {
		return fmt.Errorf("an embedding is a list of numbers, not %.20s", raw)
	}
	list = bytes.TrimSpace(bytes.TrimSuffix(list, []byte("]")))
	*e = make(Embedding, 0, bytes.Count(list, []byte(","))+1)
	for len(list) > 0 {
		text, rest, _ := bytes.Cut(list, []byte(","))
		text, list = bytes.TrimSpace(text), rest
		// Beyond float32 it is infinite, which is refused later.
		f, err := strconv.ParseFloat(string(text), 32)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return fmt.Errorf("element %d of an embedding is %.20s, not a number", len(*e), text)
		}
		*e = append(*e, float32(f))
	}
	return nil
}

// JSONSchema describes the list.
func (Embedding) JSONSchema() *schema.Schema { return schema.Of[[]float64]() }

// toVectors are the embeddings as package store takes them.
func toVectors(embeddings []Embedding) [][]float32 {
	vectors := make([][]float32, len(embeddings))
	for i, e := range embeddings {
		vectors[i] = e
	}
	return vectors
}
