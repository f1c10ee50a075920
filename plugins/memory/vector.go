package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/filter"
	"github.com/the-edge-agent/tea/plugins/memory/internal/store"
)

func vectorActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("vector.store", "Stores texts or vectors to be found by likeness.", (*Memory).VectorStore, tea.Idempotent()),
		tea.NewMethod("vector.query", "Finds the stored items most like a text or vector.", (*Memory).VectorQuery, tea.Idempotent()),
	}
}

// VectorStoreParams are the parameters of vector.store.
type VectorStoreParams struct {
	Texts          []string         `json:"texts,omitempty" doc:"what the vectors stand for; without embeddings they are made by embedding.create"`
	Embeddings     [][]float64      `json:"embeddings,omitempty" doc:"one vector for each text"`
	IDs            []string         `json:"ids,omitempty" doc:"names of the items; default a hash of the text, so that the same text is stored once"`
	Metadata       []map[string]any `json:"metadata,omitempty" doc:"one object for each text, to filter by"`
	Collection     string           `json:"collection,omitempty" default:"default" doc:"vectors of one model belong into one collection"`
	EmbeddingModel string           `json:"embedding_model,omitempty" doc:"model for embedding.create"`
}

// VectorStoreResult is the result of vector.store.
type VectorStoreResult struct {
	Success    bool     `json:"success"`
	Stored     int      `json:"stored"`
	IDs        []string `json:"ids"`
	Collection string   `json:"collection"`
	Dimension  int      `json:"dimension"`
}

// VectorStore is the action vector.store.
func (m *Memory) VectorStore(ctx context.Context, req *tea.Request, p VectorStoreParams) (*VectorStoreResult, error) {
	n := max(len(p.Texts), len(p.Embeddings))
	for name, have := range map[string]int{"texts": len(p.Texts), "embeddings": len(p.Embeddings), "ids": len(p.IDs), "metadata": len(p.Metadata)} {
		if have != 0 && have != n {
			return nil, tea.Errorf(tea.ValidationError, "vector.store: %s has %d entries, not %d; give one for each item or none", name, have, n)
		}
	}
	switch {
	case n == 0:
		return nil, tea.Errorf(tea.ValidationError, "vector.store needs texts or embeddings")
	case len(p.Texts) == 0 && len(p.IDs) == 0:
		return nil, tea.Errorf(tea.ValidationError, "vector.store needs ids where there are no texts")
	case n > maxItems:
		return nil, tea.Errorf(tea.ValidationError, "%d items are more than %d", n, maxItems)
	}
	embeddings := toFloat32(p.Embeddings)
	if embeddings == nil {
		var err error
		if embeddings, err = embed(ctx, req, p.Texts, p.EmbeddingModel); err != nil {
			return nil, err
		}
	}
	items := make([]store.VectorItem, n)
	r := &VectorStoreResult{Success: true, Stored: n, IDs: make([]string, n), Collection: p.Collection, Dimension: len(embeddings[0])}
	for i := range items {
		items[i].Embedding = embeddings[i]
		if len(p.Texts) > 0 {
			items[i].Text = p.Texts[i]
		}
		if len(p.Metadata) > 0 {
			items[i].Metadata = p.Metadata[i]
		}
		if len(p.IDs) > 0 {
			items[i].ID = p.IDs[i]
		} else {
			items[i].ID = textID(items[i].Text)
		}
		r.IDs[i] = items[i].ID
	}
	return r, m.folder.vectors.Store(ctx, p.Collection, items...)
}

// textID names an item after its text.
func textID(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

func toFloat32(vectors [][]float64) [][]float32 {
	if len(vectors) == 0 {
		return nil
	}
	out := make([][]float32, len(vectors))
	for i, v := range vectors {
		out[i] = make([]float32, len(v))
		for j, f := range v {
			out[i][j] = float32(f)
		}
	}
	return out
}

// VectorQueryParams are the parameters of vector.query.
type VectorQueryParams struct {
	Query             string         `json:"query,omitempty" doc:"a text, embedded by embedding.create"`
	Embedding         []float64      `json:"embedding,omitempty" doc:"a vector instead of a text"`
	K                 int            `json:"k,omitempty" default:"5" minimum:"1" maximum:"1000" doc:"how many results"`
	Collection        string         `json:"collection,omitempty" default:"default"`
	Filter            map[string]any `json:"filter,omitempty" doc:"values that the metadata must have; a list means any of its values, an object of operators compares: {\"n\": {\"gte\": 5, \"lt\": 10}}; operators: eq, ne, gt, gte, lt, lte, in, not_in, contains, startswith, endswith, exists"`
	IncludeEmbeddings bool           `json:"include_embeddings,omitempty" doc:"give the vectors too"`
	MinScore          float64        `json:"min_score,omitempty" minimum:"-1" maximum:"1" doc:"leave out what is less similar"`
	Exact             bool           `json:"exact,omitempty" doc:"compare with every vector, also where the graph finds enough of the nearest on average (settings.vector.recall)"`
	EmbeddingModel    string         `json:"embedding_model,omitempty" doc:"model for embedding.create"`
}

// VectorFound is a result of vector.query.
type VectorFound struct {
	ID        string         `json:"id"`
	Text      string         `json:"text"`
	Score     float64        `json:"score" doc:"cosine similarity, from -1 to 1"`
	Metadata  map[string]any `json:"metadata"`
	Embedding []float32      `json:"embedding,omitempty"`
}

// VectorQueryResult is the result of vector.query.
type VectorQueryResult struct {
	Success    bool          `json:"success"`
	Results    []VectorFound `json:"results" doc:"most similar first"`
	Count      int           `json:"count"`
	Collection string        `json:"collection"`
}

// VectorQuery is the action vector.query.
func (m *Memory) VectorQuery(ctx context.Context, req *tea.Request, p VectorQueryParams) (*VectorQueryResult, error) {
	if (p.Query == "") == (len(p.Embedding) == 0) {
		return nil, tea.Errorf(tea.ValidationError, "vector.query needs a query or an embedding, and not both")
	}
	wanted, err := filter.Parse("filter", p.Filter)
	if err != nil {
		return nil, err
	}
	query := store.VectorQuery{K: p.K, Filter: wanted, MinScore: p.MinScore, Exact: p.Exact}
	if p.MinScore == 0 {
		query.MinScore = -1
	}
	if p.Query != "" {
		vectors, err := embed(ctx, req, []string{p.Query}, p.EmbeddingModel)
		if err != nil {
			return nil, err
		}
		query.Embedding = vectors[0]
	} else {
		query.Embedding = toFloat32([][]float64{p.Embedding})[0]
	}
	hits, err := m.folder.vectors.Search(ctx, p.Collection, query)
	if err != nil {
		return nil, err
	}
	r := &VectorQueryResult{Success: true, Results: make([]VectorFound, len(hits)), Count: len(hits), Collection: p.Collection}
	for i, hit := range hits {
		r.Results[i] = VectorFound{ID: hit.ID, Text: hit.Text, Score: hit.Score, Metadata: hit.Metadata}
		if p.IncludeEmbeddings {
			r.Results[i].Embedding = hit.Embedding
		}
	}
	return r, nil
}
