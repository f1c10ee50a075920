package graph

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
	"github.com/the-edge-agent/tea/plugins/graph/internal/words"
)

func searchActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("graph.search", "Finds entities by words.", (*Graph).Search, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("graph.vector_search", "Finds entities by the similarity of their embeddings.", (*Graph).VectorSearch, tea.Idempotent(), tea.Reads()),
		withAliases(tea.NewMethod("graph.retrieve_context", "Finds what the graph has about a question, and writes it for a model.", (*Graph).RetrieveContext, tea.Idempotent(), tea.Reads()), "", startAliases),
	}
}

// candidates is the number of entities that a database returns for words. They are
// ranked here, so that every backend has the same order.
const candidates = 1000

// minCommon is the number of ranked entities for a query of common words. Ranking all of
// them would take too long.
const minCommon = 50

// SearchParams are the parameters of graph.search.
type SearchParams struct {
	Namespace
	When
	Query       string         `json:"query" doc:"words, also in other forms such as the plural; entities with more of them, and with rarer ones, come first. Function words such as the are left out"`
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
	Success bool     `json:"success"`
	Results []Found  `json:"results" doc:"best first, equal ones ordered by id"`
	Count   int      `json:"count"`
	Notes   []string `json:"notes,omitempty" doc:"why nothing was found, such as a graph without embeddings"`
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
	at, err := p.instant(v.now)
	if err != nil {
		return nil, err
	}
	query := words.NewQuery(p.Query)
	found, err := v.byWords(ctx, query, p.EntityTypes, wanted, at, p.Limit)
	if err != nil {
		return nil, err
	}
	r := &SearchResult{Success: true, Results: found, Count: len(found)}
	if len(found) > 0 {
		return r, nil
	}
	r.Notes, err = v.noteWords(ctx, query, asked{all: true, entityTypes: p.EntityTypes, filter: wanted, at: at})
	return r, err
}

// noteWords returns the reasons why no entity was found by words.
func (v *view) noteWords(ctx context.Context, query *words.Query, a asked) ([]string, error) {
	notes, err := v.notes(ctx, a)
	switch {
	case err != nil || len(notes) > 0:
		return notes, err
	case len(query.Words) == 0:
		return []string{"the query has no words"}, nil
	case query.All:
		return []string{"the query has only function words, and no entity has all of them"}, nil
	}
	return []string{"no entity that was searched has a word of the query"}, nil
}

// byWords returns the best entities that have words of a query.
func (v *view) byWords(ctx context.Context, query *words.Query, types []string, wanted filter.Filter, at int64, limit int) ([]Found, error) {
	ids, err := v.search(ctx, query, store.TextQuery{Types: types, Limit: candidates, Enough: max(minCommon, limit)})
	if err != nil {
		return nil, err
	}
	// Sorted, so that the sums do not depend on the backend's ranking.
	slices.Sort(ids)
	entities, err := v.selectEntities(ctx, ids, types, wanted, at)
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

// score ranks entities among themselves by BM25. Words in a name count twice, so that an
// entity comes before those that mention it. Entities without words of the query at this
// time are left out.
func score(query *words.Query, entities []Entity) []Found {
	counts := make([][]float64, len(entities))
	lengths := make([]float64, len(entities))
	having := make([]float64, len(query.Words))
	var total float64
	for i := range entities {
		counts[i] = make([]float64, len(query.Words))
		for _, text := range namesOf(&entities[i]) {
			for _, word := range words.Of(text) {
				if at, weight := query.Match(word); at >= 0 {
					counts[i][at] += weight
				}
			}
		}
		for _, text := range textsOf(&entities[i]) {
			for _, word := range words.All(text) {
				lengths[i]++
				if at, weight := query.Match(word); at >= 0 {
					counts[i][at] += weight
				}
			}
		}
		for at, n := range counts[i] {
			if n > 0 {
				having[at]++
			}
		}
		total += lengths[i]
	}
	average := max(total/float64(max(len(entities), 1)), 1)
	all := make([]Found, 0, len(entities))
	for i := range entities {
		f := Found{Entity: entities[i]}
		missing := false
		for at, n := range counts[i] {
			rare := math.Log(1 + (float64(len(entities))-having[at]+0.5)/(having[at]+0.5))
			f.Score += rare * n * (saturation + 1) / (n + saturation*(1-lengthPart+lengthPart*lengths[i]/average))
			missing = missing || n == 0
		}
		if f.Score > 0 && !(query.All && missing) {
			all = append(all, f)
		}
	}
	return all
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
		return nil, tea.Errorf(tea.ValidationError, "graph.vector_search needs a query or an embedding, but not both")
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
	} else if err := checkEmbedding("the query", p.Embedding); err != nil {
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
	found, err := v.byVector(ctx, p.Embedding, p.EntityTypes, wanted, v.now, p.Limit)
	if err != nil {
		return nil, err
	}
	r := &SearchResult{Success: true, Results: found}
	if p.MinScore != nil {
		enough := func(f Found) bool { return f.Score >= *p.MinScore }
		if len(found) > 0 && !enough(found[0]) {
			r.Notes = []string{fmt.Sprintf("the best result has the score %.4g, below min_score", found[0].Score)}
		}
		r.Results = slices.DeleteFunc(found, func(f Found) bool { return !enough(f) })
	}
	r.Count = len(r.Results)
	switch {
	case dimension == 0:
		r.Notes = []string{"the graph has no embeddings; store entities with embed: true, or with an embedding"}
	case len(found) == 0:
		r.Notes, err = v.notes(ctx, asked{all: true, entityTypes: p.EntityTypes, filter: wanted, at: v.now})
	}
	return r, err
}

// byVector returns the entities with the most similar embeddings.
func (v *view) byVector(ctx context.Context, embedding []float32, types []string, wanted filter.Filter, at int64, limit int) ([]Found, error) {
	// A filter needs more candidates, until there are enough results or no more candidates.
	for n := limit; ; n *= 4 {
		ids, err := v.Nearest(ctx, v.ns, store.VectorQuery{Embedding: embedding, Types: types, Limit: n})
		if err != nil {
			return nil, err
		}
		stored, err := v.Entities(ctx, v.ns, ids, store.Fields{Embeddings: true, Facts: true})
		if err != nil {
			return nil, err
		}
		all := make([]Found, 0, len(stored))
		for i := range stored {
			if len(stored[i].Embedding) != len(embedding) {
				continue // changed meanwhile
			}
			e, err := v.toEntity(&stored[i], at)
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
