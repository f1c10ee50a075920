package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

func vectorActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("vector.store", "Stores texts or vectors for similarity search.", writes((*Memory).VectorStore), tea.Idempotent()),
		tea.NewMethod("vector.query", "Finds the stored items most similar to a text or vector.", (*Memory).VectorQuery, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("vector.list", "Lists the items of a collection in the order of their ids.", (*Memory).VectorList, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("vector.delete", "Removes items from a collection.", writes((*Memory).VectorDelete), tea.Idempotent()),
		tea.NewMethod("vector.drop", "Removes a collection with all its items.", writes((*Memory).VectorDrop), tea.Idempotent()),
	}
}

// VectorStoreParams are the parameters of vector.store.
type VectorStoreParams struct {
	Texts          []string         `json:"texts,omitempty" doc:"texts of the items; embedding.create embeds them if embeddings is missing"`
	Embeddings     []Embedding      `json:"embeddings,omitempty" doc:"one vector for each text"`
	IDs            []string         `json:"ids,omitempty" doc:"ids of the items; default a hash of the text, so that equal texts are stored once"`
	Metadata       []map[string]any `json:"metadata,omitempty" doc:"one object to filter by for each text"`
	Collection     string           `json:"collection,omitempty" default:"default" doc:"name of the collection; use one for each embedding model"`
	EmbeddingModel string           `json:"embedding_model,omitempty" doc:"model for embedding.create"`
}

// VectorStoreResult is the result of vector.store.
type VectorStoreResult struct {
	Success    bool     `json:"success"`
	Stored     int      `json:"stored" doc:"number of items; 0 for empty lists"`
	IDs        []string `json:"ids" doc:"one for each text or embedding"`
	Collection string   `json:"collection"`
	Dimension  int      `json:"dimension" doc:"length of the vectors; 0 for empty lists"`
}

// VectorStore is the action vector.store.
func (m *Memory) VectorStore(ctx context.Context, req *tea.Request, p VectorStoreParams) (*VectorStoreResult, error) {
	n := max(len(p.Texts), len(p.Embeddings))
	for name, have := range map[string]int{"texts": len(p.Texts), "embeddings": len(p.Embeddings), "ids": len(p.IDs), "metadata": len(p.Metadata)} {
		if have != 0 && have != n {
			return nil, tea.Errorf(tea.ValidationError, "vector.store: %s has %d entries, not %d; pass one for each item or none", name, have, n)
		}
	}
	switch {
	case n == 0 && p.Texts == nil && p.Embeddings == nil:
		return nil, tea.Errorf(tea.ValidationError, "vector.store needs texts or embeddings")
	case n == 0:
		return &VectorStoreResult{Success: true, IDs: []string{}, Collection: p.Collection}, nil
	case len(p.Texts) == 0 && len(p.IDs) == 0:
		return nil, tea.Errorf(tea.ValidationError, "vector.store needs ids if there are no texts")
	case n > maxItems:
		return nil, tea.Errorf(tea.ValidationError, "too many items: %d (limit %d)", n, maxItems)
	}
	embeddings := toVectors(p.Embeddings)
	if len(embeddings) == 0 {
		var err error
		if embeddings, err = embed(ctx, req, p.Texts, m.model(p.EmbeddingModel)); err != nil {
			return nil, err
		}
	}
	items := make([]store.VectorItem, 0, n)
	r := &VectorStoreResult{Success: true, IDs: make([]string, n), Collection: p.Collection, Dimension: len(embeddings[0])}
	byText := map[string]int{}
	for i := range n {
		item := store.VectorItem{Embedding: embeddings[i]}
		if len(p.Texts) > 0 {
			item.Text = p.Texts[i]
		}
		if len(p.Metadata) > 0 {
			item.Metadata = p.Metadata[i]
		}
		if len(p.IDs) > 0 {
			item.ID = p.IDs[i]
			if err := checkName("id", item.ID); err != nil {
				return nil, err
			}
		} else {
			item.ID = textID(item.Text)
			first, again := byText[item.Text]
			switch {
			case !again:
				byText[item.Text] = i
			case len(p.Metadata) > 0 && !value.Equal(p.Metadata[first], p.Metadata[i]):
				return nil, tea.Errorf(tea.ValidationError, "vector.store: texts %d and %d are equal but their metadata differs; pass ids", first, i)
			}
			if again {
				r.IDs[i] = item.ID
				continue
			}
		}
		r.IDs[i], items = item.ID, append(items, item)
	}
	r.Stored = len(items)
	return r, m.folder.vectors.Store(ctx, p.Collection, items...)
}

// textID derives the id of an item from its text.
func textID(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// checkName refuses a name with U+FFFD, which stands for bytes that are not
// valid UTF-8: different names would become the same.
func checkName(what, name string) error {
	if strings.ContainsRune(name, utf8.RuneError) {
		return tea.Errorf(tea.ValidationError, "the %s %q is not valid UTF-8", what, name)
	}
	return nil
}

// VectorQueryParams are the parameters of vector.query.
type VectorQueryParams struct {
	Query             string         `json:"query,omitempty" doc:"text, which embedding.create embeds"`
	Embedding         Embedding      `json:"embedding,omitempty" doc:"vector, instead of a text"`
	K                 int            `json:"k,omitempty" default:"5" minimum:"1" maximum:"1000" doc:"number of results"`
	Collection        string         `json:"collection,omitempty" default:"default"`
	Filter            map[string]any `json:"filter,omitempty" doc:"values that the metadata must have; a list means any of its values; an object of operators compares, such as {\"n\": {\"gte\": 5, \"lt\": 10}}; operators: eq, ne, gt, gte, lt, lte, in, not_in, contains, startswith, endswith, exists"`
	IncludeEmbeddings bool           `json:"include_embeddings,omitempty" doc:"include the vectors"`
	MinScore          float64        `json:"min_score,omitempty" minimum:"-1" maximum:"1" doc:"lowest score of a result"`
	Exact             bool           `json:"exact,omitempty" doc:"compare with every vector, without the graph"`
	EmbeddingModel    string         `json:"embedding_model,omitempty" doc:"model for embedding.create"`
}

// VectorFound is a result of vector.query.
type VectorFound struct {
	ID        string         `json:"id"`
	Text      string         `json:"text"`
	Score     float64        `json:"score" doc:"cosine similarity, from -1 to 1"`
	Metadata  map[string]any `json:"metadata"`
	Embedding []float32      `json:"embedding,omitempty"`
	Damaged   bool           `json:"damaged,omitempty" doc:"true if the stored metadata is damaged; store the item again or delete it"`
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
		return nil, tea.Errorf(tea.ValidationError, "vector.query needs a query or an embedding, but not both")
	}
	wanted, err := filter.Parse("filter", p.Filter)
	if err != nil {
		return nil, err
	}
	query := store.VectorQuery{K: p.K, Filter: wanted, MinScore: p.MinScore, Exact: p.Exact, Embeddings: p.IncludeEmbeddings}
	if p.MinScore == 0 {
		query.MinScore = -1
	}
	if p.Query != "" {
		vectors, err := embed(ctx, req, []string{p.Query}, m.model(p.EmbeddingModel))
		if err != nil {
			return nil, err
		}
		query.Embedding = vectors[0]
	} else {
		query.Embedding = p.Embedding
	}
	hits, err := m.folder.vectors.Search(ctx, p.Collection, query)
	if err != nil {
		return nil, err
	}
	r := &VectorQueryResult{Success: true, Results: make([]VectorFound, len(hits)), Count: len(hits), Collection: p.Collection}
	for i, hit := range hits {
		r.Results[i] = VectorFound{ID: hit.ID, Text: hit.Text, Score: hit.Score, Metadata: hit.Metadata, Embedding: hit.Embedding, Damaged: hit.Damaged}
	}
	return r, nil
}

// VectorListParams are the parameters of vector.list.
type VectorListParams struct {
	Collection        string         `json:"collection,omitempty" default:"default"`
	Filter            map[string]any `json:"filter,omitempty" doc:"as for vector.query"`
	Limit             int            `json:"limit,omitempty" default:"100" minimum:"1" maximum:"1000" doc:"largest number of items in a page"`
	Cursor            string         `json:"cursor,omitempty" doc:"next_cursor of the previous page"`
	IncludeEmbeddings bool           `json:"include_embeddings,omitempty" doc:"include the vectors"`
}

// VectorListed is an item of vector.list.
type VectorListed struct {
	ID        string         `json:"id"`
	Text      string         `json:"text"`
	Metadata  map[string]any `json:"metadata"`
	Embedding []float32      `json:"embedding,omitempty"`
	Damaged   bool           `json:"damaged,omitempty" doc:"true if the stored metadata is damaged; store the item again or delete it"`
}

// VectorListResult is the result of vector.list.
type VectorListResult struct {
	Success    bool           `json:"success"`
	Items      []VectorListed `json:"items" doc:"ordered by id"`
	Count      int            `json:"count"`
	Collection string         `json:"collection"`
	NextCursor string         `json:"next_cursor" doc:"empty on the last page"`
}

// VectorList is the action vector.list.
func (m *Memory) VectorList(ctx context.Context, _ *tea.Request, p VectorListParams) (*VectorListResult, error) {
	wanted, err := filter.Parse("filter", p.Filter)
	if err != nil {
		return nil, err
	}
	r := &VectorListResult{Success: true, Items: []VectorListed{}, Collection: p.Collection}
	page := store.VectorPage{After: p.Cursor, Limit: min(p.Limit+1, vectorBatch), Embeddings: p.IncludeEmbeddings}
	for bytes := 0; ; {
		items, err := m.folder.vectors.List(ctx, p.Collection, page)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if !wanted.MatchesObject(item.Metadata) {
				continue
			}
			bytes += len(item.ID) + len(item.Text) + vectorNumber*len(item.Embedding) + sizeOf(item.Metadata)
			if r.Count == p.Limit || (r.Count > 0 && bytes > maxAnswer/2) {
				r.NextCursor = r.Items[r.Count-1].ID
				return r, nil
			}
			r.Items = append(r.Items, VectorListed{ID: item.ID, Text: item.Text, Metadata: item.Metadata, Embedding: item.Embedding, Damaged: item.Damaged})
			r.Count++
		}
		if len(items) < page.Limit {
			return r, nil
		}
		page.After = items[len(items)-1].ID
	}
}

const (
	// vectorBatch is how many items are read at a time.
	vectorBatch = 200
	// vectorNumber is the approximate number of bytes of a number in an answer.
	vectorNumber = 12
)

// sizeOf returns the length of metadata as JSON.
func sizeOf(metadata map[string]any) int {
	text, err := value.Encode(metadata)
	if err != nil {
		return 0
	}
	return len(text)
}

// VectorDeleteParams are the parameters of vector.delete.
type VectorDeleteParams struct {
	IDs        []string `json:"ids" doc:"ids of the items; those that do not exist are ignored"`
	Collection string   `json:"collection,omitempty" default:"default"`
}

// VectorDeleteResult is the result of vector.delete.
type VectorDeleteResult struct {
	Success    bool   `json:"success"`
	Deleted    int    `json:"deleted" doc:"number of items that existed"`
	Collection string `json:"collection"`
}

// VectorDelete is the action vector.delete.
func (m *Memory) VectorDelete(ctx context.Context, _ *tea.Request, p VectorDeleteParams) (*VectorDeleteResult, error) {
	if len(p.IDs) > maxItems {
		return nil, tea.Errorf(tea.ValidationError, "too many ids: %d (limit %d)", len(p.IDs), maxItems)
	}
	n, err := m.folder.vectors.Delete(ctx, p.Collection, p.IDs...)
	if err != nil {
		return nil, err
	}
	return &VectorDeleteResult{Success: true, Deleted: n, Collection: p.Collection}, nil
}

// VectorDropParams are the parameters of vector.drop.
type VectorDropParams struct {
	Collection string `json:"collection" minLength:"1" doc:"name of the collection; there is no default"`
}

// VectorDropResult is the result of vector.drop.
type VectorDropResult struct {
	Success    bool   `json:"success"`
	Dropped    bool   `json:"dropped" doc:"false if the collection did not exist"`
	Deleted    int    `json:"deleted" doc:"number of its items"`
	Collection string `json:"collection"`
}

// VectorDrop is the action vector.drop.
func (m *Memory) VectorDrop(ctx context.Context, _ *tea.Request, p VectorDropParams) (*VectorDropResult, error) {
	n, existed, err := m.folder.vectors.Drop(ctx, p.Collection)
	if err != nil {
		return nil, err
	}
	return &VectorDropResult{Success: true, Dropped: existed, Deleted: n, Collection: p.Collection}, nil
}
