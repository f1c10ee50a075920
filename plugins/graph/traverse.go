package graph

import (
	"context"
	"maps"
	"math"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

func traverseActions() []tea.Action {
	return []tea.Action{
		withAliases(tea.NewMethod("graph.neighbors", "Returns the entities within some hops of an entity.", (*Graph).Neighbors, tea.Idempotent(), tea.Reads()), "", startAliases),
		withAliases(tea.NewMethod("graph.shortest_path", "Finds the shortest path between two entities.", (*Graph).ShortestPath, tea.Idempotent(), tea.Reads()), "", pathAliases),
		withAliases(tea.NewMethod("graph.subgraph", "Returns the entities around some entities, and all relations between them.", (*Graph).Subgraph, tea.Idempotent(), tea.Reads()), "", startAliases),
	}
}

// Directions is the direction in which relations are followed.
type Directions string

// JSONSchema lists the directions.
func (Directions) JSONSchema() *schema.Schema {
	return &schema.Schema{Type: schema.Types{"string"}, Enum: []any{"out", "in", "both"}}
}

func (d Directions) store() store.Direction {
	switch d {
	case "out":
		return store.Out
	case "in":
		return store.In
	}
	return store.Both
}

// Traversal are the parameters that select which relations are followed.
type Traversal struct {
	When
	Direction     Directions `json:"direction,omitempty" default:"both" doc:"direction of the relations"`
	RelationTypes []string   `json:"relation_types,omitempty" doc:"types of the relations; default all"`
}

func (a Traversal) adjacency(now int64) (store.Adjacency, error) {
	at, err := a.instant(now)
	return store.Adjacency{Direction: a.Direction.store(), Types: a.RelationTypes, At: at, Lean: true}, err
}

// hop is how a traversal reached an entity.
type hop struct {
	depth int
	// via is the relation from an entity of the previous depth; nil for a start.
	via *store.Relation
}

// previous returns the entity from which the hop led to id.
func (h hop) previous(id string) string {
	if h.via.From == id {
		return h.via.To
	}
	return h.via.From
}

// walk visits the entities around some starts, breadth first, with one request per
// depth. It returns the hops by id, and the ids in the order in which they were reached,
// sorted within a depth. visit gets the relations of each step and the ids that they
// reached first; the walk ends when it returns false.
func (v *view) walk(ctx context.Context, starts []string, depth int, a store.Adjacency, visit func(relations []store.Relation, next []string) bool) (map[string]hop, []string, error) {
	reached := make(map[string]hop, len(starts))
	frontier := slices.Clone(starts)
	slices.Sort(frontier)
	frontier = slices.Compact(frontier)
	for _, id := range frontier {
		reached[id] = hop{}
	}
	order := slices.Clone(frontier)
	for d := 1; d <= depth && len(frontier) > 0; d++ {
		if len(reached) > maxRelations {
			return nil, nil, tea.Errorf(tea.ResourceExhausted, "more than %d entities were reached in %d hops; narrow the call by relation types or by a smaller depth", maxRelations, d-1)
		}
		a.IDs = frontier
		relations, err := v.step(ctx, a)
		if err != nil {
			return nil, nil, err
		}
		var next []string
		for i := range relations {
			r := &relations[i]
			for _, ends := range [2][2]string{{r.From, r.To}, {r.To, r.From}} {
				if (ends[0] == r.From) != (a.Direction != store.In) && a.Direction != store.Both {
					continue
				}
				from, ok := reached[ends[0]]
				if !ok || from.depth != d-1 {
					continue
				}
				if _, known := reached[ends[1]]; !known {
					reached[ends[1]] = hop{depth: d, via: r}
					next = append(next, ends[1])
				}
			}
		}
		slices.Sort(next)
		order = append(order, next...)
		frontier = next
		if visit != nil && !visit(relations, next) {
			break
		}
	}
	return reached, order, nil
}

// step returns the relations of a step of a traversal. They have all fields if there are
// at most a.Max.
func (v *view) step(ctx context.Context, a store.Adjacency) ([]store.Relation, error) {
	if most := a.Max; len(a.IDs) <= most {
		a.Lean = false
		found, err := v.Adjacent(ctx, v.ns, a)
		if err != nil || len(found) <= most {
			sortByKey(found)
			return found, err
		}
	}
	a.Lean = true
	return v.adjacent(ctx, a)
}

// NeighborsParams are the parameters of graph.neighbors.
type NeighborsParams struct {
	Namespace
	Traversal
	EntityID    string         `json:"entity_id"`
	Depth       int            `json:"depth,omitempty" default:"1" minimum:"1" maximum:"20" doc:"largest number of hops"`
	EntityTypes []string       `json:"entity_types,omitempty" doc:"types of the returned entities; the paths can lead through others"`
	Filter      map[string]any `json:"filter,omitempty" doc:"values that the properties of the returned entities must have; a list means any of its values; an object of operators compares, such as {\"n\": {\"gte\": 5, \"lt\": 10}}; operators: eq, ne, gt, gte, lt, lte, in, not_in, contains, startswith, endswith, exists"`
	Limit       int            `json:"limit,omitempty" default:"100" minimum:"1" maximum:"10000"`
}

// Neighbor is a result of graph.neighbors.
type Neighbor struct {
	Entity
	Depth int      `json:"depth" doc:"number of hops"`
	Via   Relation `json:"via" doc:"the relation of the last hop"`
}

// NeighborsResult is the result of graph.neighbors.
type NeighborsResult struct {
	Success   bool       `json:"success"`
	Neighbors []Neighbor `json:"neighbors" doc:"ordered by depth and id"`
	Count     int        `json:"count"`
	Truncated bool       `json:"truncated" doc:"whether there are more than limit"`
	Notes     []string   `json:"notes,omitempty" doc:"without a result: which relation_types, entity_types and properties do not exist"`
}

// Neighbors is the action graph.neighbors.
func (g *Graph) Neighbors(ctx context.Context, _ *tea.Request, p NeighborsParams) (*NeighborsResult, error) {
	wanted, err := filter.Parse("filter", p.Filter)
	if err != nil {
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
	a.Max = 2 * p.Limit // most of the relations read are returned
	// Without filters the first relations suffice.
	enough := func([]store.Relation, []string) bool { return true }
	if len(p.EntityTypes) == 0 && len(wanted) == 0 {
		found := 0
		enough = func(_ []store.Relation, ids []string) bool { found += len(ids); return found <= p.Limit }
	}
	reached, order, err := v.walk(ctx, []string{p.EntityID}, p.Depth, a, enough)
	if err != nil {
		return nil, err
	}
	r := &NeighborsResult{Success: true, Neighbors: []Neighbor{}}
	if len(order) == 1 { // otherwise it has relations
		if err := v.exist(ctx, p.EntityID); err != nil {
			return nil, err
		}
	}
	var entities []Entity
	if entities, r.Truncated, err = v.firstEntities(ctx, order[1:], p.EntityTypes, wanted, a.At, p.Limit); err != nil {
		return nil, err
	}
	for _, e := range entities {
		r.Neighbors = append(r.Neighbors, Neighbor{Entity: e, Depth: reached[e.ID].depth})
	}
	if r.Count = len(r.Neighbors); r.Count == 0 {
		r.Notes, err = v.notes(ctx, asked{relationTypes: p.RelationTypes, entityTypes: p.EntityTypes, filter: wanted, at: a.At})
		return r, err
	}
	return r, v.setVia(ctx, r.Neighbors, reached)
}

// setVia adds the relations of the last hops.
func (v *view) setVia(ctx context.Context, neighbors []Neighbor, reached map[string]hop) error {
	vias := make([]*store.Relation, len(neighbors))
	for i := range neighbors {
		if vias[i] = reached[neighbors[i].ID].via; vias[i] == nil {
			return store.Damaged("the entity %q was read instead of another one", neighbors[i].ID)
		}
	}
	complete, err := v.complete(ctx, vias)
	if err != nil {
		return err
	}
	for i := range neighbors {
		neighbors[i].Via = complete[i]
	}
	return nil
}

// complete reads all fields of lean relations.
func (v *view) complete(ctx context.Context, relations []*store.Relation) ([]Relation, error) {
	var keys []store.RelationKey
	for _, r := range relations {
		if r.Properties == nil {
			keys = append(keys, r.RelationKey)
		}
	}
	byKey := make(map[store.RelationKey]*store.Relation, len(keys))
	if len(keys) > 0 {
		found, err := v.Between(ctx, v.ns, keys)
		if err != nil {
			return nil, err
		}
		for i := range found {
			byKey[found[i].RelationKey] = &found[i]
		}
	}
	all := make([]Relation, len(relations))
	for i, r := range relations {
		if r.Properties == nil {
			if complete := byKey[r.RelationKey]; complete != nil {
				r = complete
			} else { // deleted meanwhile
				r.Properties = []byte("{}")
			}
		}
		var err error
		if all[i], err = toRelation(r); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// firstEntities is selectEntities with a limit, and reports whether there are more. It
// reads a page of entities at a time.
func (v *view) firstEntities(ctx context.Context, ids, types []string, wanted filter.Filter, at int64, limit int) (all []Entity, more bool, err error) {
	for page := range slices.Chunk(ids, max(limit+1, 200)) {
		found, err := v.selectEntities(ctx, page, types, wanted, at)
		if err != nil {
			return nil, false, err
		}
		if all = append(all, found...); len(all) > limit {
			return all[:limit], true, nil
		}
	}
	return all, false, nil
}

// selectEntities returns the entities with the ids, in their order, that have the types
// and the wanted properties at an instant.
func (v *view) selectEntities(ctx context.Context, ids, types []string, wanted filter.Filter, at int64) ([]Entity, error) {
	found, err := v.Entities(ctx, v.ns, ids, store.Fields{Facts: true})
	if err != nil {
		return nil, err
	}
	return v.matching(found, types, wanted, at)
}

// matching returns the entities that have the types and the wanted properties at an instant.
func (v *view) matching(found []store.Entity, types []string, wanted filter.Filter, at int64) ([]Entity, error) {
	entities := make([]Entity, 0, len(found))
	for i := range found {
		if len(types) > 0 && !slices.Contains(types, found[i].Type) {
			continue
		}
		e, err := v.toEntity(&found[i], at)
		if err != nil {
			return nil, err
		}
		if wanted.MatchesObject(e.Properties) {
			entities = append(entities, e)
		}
	}
	return entities, nil
}

// exist returns an error if one of the entities does not exist.
func (v *view) exist(ctx context.Context, ids ...string) error {
	found, err := v.Entities(ctx, v.ns, ids, store.Fields{})
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for i := range found {
		known[found[i].ID] = true
	}
	for _, id := range ids {
		if !known[id] {
			return v.missing(id)
		}
	}
	return nil
}

// ShortestPathParams are the parameters of graph.shortest_path.
type ShortestPathParams struct {
	Namespace
	Traversal
	FromEntity string `json:"from_entity"`
	ToEntity   string `json:"to_entity"`
	Weighted   bool   `json:"weighted,omitempty" doc:"add up the weights of the relations; without it the path with the fewest relations is found"`
	MaxDepth   int    `json:"max_depth,omitempty" default:"20" minimum:"1" maximum:"1000" doc:"largest number of relations of the path; it does not apply to weighted"`
}

// ShortestPathResult is the result of graph.shortest_path.
type ShortestPathResult struct {
	Success   bool       `json:"success"`
	Found     bool       `json:"found" doc:"whether there is a path"`
	Path      []string   `json:"path" doc:"ids of the entities, from the first to the last"`
	Entities  []Entity   `json:"entities" doc:"in the order of the path"`
	Relations []Relation `json:"relations" doc:"in the order of the path"`
	Length    int        `json:"length" doc:"number of relations"`
	Weight    float64    `json:"weight" doc:"sum of the relations' weights"`
	Notes     []string   `json:"notes,omitempty" doc:"without a path: which relation_types no relation has"`
}

// ShortestPath is the action graph.shortest_path. Of several shortest paths it returns
// the one whose last relations have the smallest keys.
func (g *Graph) ShortestPath(ctx context.Context, _ *tea.Request, p ShortestPathParams) (*ShortestPathResult, error) {
	v, err := g.read(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	defer v.done()
	if err := v.exist(ctx, p.FromEntity, p.ToEntity); err != nil {
		return nil, err
	}
	a, err := p.adjacency(v.now)
	if err != nil {
		return nil, err
	}
	r := &ShortestPathResult{Success: true, Path: []string{}, Entities: []Entity{}, Relations: []Relation{}}
	var reached map[string]hop
	if p.Weighted {
		reached, err = v.lightest(ctx, p.FromEntity, p.ToEntity, a)
	} else {
		reached, _, err = v.walk(ctx, []string{p.FromEntity}, p.MaxDepth, a, func(_ []store.Relation, ids []string) bool {
			_, there := slices.BinarySearch(ids, p.ToEntity)
			return !there && p.FromEntity != p.ToEntity
		})
	}
	if err != nil {
		return nil, err
	}
	if _, r.Found = reached[p.ToEntity]; !r.Found {
		r.Notes, err = v.notes(ctx, asked{relationTypes: p.RelationTypes})
		return r, err
	}
	var lean []*store.Relation
	for id := p.ToEntity; ; {
		r.Path = append(r.Path, id)
		if id == p.FromEntity {
			break
		}
		lean = append(lean, reached[id].via)
		id = reached[id].previous(id)
	}
	slices.Reverse(r.Path)
	slices.Reverse(lean)
	for i := range lean {
		r.Weight += lean[i].Weight
	}
	if math.IsInf(r.Weight, 0) {
		return nil, tea.Errorf(tea.ValidationError, "the weights of the path to %q add up to more than a number can hold; store smaller ones", p.ToEntity)
	}
	r.Length = len(lean)
	if r.Relations, err = v.complete(ctx, lean); err != nil {
		return nil, err
	}
	r.Entities, err = v.selectEntities(ctx, r.Path, nil, nil, a.At)
	return r, err
}

// SubgraphParams are the parameters of graph.subgraph.
type SubgraphParams struct {
	Namespace
	Traversal
	EntityID    string   `json:"entity_id,omitempty" doc:"the entity in the middle"`
	EntityIDs   []string `json:"entity_ids,omitempty" doc:"several of them"`
	Depth       *int     `json:"depth,omitempty" minimum:"0" maximum:"20" doc:"number of hops around the entities, default 1; 0 = these entities only"`
	EntityTypes []string `json:"entity_types,omitempty" doc:"types of the returned entities; default all"`
	Limit       int      `json:"limit,omitempty" default:"200" minimum:"1" maximum:"10000" doc:"largest number of entities; the nearest ones are returned"`
}

// SubgraphResult is the result of graph.subgraph.
type SubgraphResult struct {
	Success   bool       `json:"success"`
	Entities  []Entity   `json:"entities" doc:"ordered by distance and id"`
	Relations []Relation `json:"relations" doc:"all relations between the entities that are valid at the time"`
	Truncated bool       `json:"truncated" doc:"whether there are more than limit entities"`
	Notes     []string   `json:"notes,omitempty" doc:"without relations: which relation_types and entity_types do not exist"`
}

// Subgraph is the action graph.subgraph.
func (g *Graph) Subgraph(ctx context.Context, _ *tea.Request, p SubgraphParams) (*SubgraphResult, error) {
	v, err := g.read(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	defer v.done()
	a, err := p.adjacency(v.now)
	if err != nil {
		return nil, err
	}
	starts := p.EntityIDs
	if p.EntityID != "" {
		starts = append([]string{p.EntityID}, starts...)
	}
	if len(starts) == 0 || len(starts) > maxItems {
		return nil, tea.Errorf(tea.ValidationError, "graph.subgraph needs entity_id or entity_ids, from 1 to %d ids", maxItems)
	}
	if err := v.exist(ctx, starts...); err != nil {
		return nil, err
	}
	depth := 1
	if p.Depth != nil {
		depth = *p.Depth
	}
	_, order, err := v.walk(ctx, starts, depth, a, nil)
	if err != nil {
		return nil, err
	}
	r := &SubgraphResult{Success: true, Entities: []Entity{}}
	found, more, err := v.firstEntities(ctx, order, p.EntityTypes, nil, a.At, p.Limit)
	if err != nil {
		return nil, err
	}
	r.Entities, r.Truncated = append(r.Entities, found...), more
	if r.Relations, err = v.within(ctx, r.Entities, a); err != nil || len(r.Relations) > 0 {
		return r, err
	}
	r.Notes, err = v.notes(ctx, asked{relationTypes: p.RelationTypes, entityTypes: p.EntityTypes})
	return r, err
}

// within returns the relations between entities.
func (v *view) within(ctx context.Context, entities []Entity, a store.Adjacency) ([]Relation, error) {
	inside := make(map[string]bool, len(entities))
	for i := range entities {
		inside[entities[i].ID] = true
	}
	a.IDs, a.Direction, a.Lean = slices.Sorted(maps.Keys(inside)), store.Out, false
	relations, err := v.adjacent(ctx, a)
	if err != nil {
		return nil, err
	}
	return toRelations(slices.DeleteFunc(relations, func(r store.Relation) bool { return !inside[r.To] }))
}

// lightest finds the path with the smallest sum of weights by Dijkstra's algorithm. It
// reads the relations of all entities that were seen but not read in one request.
func (v *view) lightest(ctx context.Context, from, to string, a store.Adjacency) (map[string]hop, error) {
	reached := map[string]hop{from: {}}
	distance := map[string]float64{from: 0}
	out := map[string][]*store.Relation{}
	settled, read := map[string]bool{}, map[string]bool{}
	queue := &queue{{id: from}}
	for queue.Len() > 0 {
		next := queue.pop()
		if settled[next.id] {
			continue
		}
		settled[next.id] = true
		if next.id == to {
			break
		}
		if !read[next.id] {
			if err := v.readFrontier(ctx, distance, read, out, a); err != nil {
				return nil, err
			}
		}
		for _, r := range out[next.id] {
			if r.Weight < 0 {
				return nil, tea.Errorf(tea.ValidationError, "the relation %s has the negative weight %v; the shortest path by weight needs weights from 0", describe(*r), r.Weight)
			}
			other := hop{via: r}.previous(next.id)
			d, known := distance[other]
			if candidate := distance[next.id] + r.Weight; !known || candidate < d {
				distance[other] = candidate
				reached[other] = hop{via: r}
				queue.push(item{id: other, distance: candidate})
			}
		}
		delete(out, next.id)
	}
	return reached, nil
}

// readFrontier reads the relations of all entities that were seen but not read.
func (v *view) readFrontier(ctx context.Context, seen map[string]float64, read map[string]bool, out map[string][]*store.Relation, a store.Adjacency) error {
	if len(seen) > maxRelations {
		return tea.Errorf(tea.ResourceExhausted, "the shortest path needs more than %d entities; narrow the call by relation types", maxRelations)
	}
	a.IDs = nil
	for id := range seen {
		if !read[id] {
			read[id] = true
			a.IDs = append(a.IDs, id)
		}
	}
	slices.Sort(a.IDs)
	relations, err := v.adjacent(ctx, a)
	if err != nil {
		return err
	}
	wanted := make(map[string]bool, len(a.IDs))
	for _, id := range a.IDs {
		wanted[id] = true
	}
	for i := range relations {
		r := &relations[i]
		if wanted[r.From] && a.Direction != store.In {
			out[r.From] = append(out[r.From], r)
		}
		if wanted[r.To] && a.Direction != store.Out && r.To != r.From {
			out[r.To] = append(out[r.To], r)
		}
	}
	return nil
}
