package graph

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
	"github.com/the-edge-agent/tea/plugins/graph/internal/words"
)

// RetrieveContextParams are the parameters of graph.retrieve_context.
type RetrieveContextParams struct {
	Namespace
	Traversal
	Query          string    `json:"query,omitempty" doc:"question; it is searched by words, and by similarity if the graph has embeddings"`
	Embedding      Embedding `json:"embedding,omitempty" doc:"embedding of the question, used instead of calling embedding.create"`
	EntityID       string    `json:"entity_id,omitempty" doc:"entity to start from"`
	EntityTypes    []string  `json:"entity_types,omitempty" doc:"types of the entities that a search starts from; default all"`
	Hops           *int      `json:"hops,omitempty" minimum:"0" maximum:"5" doc:"number of hops around the entities that were found; default 2"`
	Limit          int       `json:"limit,omitempty" default:"20" minimum:"1" maximum:"1000" doc:"largest number of entities"`
	MaxTokens      int       `json:"max_tokens,omitempty" default:"2000" minimum:"1" doc:"largest size of context_summary; of a text that does not fit, the part that matches the query is kept, and other facts that do not fit are left out"`
	EmbeddingModel string    `json:"embedding_model,omitempty" doc:"model for embedding.create"`
}

// RetrieveContextResult is the result of graph.retrieve_context.
type RetrieveContextResult struct {
	Success        bool       `json:"success"`
	Entities       []Found    `json:"entities" doc:"most relevant first"`
	Relations      []Relation `json:"relations" doc:"between the entities"`
	ContextSummary string     `json:"context_summary" doc:"the facts as text, most relevant first"`
	Tokens         int        `json:"tokens" doc:"estimated size of context_summary"`
	Sources        []string   `json:"sources" doc:"sources of the facts in context_summary, each once"`
	Truncated      bool       `json:"truncated" doc:"whether entities or facts were left out because of limit or max_tokens"`
	Notes          []string   `json:"notes" doc:"what could not be done, such as a search by similarity"`

	// sources are the sources of the facts about each entity.
	sources [][]string
}

// RetrieveContext is the action graph.retrieve_context.
func (g *Graph) RetrieveContext(ctx context.Context, req *tea.Request, p RetrieveContextParams) (*RetrieveContextResult, error) {
	if p.Query == "" && len(p.Embedding) == 0 && p.EntityID == "" {
		return nil, tea.Errorf(tea.ValidationError, "graph.retrieve_context needs a query, an embedding or an entity_id")
	}
	if err := checkEmbedding("the query", p.Embedding); err != nil {
		return nil, err
	}
	v, err := g.read(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	defer v.done()
	a, err := p.adjacency(v.now)
	if err != nil {
		return nil, err
	}
	r := &RetrieveContextResult{Success: true, Entities: []Found{}, Relations: []Relation{}, Sources: []string{}, Notes: []string{}}
	f, err := v.seeds(ctx, req, &p, a.At, r)
	if err != nil {
		return nil, err
	}
	if len(f.scores) == 0 {
		if err := v.namedRelations(ctx, f, p.Limit, a); err != nil {
			return nil, err
		}
	}
	if err := v.expand(ctx, f, &p, a); err != nil {
		return nil, err
	}
	if err := v.rank(ctx, f.scores, &p, a.At, r); err != nil {
		return nil, err
	}
	entities := make([]Entity, len(r.Entities))
	for i := range r.Entities {
		entities[i] = r.Entities[i].Entity
	}
	if r.Relations, err = v.within(ctx, entities, a); err != nil {
		return nil, err
	}
	if len(r.Relations) == 0 {
		asked := asked{relationTypes: p.RelationTypes}
		if len(r.Entities) == 0 {
			asked.all, asked.entityTypes = true, p.EntityTypes
		}
		notes, err := v.notes(ctx, asked)
		if len(r.Entities) == 0 && p.Query != "" {
			notes, err = v.noteWords(ctx, f.query, asked)
		}
		if err != nil {
			return nil, err
		}
		r.Notes = append(r.Notes, notes...)
	}
	w := newSummary(p.MaxTokens, f.query)
	w.write(r)
	return r, nil
}

func (p *RetrieveContextParams) hops() int {
	if p.Hops == nil {
		return 2
	}
	return *p.Hops
}

// fusion makes the top ranks count about the same.
const fusion = 60

// found holds the entities that match a question, with scores.
type found struct {
	scores map[string]float64
	query  *words.Query
	// named caches the results of [found.names] by type of relation.
	named map[string]bool
}

// names reports whether the query has a word of a relation's type in any form: "Who
// maintains it?" names maintained_by. Possible function words do not count.
func (f *found) names(kind string) bool {
	named, known := f.named[kind]
	if known {
		return named
	}
	if !f.query.All {
		named = slices.ContainsFunc(words.Of(words.SplitName(kind)), func(word string) bool {
			_, weight := f.query.Match(word)
			return weight > words.Weak
		})
	}
	f.named[kind] = named
	return named
}

// seeds finds the entities that match. All matches by words can be in the result, but
// only the nearest by similarity, because every entity is similar to some degree.
func (v *view) seeds(ctx context.Context, req *tea.Request, p *RetrieveContextParams, at int64, r *RetrieveContextResult) (*found, error) {
	f := &found{scores: map[string]float64{}, query: words.NewQuery(p.Query), named: map[string]bool{}}
	if p.EntityID != "" {
		if err := v.exist(ctx, p.EntityID); err != nil {
			return nil, err
		}
		f.scores[p.EntityID] = 1
	}
	if p.Query != "" {
		matches, err := v.byWords(ctx, f.query, p.EntityTypes, nil, at, p.Limit+1)
		if err != nil {
			return nil, err
		}
		for _, m := range matches {
			f.scores[m.ID] += m.Score / matches[0].Score / 2
		}
	}
	embedding, err := v.questionEmbedding(ctx, req, p, r)
	if err != nil || embedding == nil {
		return f, err
	}
	nearest, err := v.byVector(ctx, embedding, p.EntityTypes, nil, at, p.starts())
	for i, n := range nearest {
		f.scores[n.ID] += float64(fusion) / float64(fusion+i) / 2
	}
	return f, err
}

// starts is the number of matches around which relations are followed.
func (p *RetrieveContextParams) starts() int { return max(3, p.Limit/4) }

// questionEmbedding returns nil if there is nothing to compare with. If the embedding
// cannot be computed, it adds a note.
func (v *view) questionEmbedding(ctx context.Context, req *tea.Request, p *RetrieveContextParams, r *RetrieveContextResult) (Embedding, error) {
	dimension, err := v.Dimension(ctx)
	if err != nil || dimension == 0 {
		if len(p.Embedding) > 0 && err == nil {
			r.Notes = append(r.Notes, "the graph has no embeddings; the embedding was not used")
		}
		return nil, err
	}
	embedding := p.Embedding
	if len(embedding) == 0 {
		if p.Query == "" {
			return nil, nil
		}
		vectors, err := embed(ctx, req, []string{p.Query}, p.EmbeddingModel)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			r.Notes = append(r.Notes, "the search by similarity was left out: "+tea.AsError(err).Message)
			return nil, nil
		}
		embedding = vectors[0]
	}
	if len(embedding) != dimension {
		return nil, store.DimensionError("the query", len(embedding), dimension)
	}
	return embedding, nil
}

// namedRelations adds the entities of relations whose types the query names. It is used
// if no entity matches the query.
func (v *view) namedRelations(ctx context.Context, f *found, limit int, a store.Adjacency) error {
	stats, err := v.Store.Stats(ctx, v.ns)
	if err != nil {
		return err
	}
	scan := store.RelationScan{At: a.At, Lean: true}
	for kind := range stats.RelationTypes {
		if f.names(kind) && (len(a.Types) == 0 || slices.Contains(a.Types, kind)) {
			scan.Types = append(scan.Types, kind)
		}
	}
	if len(scan.Types) == 0 {
		return nil
	}
	err = v.EachRelation(ctx, v.ns, scan, func(r *store.Relation) error {
		f.scores[r.From], f.scores[r.To] = 0.5, 0.5
		if len(f.scores) > limit {
			return errStopScan
		}
		return nil
	})
	if errors.Is(err, errStopScan) {
		return nil
	}
	return err
}

const (
	// hopDecay is the share of its score that an entity passes on over a hop.
	hopDecay = 0.5
	// namedShare is the share over a first hop along a relation that the query names. Such
	// a relation first multiplies the score by namedFactor.
	namedShare, namedFactor = 0.9, 1.5
)

// expand adds the entities within some hops around the best matches. An entity with many
// relations passes on less over each of them. A relation of a type that the query names
// counts as a match with another word: it raises the score of its known end, which passes
// on almost all of it over such relations. Only the best entities of a hop are followed:
// entities behind the others would not be in the result.
func (v *view) expand(ctx context.Context, f *found, p *RetrieveContextParams, a store.Adjacency) error {
	scores := f.scores
	depth := map[string]int{}
	a.IDs = bestIDs(slices.Collect(maps.Keys(scores)), scores, 2*p.starts())
	for _, id := range a.IDs {
		depth[id] = 0
	}
	for step := 1; step <= p.hops() && len(a.IDs) > 0; step++ {
		relations, err := v.adjacent(ctx, a)
		if err != nil {
			return err
		}
		degree, named := map[string]int{}, map[string]int{}
		for _, r := range relations {
			degree[r.From]++
			degree[r.To]++
			if f.names(r.Type) {
				named[r.From]++
				named[r.To]++
			}
		}
		for _, id := range a.IDs {
			if named[id] > 0 {
				scores[id] *= namedFactor
			}
		}
		var next []string
		for _, r := range relations {
			for _, ends := range [2][2]string{{r.From, r.To}, {r.To, r.From}} {
				from, to := ends[0], ends[1]
				if d, known := depth[from]; !known || d != step-1 {
					continue
				}
				if _, known := depth[to]; !known {
					depth[to] = step
					next = append(next, to)
				}
				if depth[to] != step {
					continue
				}
				share := hopDecay / math.Sqrt(float64(degree[from]))
				if f.names(r.Type) {
					share = namedShare * math.Pow(hopDecay, float64(step-1)) / math.Sqrt(float64(named[from]))
				}
				scores[to] += share * scores[from]
			}
		}
		a.IDs = bestIDs(next, scores, 2*p.Limit)
	}
	return nil
}

// bestIDs returns the ids with the highest scores, highest first.
func bestIDs(ids []string, scores map[string]float64, limit int) []string {
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b)) })
	return ids[:min(len(ids), limit)]
}

// rank reads the entities with the best scores.
func (v *view) rank(ctx context.Context, scores map[string]float64, p *RetrieveContextParams, at int64, r *RetrieveContextResult) error {
	ids := bestIDs(slices.Collect(maps.Keys(scores)), scores, p.Limit)
	r.Truncated = len(ids) < len(scores)
	// The requested entity comes first.
	if i := slices.Index(ids, p.EntityID); i > 0 {
		ids = slices.Insert(slices.Delete(ids, i, i+1), 0, p.EntityID)
	}
	stored, err := v.Entities(ctx, v.ns, ids, store.Fields{Facts: true})
	if err != nil {
		return err
	}
	for i := range stored {
		e, err := v.toEntity(&stored[i], at)
		if err != nil {
			return err
		}
		sources, err := v.sourcesOf(&stored[i], at)
		if err != nil {
			return err
		}
		r.sources = append(r.sources, sources)
		r.Entities = append(r.Entities, Found{Entity: e, Score: scores[e.ID]})
	}
	return nil
}

// sourcesOf returns the sources of an entity's properties and text at an instant. An
// entity without facts has one source for all.
func (v *view) sourcesOf(e *store.Entity, at int64) ([]string, error) {
	if e.Facts == "" {
		return []string{e.Source}, nil
	}
	values, h, err := readFacts(e)
	if err != nil {
		return nil, err
	}
	var sources []string
	for _, f := range h.valid(values, at) {
		sources = append(sources, f.Source)
	}
	return sources, nil
}
