package graph

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// maxDimension is the length of an embedding.
const maxDimension = 16_384

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

// check checks the numbers of the embedding of an entity.
func (e Embedding) check(id string) error {
	if e != nil && len(e) == 0 || len(e) > maxDimension {
		return tea.Errorf(tea.ValidationError, "the embedding of %q has %d dimensions; it needs 1 to %d", id, len(e), maxDimension)
	}
	for i, f := range e {
		if math.IsInf(float64(f), 0) || math.IsNaN(float64(f)) {
			return tea.Errorf(tea.ValidationError, "dimension %d of the embedding of %q is too large", i, id)
		}
	}
	return nil
}

// embed asks the host's embedding.create for one vector per text.
func embed(ctx context.Context, req *tea.Request, texts []string, model string) ([]Embedding, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	params := map[string]any{"input": texts}
	if model != "" {
		params["model"] = model
	}
	answer, err := req.Host.Invoke(ctx, "embedding.create", params)
	if err != nil {
		if e := tea.AsError(err); e.Type == tea.NotFound {
			return nil, tea.Errorf(tea.DependencyMissing, "texts are embedded by the action embedding.create, which is not installed; install the llm plugin, or pass the embeddings")
		}
		return nil, err
	}
	var got struct {
		Embeddings []Embedding `json:"embeddings"`
	}
	if err := answer.Result.Decode(&got); err != nil {
		return nil, tea.Errorf(tea.InternalError, "read the answer of embedding.create: %w", err)
	}
	if len(got.Embeddings) != len(texts) {
		return nil, tea.Errorf(tea.InternalError, "embedding.create returned %d vectors for %d texts", len(got.Embeddings), len(texts))
	}
	for i, e := range got.Embeddings {
		if err := e.check(texts[i]); err != nil || e == nil {
			return nil, tea.Errorf(tea.InternalError, "embedding.create returned a vector that is not valid for text %d", i)
		}
	}
	return got.Embeddings, nil
}
