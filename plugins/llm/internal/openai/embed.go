package openai

import (
	"context"
	"encoding/json"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// Embed implements [chat.Provider].
func (p *Provider) Embed(ctx context.Context, req *chat.EmbedRequest) (*chat.Embeddings, error) {
	body := map[string]any{"model": req.Model, "input": req.Input}
	if req.Dimensions > 0 {
		body["dimensions"] = req.Dimensions
	}
	chat.Merge(body, req.Extra)
	var result *chat.Embeddings
	err := p.server.Post(ctx, p.path("embeddings"), body, func(reply httpapi.Reply) error {
		raw, err := reply.ReadAll()
		if err != nil {
			return err
		}
		result, err = toEmbeddings(raw, len(req.Input))
		return err
	})
	if err != nil {
		return nil, p.server.Missing(err, p.addressHint)
	}
	return result, nil
}

func toEmbeddings(raw []byte, want int) (*chat.Embeddings, error) {
	var answer struct {
		Model string `json:"model"`
		Data  []struct {
			Index     *place `json:"index"`
			Embedding vector `json:"embedding"`
		} `json:"data"`
		Usage json.RawMessage `json:"usage"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, httpapi.NotAnAnswer(raw, "embeddings", err)
	}
	if httpapi.IsError(answer.Error) {
		return nil, httpapi.StreamError(answer.Error)
	}
	vectors := make([][]float64, want)
	for i, d := range answer.Data {
		at := i
		if d.Index != nil {
			at = int(*d.Index)
		}
		if at >= 0 && at < want {
			vectors[at] = d.Embedding
		}
	}
	for i, v := range vectors {
		if len(v) == 0 {
			return nil, tea.Errorf(tea.ConnectionError, "the server sent no embedding for input %d of %d", i+1, want)
		}
	}
	return &chat.Embeddings{Model: answer.Model, Vectors: vectors, Usage: toUsage(answer.Usage)}, nil
}
