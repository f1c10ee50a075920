package graph

import (
	"cmp"
	"context"
	"math"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
	"github.com/the-edge-agent/tea/plugins/graph/internal/words"
)

func searchActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("graph.search", "Finds entities by words.", (*Graph).Search, tea.Idempotent()),
		tea.NewMethod("graph.vector_search", "Finds entities by the similarity of their embeddings.", (*Graph).VectorSearch, tea.Idempotent()),
		tea.NewMethod("graph.retrieve_context", "Finds what the graph has about a question, and writes it for a model.", (*Graph).RetrieveContext, tea.Idempotent()),
	}
}

// candidates is the number of entities that a database returns for words; they
// are ranked here, so that every backend has the same order.
const candidates = 1000

// SearchParams are the parameters of graph.search.
type SearchParams struct {
	Namespace
	Query       string         `json:"query" doc:"words; entities with more of them, and with rarer ones, come first"`
	EntityTypes []string       `json:"entity_types,omitempty" doc:"types of the entities; default all"`
	Filter      map[string]any `json:"filter,omitempty" doc:"values that the properties must have, as for graph.neighbors"`
	Limit       int            `json:"limit,omitempty" default:"10" minimum:"1" maximum:"1000"`
}

// Found is a result of a search.
type Found struct {
	Entity
	Score float64 `json:"score"`
}

// SearchResult is the result of graph.search and graph.vector_search.
type SearchResult struct {
	Success bool    `json:"success"`
	Results []Found `json:"results" doc:"best first, equal ones ordered by id"`
	Count   int     `json:"count"`
}

// Search is the action graph.search.
func (g *Graph) Search(ctx context.Context, _ *tea.Request, p SearchParams) (*SearchResult, error) {
	wanted, err := filter.Parse("filter", p.Filter)
	if err != nil {
		return nil, err
	}
	v, err := g.read(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	defer v.done()
	found, err := v.byWords(ctx, p.Query, p.EntityTypes, wanted, p.Limit)
	if err != nil {
		return nil, err
	}
	return &SearchResult{Success: true, Results: found, Count: len(found)}, nil
}

// byWords returns the best entities that have words of a text.
func (v *view) byWords(ctx context.Context, text string, types []string, wanted filter.Filter, limit int) ([]Found, error) {
	query := words.Distinct(text)
	if len(query) > 100 {
		query = query[:100]
	}
	ids, err := v.Store.Search(ctx, v.ns, store.TextQuery{Words: query, Types: types, Limit: candidates})
	if err != nil {
		return nil, err
	}
	// Ordered, so that the sums do not depend on the backend's ranking.
	slices.Sort(ids)
	entities, err := v.selectEntities(ctx, ids, types, wanted)
	if err != nil {
		return nil, err
	}
	return best(score(query, entities), limit), nil
}

// Constants of the BM25 ranking.
const (
	saturation = 1.2
	lengthPart = 0.75
)

// score ranks entities by BM25 among themselves.
func score(query []string, entities []Entity) []Found {
	counts := make([]map[string]int, len(entities))
	lengths := make([]float64, len(entities))
	having := map[string]int{}
	var total float64
	for i := range entities {
		counts[i] = map[string]int{}
		for _, text := range textsOf(&entities[i]) {
			for _, word := range words.Of(text) {
				lengths[i]++
				if _, ok := slices.BinarySearch(query, word); ok {
					counts[i][word]++
				}
			}
		}
		for word := range counts[i] {
			having[word]++
		}
		total += lengths[i]
	}
	average := max(total/float64(max(len(entities), 1)), 1)
	all := make([]Found, len(entities))
	for i := range entities {
		all[i].Entity = entities[i]
		for _, word := range query {
			n := float64(counts[i][word])
			if n == 0 {
				continue
			}
			rare := math.Log(1 + (float64(len(entities))-float64(having[word])+0.5)/(float64(having[word])+0.5))
			all[i].Score += rare * n * (saturation + 1) / (n + saturation*(1-lengthPart+lengthPart*lengths[i]/average))
		}
	}
	return slices.DeleteFunc(all, func(f Found) bool { return f.Score == 0 })
}

// best returns the results with the highest scores.
func best(all []Found, limit int) []Found {
	slices.SortFunc(all, func(a, b Found) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	return all[:min(len(all), limit)]
}

// VectorSearchParams are the parameters of graph.vector_search.
type VectorSearchParams struct {
	Namespace
	Query          string         `json:"query,omitempty" doc:"text, which embedding.create embeds"`
	Embedding      Embedding      `json:"embedding,omitempty" doc:"vector, instead of a text"`
	EntityTypes    []string       `json:"entity_types,omitempty" doc:"types of the entities; default all"`
	Filter         map[string]any `json:"filter,omitempty" doc:"values that the properties must have, as for graph.neighbors"`
	Limit          int            `json:"limit,omitempty" default:"10" minimum:"1" maximum:"1000"`
	MinScore       *float64       `json:"min_score,omitempty" minimum:"-1" maximum:"1" doc:"lowest cosine similarity of a result"`
	EmbeddingModel string         `json:"embedding_model,omitempty" doc:"model for embedding.create"`
}

// VectorSearch is the action graph.vector_search.
func (g *Graph) VectorSearch(ctx context.Context, req *tea.Request, p VectorSearchParams) (*SearchResult, error) {
	if (p.Query == "") == (len(p.Embedding) == 0) {
		return nil, tea.Errorf(tea.ValidationError, "graph.vector_search needs a query or an embedding, and not both")
	}
	wanted, err := filter.Parse("filter", p.Filter)
	if err != nil {
		return nil, err
	}
	if p.Query != "" {
		vectors, err := embed(ctx, req, []string{p.Query}, p.EmbeddingModel)
		if err != nil {
			return nil, err
		}
		p.Embedding = vectors[0]
	} else if err := p.Embedding.check("the query"); err != nil {
		return nil, err
	}
	v, err := g.read(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	defer v.done()
	dimension, err := v.Dimension(ctx)
	if err != nil {
		return nil, err
	}
	if dimension != 0 && dimension != len(p.Embedding) {
		return nil, store.DimensionError("the query", len(p.Embedding), dimension)
	}
	found, err := v.byVector(ctx, p.Embedding, p.EntityTypes, wanted, p.Limit)
	if err != nil {
		return nil, err
	}
	if p.MinScore != nil {
		found = slices.DeleteFunc(found, func(f Found) bool { return f.Score < *p.MinScore })
	}
	return &SearchResult{Success: true, Results: found, Count: len(found)}, nil
}

// byVector returns the entities with the most similar embeddings.
func (v *view) byVector(ctx context.Context, embedding []float32, types []string, wanted filter.Filter, limit int) ([]Found, error) {
	// With a filter more candidates are needed, until there are enough or no more.
	for n := limit; ; n *= 4 {
		ids, err := v.Nearest(ctx, v.ns, store.VectorQuery{Embedding: embedding, Types: types, Limit: n})
		if err != nil {
			return nil, err
		}
		stored, err := v.Entities(ctx, v.ns, ids, store.Fields{Embeddings: true})
		if err != nil {
			return nil, err
		}
		all := make([]Found, 0, len(stored))
		for i := range stored {
			if len(stored[i].Embedding) != len(embedding) {
				continue // changed meanwhile
			}
			e, err := toEntity(&stored[i])
			if err != nil {
				return nil, err
			}
			if wanted.MatchesObject(e.Properties) {
				all = append(all, Found{Entity: e, Score: store.Cosine(embedding, stored[i].Embedding)})
			}
		}
		if len(all) >= limit || len(ids) < n || n >= maxRelations {
			return best(all, limit), nil
		}
	}
}
