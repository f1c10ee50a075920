package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/recall"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func recallActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("memory.embed", "Embeds a text or a stored entry with embedding.create.", (*Memory).Embed, tea.Idempotent()),
		tea.NewMethod("memory.embed_batch", "Embeds texts with embedding.create.", (*Memory).EmbedBatch, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("memory.backfill_embeddings", "Embeds the entries and files that have no vector.", writes((*Memory).BackfillEmbeddings), tea.Idempotent()),
		tea.NewMethod("memory.vector_search", "Finds the entries and files most similar to a text.", (*Memory).VectorSearch, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("memory.vector_search_by_embedding", "Finds the entries and files most similar to a vector.", (*Memory).VectorSearchByEmbedding, tea.Idempotent(), tea.Reads()),
	}
}

// EmbedParams are the parameters of memory.embed.
type EmbedParams struct {
	Text       string `json:"text,omitempty" doc:"what to embed"`
	Key        string `json:"key,omitempty" doc:"key of an entry of the long-term memory, instead of text; the vector is stored"`
	Namespace  string `json:"namespace,omitempty" doc:"namespace of the entry"`
	Collection string `json:"collection,omitempty" default:"ltm" doc:"collection for the vector of an entry"`
	Model      string `json:"model,omitempty" doc:"model for embedding.create"`
}

// EmbedResult is the result of memory.embed.
type EmbedResult struct {
	Success   bool      `json:"success"`
	Embedding []float32 `json:"embedding"`
	Dimension int       `json:"dimension"`
	Model     string    `json:"model"`
	Stored    bool      `json:"stored" doc:"true for an entry, which memory.vector_search then finds"`
}

// Embed is the action memory.embed.
func (m *Memory) Embed(ctx context.Context, req *tea.Request, p EmbedParams) (*EmbedResult, error) {
	if (p.Text == "") == (p.Key == "") {
		return nil, tea.Errorf(tea.ValidationError, "memory.embed needs a text or a key, but not both")
	}
	r := &EmbedResult{Success: true, Stored: p.Key != ""}
	var err error
	if p.Key != "" {
		if err := m.folder.writable(); err != nil {
			return nil, err
		}
		r.Embedding, r.Model, err = m.folder.recall.One(ctx, p.Collection, p.Namespace, p.Key, embedder(req, m.model(p.Model)))
		if errors.Is(err, store.ErrNotFound) {
			return nil, tea.Errorf(tea.NotFound, "there is no entry with the key %q", p.Key)
		}
	} else {
		var vectors [][]float32
		if vectors, r.Model, err = embedBy(ctx, req, []string{p.Text}, m.model(p.Model)); err == nil {
			r.Embedding = vectors[0]
		}
	}
	if err != nil {
		return nil, err
	}
	r.Dimension = len(r.Embedding)
	return r, nil
}

func embedder(req *tea.Request, model string) recall.Embed {
	return func(ctx context.Context, texts []string) ([][]float32, string, error) {
		return embedBy(ctx, req, texts, model)
	}
}

// EmbedBatchParams are the parameters of memory.embed_batch.
type EmbedBatchParams struct {
	Texts []string `json:"texts" maxItems:"100000"`
	Model string   `json:"model,omitempty" doc:"model for embedding.create"`
}

// EmbedBatchResult is the result of memory.embed_batch.
type EmbedBatchResult struct {
	Success    bool        `json:"success"`
	Embeddings [][]float32 `json:"embeddings" doc:"one vector for each text, in the order of the texts"`
	Count      int         `json:"count"`
	Dimension  int         `json:"dimension" doc:"0 if there are no texts"`
	Model      string      `json:"model"`
}

// EmbedBatch is the action memory.embed_batch.
func (m *Memory) EmbedBatch(ctx context.Context, req *tea.Request, p EmbedBatchParams) (*EmbedBatchResult, error) {
	r := &EmbedBatchResult{Success: true, Embeddings: [][]float32{}, Count: len(p.Texts), Model: m.model(p.Model)}
	if len(p.Texts) > maxItems {
		return nil, tea.Errorf(tea.ValidationError, "too many texts: %d (limit %d)", len(p.Texts), maxItems)
	}
	if len(p.Texts) == 0 {
		return r, nil
	}
	var err error
	if r.Embeddings, r.Model, err = embedBy(ctx, req, p.Texts, m.model(p.Model)); err != nil {
		return nil, err
	}
	r.Dimension = len(r.Embeddings[0])
	return r, nil
}

// BackfillParams are the parameters of memory.backfill_embeddings.
type BackfillParams struct {
	Namespace  string `json:"namespace,omitempty" doc:"namespace of the entries; the files belong to the default one"`
	Prefix     string `json:"prefix,omitempty" doc:"beginning of keys and paths"`
	BatchSize  int    `json:"batch_size,omitempty" default:"64" minimum:"1" maximum:"2048" doc:"number of texts in one call of embedding.create"`
	Limit      int    `json:"limit,omitempty" default:"10000" minimum:"1" doc:"largest number of texts to embed; call again for the rest"`
	Collection string `json:"collection,omitempty" default:"ltm" doc:"collection for the vectors"`
	Model      string `json:"model,omitempty" doc:"model for embedding.create; vectors of another model are replaced"`
}

// BackfillResult is the result of memory.backfill_embeddings.
type BackfillResult struct {
	Success   bool `json:"success"`
	Embedded  int  `json:"embedded"`
	Skipped   int  `json:"skipped" doc:"number of entries and files that had a vector or are empty"`
	Failed    int  `json:"failed" doc:"number of entries and files that the model refused; see the log"`
	Remaining int  `json:"remaining" doc:"number of entries and files beyond the limit"`
}

// BackfillEmbeddings is the action memory.backfill_embeddings.
func (m *Memory) BackfillEmbeddings(ctx context.Context, req *tea.Request, p BackfillParams) (*BackfillResult, error) {
	filled, err := m.folder.recall.Backfill(ctx, recall.Backfill{
		Collection: p.Collection, Namespace: p.Namespace, Prefix: p.Prefix, Model: m.model(p.Model), BatchSize: p.BatchSize, Limit: p.Limit, Embed: embedder(req, m.model(p.Model)),
		Failed: func(d recall.Document, err error) {
			req.Host.Log(ctx, slog.LevelWarn, "a text cannot be embedded", map[string]any{"source": d.Source, "key": d.Key, "error": err.Error()})
		},
		Progress: func(f recall.Filled) { req.Host.Progress(ctx, -1, fmt.Sprintf("%d embedded", f.Embedded)) },
	})
	if err != nil {
		return nil, err
	}
	return &BackfillResult{Success: true, Embedded: filled.Embedded, Skipped: filled.Skipped, Failed: filled.Failed, Remaining: filled.Remaining}, nil
}

// Near selects vectors.
type Near struct {
	K                 int            `json:"k,omitempty" minimum:"1" maximum:"1000" doc:"number of results; default 5"`
	Limit             int            `json:"limit,omitempty" minimum:"1" maximum:"1000" doc:"alias of k"`
	Threshold         *float64       `json:"threshold,omitempty" minimum:"-1" maximum:"1" doc:"lowest score of a result"`
	Collection        string         `json:"collection,omitempty" default:"ltm" doc:"name of the collection; ltm is the collection of memory.backfill_embeddings"`
	Filter            map[string]any `json:"filter,omitempty" doc:"values that the metadata must have; a list means any of its values; an object of operators compares, such as {\"n\": {\"gte\": 5, \"lt\": 10}}; operators: eq, ne, gt, gte, lt, lte, in, not_in, contains, startswith, endswith, exists"`
	IncludeEmbeddings bool           `json:"include_embeddings,omitempty" doc:"include the vectors"`
	Namespace         string         `json:"namespace,omitempty" maxLength:"256" doc:"namespace of the entries; files and other vectors are in the default one"`
}

// defaultNear is the default number of results.
const defaultNear = 5

// VectorSearchParams are the parameters of memory.vector_search.
type VectorSearchParams struct {
	Query string `json:"query" minLength:"1" doc:"text, which embedding.create embeds"`
	Near
	Model string `json:"model,omitempty" doc:"model for embedding.create"`
}

// VectorSearchByEmbeddingParams are the parameters of
// memory.vector_search_by_embedding.
type VectorSearchByEmbeddingParams struct {
	Embedding Embedding `json:"embedding" minItems:"1"`
	Near
}

// NearFound is a result of memory.vector_search.
type NearFound struct {
	VectorFound
	Source string `json:"source" doc:"ltm for an entry, file for a file, cloud for one of memory.cloud_store, empty for other vectors"`
	Key    string `json:"key" doc:"the entry's key or the file's path; the id for other vectors"`
}

// VectorSearchResult is the result of memory.vector_search.
type VectorSearchResult struct {
	Success    bool        `json:"success"`
	Results    []NearFound `json:"results" doc:"most similar first; text is the beginning of the entry or file"`
	Count      int         `json:"count"`
	Collection string      `json:"collection"`
}

// VectorSearch is the action memory.vector_search.
func (m *Memory) VectorSearch(ctx context.Context, req *tea.Request, p VectorSearchParams) (*VectorSearchResult, error) {
	vectors, err := embed(ctx, req, []string{p.Query}, m.model(p.Model))
	if err != nil {
		return nil, err
	}
	return m.near(ctx, vectors[0], p.Near)
}

// VectorSearchByEmbedding is the action memory.vector_search_by_embedding.
func (m *Memory) VectorSearchByEmbedding(ctx context.Context, _ *tea.Request, p VectorSearchByEmbeddingParams) (*VectorSearchResult, error) {
	if len(p.Embedding) == 0 {
		return nil, tea.Errorf(tea.ValidationError, "the embedding is empty")
	}
	return m.near(ctx, p.Embedding, p.Near)
}

func (m *Memory) near(ctx context.Context, embedding []float32, p Near) (*VectorSearchResult, error) {
	wanted, err := filter.Parse("filter", p.Filter)
	if err != nil {
		return nil, err
	}
	query := store.VectorQuery{Embedding: embedding, K: defaultNear, Filter: wanted, MinScore: -1, Embeddings: p.IncludeEmbeddings}
	switch {
	case p.K > 0 && p.Limit > 0 && p.K != p.Limit:
		return nil, tea.Errorf(tea.ValidationError, "k and limit mean the same; use one of them")
	case p.K > 0 || p.Limit > 0:
		query.K = min(max(p.K, p.Limit), maxResults)
	}
	if p.Threshold != nil {
		query.MinScore = *p.Threshold
	}
	hits, err := m.folder.recall.Search(ctx, p.Collection, p.Namespace, query)
	if err != nil {
		return nil, err
	}
	r := &VectorSearchResult{Success: true, Results: make([]NearFound, len(hits)), Count: len(hits), Collection: p.Collection}
	for i, hit := range hits {
		found := NearFound{Source: hit.Source, Key: hit.Key}
		if found.Key == "" {
			found.Key = hit.ID
		}
		found.VectorFound = VectorFound{ID: hit.ID, Text: hit.Text, Score: hit.Score, Metadata: hit.Metadata, Embedding: hit.Embedding}
		r.Results[i] = found
	}
	return r, nil
}
