package graph

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// RetrieveContextParams are the parameters of graph.retrieve_context.
type RetrieveContextParams struct {
	Namespace
	Along
	Query          string    `json:"query,omitempty" doc:"question; it is searched by words, and by similarity if the graph has embeddings"`
	Embedding      Embedding `json:"embedding,omitempty" doc:"embedding of the question, instead of that of embedding.create"`
	EntityID       string    `json:"entity_id,omitempty" doc:"entity to start from"`
	EntityTypes    []string  `json:"entity_types,omitempty" doc:"types of the entities that a search starts from; default all"`
	Hops           *int      `json:"hops,omitempty" minimum:"0" maximum:"5" doc:"number of hops around the entities that were found; default 2"`
	Limit          int       `json:"limit,omitempty" default:"20" minimum:"1" maximum:"1000" doc:"largest number of entities"`
	MaxTokens      int       `json:"max_tokens,omitempty" default:"2000" minimum:"1" doc:"size of context_summary; facts that do not fit are left out"`
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
}

// RetrieveContext is the action graph.retrieve_context.
func (g *Graph) RetrieveContext(ctx context.Context, req *tea.Request, p RetrieveContextParams) (*RetrieveContextResult, error) {
	if p.Query == "" && len(p.Embedding) == 0 && p.EntityID == "" {
		return nil, tea.Errorf(tea.ValidationError, "graph.retrieve_context needs a query, an embedding or an entity_id")
	}
	if err := p.Embedding.check("the query"); err != nil {
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
	scores, err := v.seeds(ctx, req, &p, r)
	if err != nil {
		return nil, err
	}
	if err := v.spread(ctx, scores, p.hops(), a); err != nil {
		return nil, err
	}
	if err := v.rank(ctx, scores, &p, a.At, r); err != nil {
		return nil, err
	}
	entities := make([]Entity, len(r.Entities))
	for i := range r.Entities {
		entities[i] = r.Entities[i].Entity
	}
	if r.Relations, err = v.within(ctx, entities, a); err != nil {
		return nil, err
	}
	r.write(p.MaxTokens)
	return r, nil
}

func (p *RetrieveContextParams) hops() int {
	if p.Hops == nil {
		return 2
	}
	return *p.Hops
}

// fusion makes the first places of two rankings count about the same.
const fusion = 60

// seeds finds the entities to start from, with scores.
func (v *view) seeds(ctx context.Context, req *tea.Request, p *RetrieveContextParams, r *RetrieveContextResult) (map[string]float64, error) {
	scores := map[string]float64{}
	if p.EntityID != "" {
		if err := v.exist(ctx, p.EntityID); err != nil {
			return nil, err
		}
		scores[p.EntityID] = 1
	}
	n := max(3, p.Limit/4)
	add := func(found []Found) {
		for i, f := range found {
			scores[f.ID] += float64(fusion) / float64(fusion+i) / 2
		}
	}
	if p.Query != "" {
		found, err := v.byWords(ctx, p.Query, p.EntityTypes, nil, n)
		if err != nil {
			return nil, err
		}
		add(found)
	}
	embedding, err := v.questionEmbedding(ctx, req, p, r)
	if err != nil || embedding == nil {
		return scores, err
	}
	found, err := v.byVector(ctx, embedding, p.EntityTypes, nil, n)
	add(found)
	return scores, err
}

// questionEmbedding returns nil if there is nothing to compare with. That it
// cannot be computed is a note.
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

// fading is the part of a score that an entity passes on over a hop.
const fading = 0.5

// spread adds the entities within some hops. An entity with many relations passes
// on less over each of them.
func (v *view) spread(ctx context.Context, scores map[string]float64, hops int, a store.Adjacency) error {
	depth := map[string]int{}
	for id := range scores {
		depth[id] = 0
	}
	step := 0
	_, _, err := v.walk(ctx, slices.Sorted(maps.Keys(scores)), hops, a, func(relations []store.Relation, next []string) bool {
		step++
		for _, id := range next {
			depth[id] = step
		}
		degree := map[string]int{}
		each := func(f func(from, to string)) {
			for _, r := range relations {
				f(r.From, r.To)
				f(r.To, r.From)
			}
		}
		each(func(from, _ string) { degree[from]++ })
		each(func(from, to string) {
			d, known := depth[from]
			if to, reached := depth[to]; !known || !reached || d != step-1 || to != step {
				return
			}
			scores[to] += fading * scores[from] / math.Sqrt(float64(degree[from]))
		})
		return true
	})
	return err
}

// rank reads the entities with the best scores.
func (v *view) rank(ctx context.Context, scores map[string]float64, p *RetrieveContextParams, at int64, r *RetrieveContextResult) error {
	all := make([]Found, 0, len(scores))
	for id, score := range scores {
		all = append(all, Found{Entity: Entity{ID: id}, Score: score})
	}
	top := best(all, p.Limit)
	r.Truncated = len(top) < len(all)
	ids := make([]string, len(top))
	for i := range top {
		ids[i] = top[i].ID
	}
	stored, err := v.Entities(ctx, v.ns, ids, store.Fields{Facts: p.AsOf != ""})
	if err != nil {
		return err
	}
	for i := range stored {
		e, err := toEntity(&stored[i])
		if err != nil {
			return err
		}
		if p.AsOf != "" {
			h, err := readHistory(stored[i].Facts)
			if err != nil {
				return err
			}
			e.Properties = h.at(e.Properties, at)
		}
		r.Entities = append(r.Entities, Found{Entity: e, Score: scores[e.ID]})
	}
	return nil
}

// write writes the facts of the result as text: each entity, followed by its
// relations to those before it.
func (r *RetrieveContextResult) write(maxTokens int) {
	var text strings.Builder
	var used float64
	sources := map[string]bool{}
	line := func(fact, source string) {
		cost := tokens(fact) + 1
		if used+cost > float64(maxTokens) {
			r.Truncated = true
			return
		}
		used += cost
		text.WriteString(fact)
		text.WriteByte('\n')
		if source != "" {
			sources[source] = true
		}
	}
	written := map[string]bool{}
	for i := range r.Entities {
		e := &r.Entities[i].Entity
		line(describeEntity(e), e.Source)
		written[e.ID] = true
		for j := range r.Relations {
			if s := &r.Relations[j]; written[s.From] && written[s.To] && (s.From == e.ID || s.To == e.ID) {
				line(describeRelation(s), s.Source)
			}
		}
	}
	r.ContextSummary = strings.TrimSuffix(text.String(), "\n")
	r.Tokens = int(math.Ceil(used))
	r.Sources = append(r.Sources, slices.Sorted(maps.Keys(sources))...)
}

// describeEntity is an entity as a line of text.
func describeEntity(e *Entity) string {
	text := fmt.Sprintf("%s (%s)", e.ID, e.Type)
	if facts := describeProperties(e.Properties); facts != "" {
		text += ": " + facts
	}
	if e.Text != "" {
		text += ". " + strings.Join(strings.Fields(e.Text), " ")
	}
	return text
}

// describeRelation is a relation as a line of text.
func describeRelation(r *Relation) string {
	details := []string{}
	if facts := describeProperties(r.Properties); facts != "" {
		details = append(details, facts)
	}
	if r.ValidFrom != "" {
		details = append(details, "since "+r.ValidFrom)
	}
	if r.ValidTo != "" {
		details = append(details, "until "+r.ValidTo)
	}
	text := fmt.Sprintf("%s %s %s", r.From, r.Type, r.To)
	if len(details) > 0 {
		text += " (" + strings.Join(details, "; ") + ")"
	}
	return text
}

func describeProperties(properties map[string]any) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		v, ok := properties[name].(string)
		if !ok {
			text, err := value.Encode(properties[name])
			if err != nil {
				continue // a stored value always has a JSON form
			}
			v = string(text)
		}
		parts = append(parts, name+" "+strings.Join(strings.Fields(v), " "))
	}
	return strings.Join(parts, ", ")
}

// tokens estimates the number of tokens of a text, rather too high than too low.
// A tokenizer would need more memory than the graph.
func tokens(text string) float64 {
	ascii, others := 0, 0
	for i := 0; i < len(text); {
		_, size := utf8.DecodeRuneInString(text[i:])
		if size == 1 {
			ascii++
		} else {
			others++
		}
		i += size
	}
	return float64(ascii)/3.5 + float64(others)
}
