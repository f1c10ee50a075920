// Package embedding is shared by the plugins that store embeddings. [Vector] is an
// embedding as a parameter of an action; [Create] requests embeddings of texts.
package embedding

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

// Vector is an embedding as a parameter: a list of numbers, none of them null.
type Vector []float32

// UnmarshalJSON reads a list of numbers.
func (v *Vector) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	list, ok := bytes.CutPrefix(raw, []byte("["))
	if !ok {
		return fmt.Errorf("an embedding is a list of numbers, not %.20s", raw)
	}
	list = bytes.TrimSpace(bytes.TrimSuffix(list, []byte("]")))
	*v = make(Vector, 0, bytes.Count(list, []byte(","))+1)
	for len(list) > 0 {
		text, rest, _ := bytes.Cut(list, []byte(","))
		text, list = bytes.TrimSpace(text), rest
		// Beyond float32 it is infinite, which the plugins reject.
		f, err := strconv.ParseFloat(string(text), 32)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return fmt.Errorf("element %d of an embedding is %.20s, not a number", len(*v), text)
		}
		*v = append(*v, float32(f))
	}
	return nil
}

// JSONSchema describes the list.
func (Vector) JSONSchema() *schema.Schema { return schema.Of[[]float64]() }

// Create calls the action embedding.create and returns one vector for each text, and the
// model that the action used. The model "" is its default. The error is a *tea.Error:
// [tea.DependencyMissing] if there is no such action.
func Create(ctx context.Context, req *tea.Request, texts []string, model string) (vectors []Vector, used string, err error) {
	params := map[string]any{"input": texts}
	if model != "" {
		params["model"] = model
	}
	answer, err := req.Host.Invoke(ctx, "embedding.create", params)
	if err != nil {
		if e := tea.AsError(err); e.Type == tea.NotFound { // the action, or its model
			return nil, "", tea.Errorf(tea.DependencyMissing, "embedding.create: %s; install the llm plugin if it is missing, or pass the embeddings", e.Message)
		}
		return nil, "", err
	}
	var got struct {
		Embeddings []Vector `json:"embeddings"`
		Model      string   `json:"model"`
	}
	if err := answer.Result.Decode(&got); err != nil {
		return nil, "", tea.Errorf(tea.InternalError, "read the answer of embedding.create: %w", err)
	}
	if len(got.Embeddings) != len(texts) {
		return nil, "", tea.Errorf(tea.InternalError, "embedding.create returned %d vectors for %d texts", len(got.Embeddings), len(texts))
	}
	return got.Embeddings, cmp.Or(got.Model, model), nil
}
