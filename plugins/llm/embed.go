package llm

import (
	"cmp"
	"context"
	"time"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/transport"
	tea "github.com/the-edge-agent/tea/sdk"
)

// EmbedParams are the parameters of embedding.create.
type EmbedParams struct {
	Connection
	Input      Texts          `json:"input" doc:"a text or a list of texts"`
	Dimensions int            `json:"dimensions,omitempty" minimum:"1" doc:"length of the vectors, where the model lets one choose"`
	BatchSize  int            `json:"batch_size,omitempty" default:"64" minimum:"1" doc:"how many texts go into one request"`
	Extra      map[string]any `json:"extra,omitempty" doc:"further members of the request's body; null removes one"`
}

// EmbedResult are vectors.
type EmbedResult struct {
	Success    bool        `json:"success"`
	Embeddings [][]float64 `json:"embeddings" doc:"one vector per input, in the order of the inputs"`
	Dimensions int         `json:"dimensions" doc:"length of the vectors"`
	Count      int         `json:"count"`
	Model      string      `json:"model"`
	Provider   string      `json:"provider"`
	Usage      chat.Usage  `json:"usage"`
	CostUSD    *float64    `json:"cost_usd,omitempty" doc:"absent where settings.llm.prices does not know the model"`
	LatencyMS  int64       `json:"latency_ms"`
}

// Embed is the action embedding.create.
func (c *Client) Embed(ctx context.Context, req *tea.Request, p EmbedParams) (*EmbedResult, error) {
	start := time.Now()
	base := c.settings.Connection
	if model := c.settings.EmbeddingModel; model != "" {
		base.Model, base.Deployment = model, ""
	}
	t, err := c.target(ctx, req, p.Connection, base)
	if err != nil {
		return nil, err
	}
	if p.BatchSize < 1 {
		return nil, tea.Errorf(tea.ValidationError, "batch_size must be at least 1")
	}
	for i, text := range p.Input {
		if text == "" {
			return nil, tea.Errorf(tea.ValidationError, "input[%d] is empty, and an empty text has no embedding", i)
		}
	}
	r := &EmbedResult{Success: true, Embeddings: make([][]float64, 0, len(p.Input)), Count: len(p.Input), Model: t.model, Provider: t.name}
	for first := 0; first < len(p.Input); first += p.BatchSize {
		batch := p.Input[first:min(first+p.BatchSize, len(p.Input))]
		if err := r.add(ctx, t, &chat.EmbedRequest{Model: t.model, Input: batch, Dimensions: p.Dimensions, Extra: p.Extra}); err != nil {
			return nil, err
		}
	}
	r.CostUSD = cost(c.settings.Prices, r.Usage, t.model, r.Model)
	r.LatencyMS = time.Since(start).Milliseconds()
	return r, nil
}

// add asks for one batch.
func (r *EmbedResult) add(ctx context.Context, t *target, req *chat.EmbedRequest) error {
	ctx, cancel := transport.Expire(ctx, t.timeout)
	defer cancel()
	got, err := t.Provider.Embed(ctx, req)
	if err != nil {
		return err
	}
	for _, v := range got.Vectors {
		r.Dimensions = cmp.Or(r.Dimensions, len(v))
		if len(v) != r.Dimensions || req.Dimensions > 0 && len(v) != req.Dimensions {
			return tea.Errorf(tea.ValidationError, "the server sent a vector of %d dimensions instead of %d; has the model a fixed size?", len(v), cmp.Or(req.Dimensions, r.Dimensions))
		}
		r.Embeddings = append(r.Embeddings, v)
	}
	r.Model = cmp.Or(got.Model, r.Model)
	r.Usage.Add(usageOf(req, got))
	return nil
}

// usageOf gives the server's count or stands in for it.
func usageOf(req *chat.EmbedRequest, got *chat.Embeddings) chat.Usage {
	if got.Usage != nil {
		return *got.Usage
	}
	u := chat.Usage{Estimated: true}
	for _, text := range req.Input {
		u.InputTokens += chat.EstimateTokens(text)
	}
	u.TotalTokens = u.InputTokens
	return u
}
