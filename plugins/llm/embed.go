package llm

import (
	"cmp"
	"context"
	"time"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
)

// EmbedParams are the parameters of embedding.create.
type EmbedParams struct {
	Connection
	Input      Texts `json:"input" doc:"a text or a list of texts"`
	Dimensions int   `json:"dimensions,omitempty" minimum:"1" doc:"length of the vectors, where the model lets one choose"`
	BatchSize  int   `json:"batch_size,omitempty" default:"64" minimum:"1" doc:"how many texts go into one request"`
}

// EmbedResult is the result of embedding.create.
type EmbedResult struct {
	Success    bool        `json:"success"`
	Embeddings [][]float64 `json:"embeddings" doc:"one vector per input, in the order of the inputs"`
	Dimensions int         `json:"dimensions" doc:"length of the vectors"`
	Count      int         `json:"count"`
	Model      string      `json:"model"`
	Provider   string      `json:"provider"`
	Usage      chat.Usage  `json:"usage"`
	CostUSD    *float64    `json:"cost_usd,omitempty" doc:"absent if the model has no price"`
	LatencyMS  int64       `json:"latency_ms"`
}

// Embed is the action embedding.create. It does not fall back, because vectors of
// different models are not comparable.
func (c *Client) Embed(ctx context.Context, req *tea.Request, p EmbedParams) (*EmbedResult, error) {
	if model := c.settings.EmbeddingModel; model != "" && p.Model == "" {
		p.Model, p.complete = model, c.settings.isComplete()
	}
	x, err := c.exchange(req, p.Connection, []Fallback{}, false)
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
	r := &EmbedResult{Success: true, Embeddings: make([][]float64, 0, len(p.Input)), Count: len(p.Input)}
	for first := 0; first < len(p.Input); first += p.BatchSize {
		batch := p.Input[first:min(first+p.BatchSize, len(p.Input))]
		got, err := x.embed(ctx, &chat.EmbedRequest{Input: batch, Dimensions: p.Dimensions})
		if err != nil {
			return nil, err
		}
		if err := r.add(got.Vectors, p.Dimensions); err != nil {
			return nil, err
		}
	}
	r.Model, r.Provider, r.Usage, r.CostUSD = x.model, x.target().name, x.usage, x.cost
	r.LatencyMS = time.Since(x.start).Milliseconds()
	return r, nil
}

// add adds vectors, which must have the dimensions of earlier ones.
func (r *EmbedResult) add(vectors [][]float64, want int) error {
	for _, v := range vectors {
		r.Dimensions = cmp.Or(r.Dimensions, len(v))
		if len(v) != r.Dimensions || want > 0 && len(v) != want {
			return tea.Errorf(tea.ValidationError, "the server sent a vector of %d dimensions instead of %d; check whether the model has a fixed size", len(v), cmp.Or(want, r.Dimensions))
		}
		r.Embeddings = append(r.Embeddings, v)
	}
	return nil
}
