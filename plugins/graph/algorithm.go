package graph

import (
	"cmp"
	"context"
	"math"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/algorithm"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

func algorithmActions() []tea.Action {
	return []tea.Action{
		withAliases(tea.NewMethod("graph.algorithm", "Computes ranks, groups or distances of all entities.", (*Graph).Algorithm, tea.Idempotent(), tea.Reads()), "", startAliases),
	}
}

// AlgorithmParams are the parameters of graph.algorithm.
type AlgorithmParams struct {
	Namespace
	When
	Algorithm     string     `json:"algorithm" enum:"pagerank,connected_components,community,centrality,shortest_paths" doc:"what is computed; community is the Louvain method"`
	Measure       string     `json:"measure,omitempty" enum:"degree,betweenness,closeness" default:"degree" doc:"the kind of centrality"`
	EntityID      string     `json:"entity_id,omitempty" doc:"where shortest_paths start; an error for other algorithms"`
	Direction     Directions `json:"direction,omitempty" doc:"direction of the relations; default out for pagerank and shortest_paths, both for centrality; out measures closeness to others, in measures closeness of others to the entity; connected_components and community follow both"`
	RelationTypes []string   `json:"relation_types,omitempty" doc:"types of the relations; default all"`
	EntityTypes   []string   `json:"entity_types,omitempty" doc:"types of the entities; relations of others are ignored; default all"`
	Weighted      bool       `json:"weighted,omitempty" doc:"use the weights of the relations: as lengths for shortest_paths, betweenness and closeness, as strengths for pagerank and community; an error for connected_components and the degree, which have no weights"`
	Damping       float64    `json:"damping,omitempty" default:"0.85" minimum:"0" maximum:"1" doc:"of pagerank"`
	Iterations    int        `json:"iterations,omitempty" default:"200" minimum:"1" maximum:"10000" doc:"largest number of rounds of pagerank"`
	Limit         int        `json:"limit,omitempty" default:"100" minimum:"1" maximum:"100000" doc:"largest number of results"`
}

// Computed is a result of graph.algorithm.
type Computed struct {
	ID       string   `json:"id"`
	Score    *float64 `json:"score,omitempty" doc:"of pagerank and centrality"`
	Group    *int     `json:"group,omitempty" doc:"of connected_components and community; the largest is 0"`
	Distance *float64 `json:"distance,omitempty" doc:"of shortest_paths"`
	Previous string   `json:"previous,omitempty" doc:"the entity before this one on the path"`
}

// AlgorithmResult is the result of graph.algorithm.
type AlgorithmResult struct {
	Success    bool       `json:"success"`
	Results    []Computed `json:"results" doc:"highest score, lowest group or shortest distance first, equal ones ordered by id; for shortest_paths those that are reached"`
	Count      int        `json:"count"`
	Total      int        `json:"total" doc:"number of results before the limit"`
	Groups     []int      `json:"groups,omitempty" doc:"sizes of the groups, largest first"`
	Modularity *float64   `json:"modularity,omitempty" doc:"of community"`
	Entities   int        `json:"entities" doc:"number of entities that were read"`
	Relations  int        `json:"relations" doc:"number of relations that were read"`
	Notes      []string   `json:"notes,omitempty" doc:"without relations: which relation_types and entity_types do not exist"`
}

// maxWork bounds the steps of an algorithm that visits all relations for each entity.
const maxWork int64 = 20_000_000_000

// Algorithm is the action graph.algorithm.
func (g *Graph) Algorithm(ctx context.Context, _ *tea.Request, p AlgorithmParams) (*AlgorithmResult, error) {
	switch {
	case p.Weighted && p.Algorithm == "connected_components":
		return nil, tea.Errorf(tea.ValidationError, "connected_components does not use weights; leave weighted out")
	case p.EntityID == "" && p.Algorithm == "shortest_paths":
		return nil, tea.Errorf(tea.ValidationError, "shortest_paths need entity_id, where they start")
	case p.Direction != "" && p.Direction != "both" && (p.Algorithm == "connected_components" || p.Algorithm == "community"):
		return nil, tea.Errorf(tea.ValidationError, "%s follows relations in both directions; leave direction out", p.Algorithm)
	case p.EntityID != "" && p.Algorithm != "shortest_paths":
		return nil, tea.Errorf(tea.ValidationError, "entity_id is where shortest_paths start, and %s looks at all entities; leave entity_id out", p.Algorithm)
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
	ids, edges, err := v.load(ctx, &p, at)
	if err != nil {
		return nil, err
	}
	r := &AlgorithmResult{Success: true, Entities: len(ids), Relations: len(edges), Results: []Computed{}}
	if err := r.compute(ctx, &p, ids, edges); err != nil {
		return nil, err
	}
	r.Total = len(r.Results)
	r.Results = r.Results[:min(r.Total, p.Limit)]
	r.Count = len(r.Results)
	if r.Relations == 0 {
		r.Notes, err = v.notes(ctx, asked{all: true, relationTypes: p.RelationTypes, entityTypes: p.EntityTypes})
	}
	return r, err
}

// maxWeight bounds the sum of weights, so that its square is a finite number.
const maxWeight = 1e150

// load reads the ids of all entities, in order, and the relations between them.
func (v *view) load(ctx context.Context, p *AlgorithmParams, at int64) ([]string, []algorithm.Edge, error) {
	var ids []string
	number := map[string]int32{}
	err := v.EachEntity(ctx, v.ns, store.EntityScan{Types: p.EntityTypes, Keys: true}, func(e *store.Entity) error {
		number[e.ID] = int32(len(ids))
		ids = append(ids, e.ID)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	var edges []algorithm.Edge
	total := 0.0
	err = v.EachRelation(ctx, v.ns, store.RelationScan{Types: p.RelationTypes, At: at, Lean: true}, func(r *store.Relation) error {
		from, ok := number[r.From]
		to, also := number[r.To]
		if !ok || !also {
			return nil
		}
		if len(edges) == maxScanned {
			return tea.Errorf(tea.ResourceExhausted, "the graph has more than %d relations; narrow the call by relation_types or entity_types", maxScanned)
		}
		weight := 1.0
		if p.Weighted {
			if weight = r.Weight; weight < 0 {
				return tea.Errorf(tea.ValidationError, "the relation %s has the negative weight %v; weighted needs weights from 0", describe(*r), weight)
			}
		}
		if total += weight; total > maxWeight {
			return tea.Errorf(tea.ValidationError, "the weights of the relations up to %s add up to more than %v; weighted needs smaller ones", describe(*r), maxWeight)
		}
		edges = append(edges, algorithm.Edge{From: from, To: to, Weight: weight})
		return nil
	})
	return ids, edges, err
}

// build returns the graph for a direction.
func build(n int, edges []algorithm.Edge, d Directions) *algorithm.Graph {
	if d == "in" {
		edges = algorithm.Reverse(edges)
	}
	return algorithm.New(n, edges, d == "both")
}

func (r *AlgorithmResult) compute(ctx context.Context, p *AlgorithmParams, ids []string, edges []algorithm.Edge) error {
	n := len(ids)
	switch p.Algorithm {
	case "pagerank":
		scores, err := build(n, edges, cmp.Or(p.Direction, "out")).PageRank(ctx, p.Damping, 1e-10, p.Iterations)
		r.scores(ids, scores)
		return err
	case "centrality":
		if err := p.checkCentrality(edges); err != nil {
			return err
		}
		scores, err := centrality(ctx, build(n, edges, cmp.Or(p.Direction, "both")), p.Measure, p.Weighted)
		r.scores(ids, scores)
		return err
	case "connected_components":
		r.groups(ids, build(n, edges, "both").Components())
		return nil
	case "community":
		groups, modularity, err := build(n, edges, "both").Communities(ctx)
		r.Modularity = &modularity
		r.groups(ids, groups)
		return err
	}
	start, ok := slices.BinarySearch(ids, p.EntityID)
	if !ok {
		return tea.Errorf(tea.NotFound, "shortest_paths start at entity_id, and there is no entity %q with these types", p.EntityID)
	}
	distances, before, err := build(n, edges, cmp.Or(p.Direction, "out")).Distances(ctx, start, p.Weighted)
	for i, d := range distances {
		if math.IsInf(d, 1) {
			continue
		}
		c := Computed{ID: ids[i], Distance: &distances[i]}
		if before[i] >= 0 {
			c.Previous = ids[before[i]]
		}
		r.Results = append(r.Results, c)
	}
	slices.SortStableFunc(r.Results, func(a, b Computed) int { return cmp.Compare(*a.Distance, *b.Distance) })
	return err
}

// checkCentrality refuses weights that a measure does not support.
func (p *AlgorithmParams) checkCentrality(edges []algorithm.Edge) error {
	switch {
	case !p.Weighted:
	case p.Measure == "degree":
		return tea.Errorf(tea.ValidationError, "the measure degree counts relations and does not use weights; leave weighted out, or use betweenness or closeness")
	case p.Measure == "betweenness" && slices.ContainsFunc(edges, func(e algorithm.Edge) bool { return e.Weight == 0 }):
		return tea.Errorf(tea.ValidationError, "a relation has the weight 0; betweenness with weighted needs lengths above 0")
	}
	return nil
}

func centrality(ctx context.Context, g *algorithm.Graph, measure string, weighted bool) ([]float64, error) {
	nodes, edges := g.Len()
	if measure == "degree" {
		return g.Degree(), nil
	}
	if work := int64(nodes) * int64(edges); work > maxWork {
		return nil, tea.Errorf(tea.ResourceExhausted, "%s of %d entities with %d relations takes too long; narrow the call by relation_types or entity_types", measure, nodes, edges)
	}
	if measure == "closeness" {
		return g.Closeness(ctx, weighted)
	}
	return g.Betweenness(ctx, weighted)
}

// scores sets the results to scores, highest first. ids are sorted.
func (r *AlgorithmResult) scores(ids []string, scores []float64) {
	for i := range scores {
		r.Results = append(r.Results, Computed{ID: ids[i], Score: &scores[i]})
	}
	slices.SortStableFunc(r.Results, func(a, b Computed) int { return cmp.Compare(*b.Score, *a.Score) })
}

// groups sets the results to groups, numbered by size.
func (r *AlgorithmResult) groups(ids []string, groups []int32) {
	sizes := []int{}
	for _, group := range groups {
		for int(group) >= len(sizes) {
			sizes = append(sizes, 0)
		}
		sizes[group]++
	}
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	number := make([]int, len(sizes))
	for i, group := range order {
		number[group] = i
		r.Groups = append(r.Groups, sizes[group])
	}
	for i, group := range groups {
		r.Results = append(r.Results, Computed{ID: ids[i], Group: &number[group]})
	}
	slices.SortStableFunc(r.Results, func(a, b Computed) int { return cmp.Compare(*a.Group, *b.Group) })
}
