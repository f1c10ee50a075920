package graph

import (
	"context"
	"fmt"
	"math"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

func relationActions() []tea.Action {
	return []tea.Action{
		withAliases(tea.NewMethod("graph.store_relation", "Stores a relation between two entities.", (*Graph).StoreRelation, tea.Idempotent()), "", relationAliases),
		withAliases(tea.NewMethod("graph.store_relations", "Stores many relations in one transaction.", (*Graph).StoreRelations, tea.Idempotent()), "relations", relationAliases),
		withAliases(tea.NewMethod("graph.get_relations", "Lists the relations of an entity.", (*Graph).GetRelations, tea.Idempotent(), tea.Reads()), "", startAliases),
		withAliases(tea.NewMethod("graph.delete_relation", "Removes a relation, or ends it at a time.", (*Graph).DeleteRelation, tea.Idempotent()), "", relationAliases),
	}
}

// RelationFields are the fields of a relation that a call can store.
type RelationFields struct {
	FromEntity   string         `json:"from_entity" doc:"id of the entity where the relation begins"`
	ToEntity     string         `json:"to_entity" doc:"id of the entity where it ends"`
	RelationType string         `json:"relation_type" doc:"type, such as works_at"`
	Properties   map[string]any `json:"properties,omitempty" doc:"values by name"`
	Weight       *float64       `json:"weight,omitempty" doc:"length of the relation for shortest paths, and its strength for algorithms; default 1"`
	Merge        bool           `json:"merge,omitempty" doc:"keep the properties that are stored and not passed"`
	ValidFrom    string         `json:"valid_from,omitempty" doc:"time or date from which the relation is valid; the same relation that is valid until then ends there. Default: the stored relation's, unknown for a new one"`
	ValidTo      string         `json:"valid_to,omitempty" doc:"time or date at which the relation ends; default never"`
	Exclusive    bool           `json:"exclusive,omitempty" doc:"the entity has one relation of this type at a time, such as lives_in: the others end where this one begins, by default now"`
	Source       string         `json:"source,omitempty" doc:"where the fact comes from"`
}

// StoreRelationParams are the parameters of graph.store_relation.
type StoreRelationParams struct {
	Namespace
	RelationFields
	CreateMissing bool `json:"create_missing,omitempty" doc:"create entities that do not exist; without it they are an error"`
}

// StoreRelationResult is the result of graph.store_relation.
type StoreRelationResult struct {
	Success   bool   `json:"success"`
	From      string `json:"from"`
	To        string `json:"to"`
	Type      string `json:"type"`
	Created   bool   `json:"created" doc:"false if the relation existed"`
	Closed    int    `json:"closed" doc:"number of relations that this one ended"`
	ValidFrom string `json:"valid_from" doc:"empty if it is not known"`
	ValidTo   string `json:"valid_to" doc:"empty if the relation has no end"`
}

// StoreRelation is the action graph.store_relation.
func (g *Graph) StoreRelation(ctx context.Context, _ *tea.Request, p StoreRelationParams) (*StoreRelationResult, error) {
	t, err := g.storeRelations(ctx, p.Namespace, []RelationFields{p.RelationFields}, p.CreateMissing)
	if err != nil {
		return nil, err
	}
	return &StoreRelationResult{
		Success: true, From: p.FromEntity, To: p.ToEntity, Type: p.RelationType, Created: t.created > 0, Closed: t.closed,
		ValidFrom: store.FormatInstant(t.last.ValidFrom), ValidTo: store.FormatInstant(t.last.ValidTo),
	}, nil
}

// StoreRelationsParams are the parameters of graph.store_relations.
type StoreRelationsParams struct {
	Namespace
	Relations     []RelationFields `json:"relations" doc:"up to 10000; all are stored or none"`
	CreateMissing bool             `json:"create_missing,omitempty" doc:"create entities that do not exist; without it they are an error"`
}

// StoreRelationsResult is the result of graph.store_relations.
type StoreRelationsResult struct {
	Success         bool `json:"success"`
	Stored          int  `json:"stored"`
	Created         int  `json:"created" doc:"number of those that did not exist"`
	Closed          int  `json:"closed" doc:"number of relations that these ended"`
	CreatedEntities int  `json:"created_entities"`
}

// StoreRelations is the action graph.store_relations.
func (g *Graph) StoreRelations(ctx context.Context, _ *tea.Request, p StoreRelationsParams) (*StoreRelationsResult, error) {
	t, err := g.storeRelations(ctx, p.Namespace, p.Relations, p.CreateMissing)
	if err != nil {
		return nil, err
	}
	return &StoreRelationsResult{Success: true, Stored: len(p.Relations), Created: t.created, Closed: t.closed, CreatedEntities: t.entities}, nil
}

func (f *RelationFields) check() error {
	for _, name := range []struct{ what, name string }{{"from_entity", f.FromEntity}, {"to_entity", f.ToEntity}, {"relation_type", f.RelationType}} {
		if err := checkName(name.what, name.name); err != nil {
			return err
		}
	}
	if err := checkSource(f.Source); err != nil {
		return err
	}
	if err := checkProperties("the relation "+f.String(), f.Properties); err != nil {
		return err
	}
	if f.Weight != nil && (math.IsNaN(*f.Weight) || math.IsInf(*f.Weight, 0)) {
		return tea.Errorf(tea.ValidationError, "the weight of %s is not a finite number: %v", f, *f.Weight)
	}
	from, err := toInstant("valid_from", f.ValidFrom, store.Always)
	if err != nil {
		return err
	}
	to, err := toInstant("valid_to", f.ValidTo, store.Forever)
	if err != nil {
		return err
	}
	if to <= from {
		return tea.Errorf(tea.ValidationError, "the relation %s ends before it begins: valid_to %s, valid_from %s", f, f.ValidTo, f.ValidFrom)
	}
	return nil
}

func (f *RelationFields) String() string {
	return fmt.Sprintf("%q -%s-> %q", f.FromEntity, f.RelationType, f.ToEntity)
}

// describe names a relation in a message.
func describe(r store.Relation) string {
	return (&RelationFields{FromEntity: r.From, RelationType: r.Type, ToEntity: r.To}).String()
}

func (g *Graph) storeRelations(ctx context.Context, ns Namespace, given []RelationFields, createMissing bool) (*timeline, error) {
	if len(given) > maxItems {
		return nil, tea.Errorf(tea.ValidationError, "too many relations: %d (limit %d)", len(given), maxItems)
	}
	for i := range given {
		if err := given[i].check(); err != nil {
			return nil, err
		}
	}
	v, err := g.write(ctx, ns)
	if err != nil {
		return nil, err
	}
	defer v.done()
	t, err := v.timeline(ctx, given)
	if err != nil {
		return nil, err
	}
	batch := store.Batch{}
	if batch.Entities, err = v.ends(ctx, given, createMissing); err != nil {
		return nil, err
	}
	t.entities = len(batch.Entities)
	for i := range given {
		if err := t.put(&given[i]); err != nil {
			return nil, err
		}
	}
	batch.Relations = t.changed()
	return t, v.Apply(ctx, v.ns, batch)
}

// ends returns entities to create at the ends of relations.
func (v *view) ends(ctx context.Context, given []RelationFields, create bool) ([]store.Entity, error) {
	ids := make([]string, 0, 2*len(given))
	for i := range given {
		ids = append(ids, given[i].FromEntity, given[i].ToEntity)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	found, err := v.Entities(ctx, v.ns, ids, store.Fields{})
	if err != nil {
		return nil, err
	}
	existing := make(map[string]bool, len(found))
	for i := range found {
		existing[found[i].ID] = true
	}
	c := &changes{now: v.now, byID: map[string]*store.Entity{}, changed: map[string]bool{}}
	for _, id := range ids {
		switch {
		case existing[id]:
		case !create:
			return nil, tea.Errorf(tea.NotFound, "there is no entity %q in the namespace %q of the graph; store it first, or set create_missing: true", id, v.ns)
		default:
			if err := c.put(&EntityFields{EntityID: id}); err != nil {
				return nil, err
			}
		}
	}
	return c.entities(), nil
}

// Relation is a relation of a result.
type Relation struct {
	From       string         `json:"from"`
	To         string         `json:"to"`
	Type       string         `json:"type"`
	Properties map[string]any `json:"properties"`
	Weight     float64        `json:"weight"`
	ValidFrom  string         `json:"valid_from,omitempty" doc:"missing if it is not known"`
	ValidTo    string         `json:"valid_to,omitempty" doc:"missing if the relation has no end"`
	Source     string         `json:"source,omitempty"`
	CreatedAt  string         `json:"created_at"`
	UpdatedAt  string         `json:"updated_at"`
}

func toRelation(r *store.Relation) (Relation, error) {
	properties, err := readProperties(r.Properties)
	return Relation{
		From: r.From, To: r.To, Type: r.Type, Properties: properties, Weight: r.Weight, Source: r.Source,
		ValidFrom: store.FormatInstant(r.ValidFrom), ValidTo: store.FormatInstant(r.ValidTo), CreatedAt: store.FormatInstant(r.CreatedAt), UpdatedAt: store.FormatInstant(r.UpdatedAt),
	}, err
}

func toRelations(stored []store.Relation) ([]Relation, error) {
	all := make([]Relation, len(stored))
	for i := range stored {
		var err error
		if all[i], err = toRelation(&stored[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// adjacent returns the relations of [store.Store.Adjacent] in the order of keys. It is
// an error if there are too many.
func (v *view) adjacent(ctx context.Context, a store.Adjacency) ([]store.Relation, error) {
	if len(a.IDs) == 0 {
		return nil, nil
	}
	a.Max = maxRelations
	found, err := v.Adjacent(ctx, v.ns, a)
	if err != nil {
		return nil, err
	}
	if len(found) > maxRelations {
		return nil, tea.Errorf(tea.ResourceExhausted, "the entities have more than %d relations; narrow the call by relation types or by a smaller depth", maxRelations)
	}
	sortByKey(found)
	return found, nil
}

func sortByKey(relations []store.Relation) {
	slices.SortFunc(relations, func(a, b store.Relation) int { return a.Compare(b.RelationKey) })
}

// When are the parameters that select relations by time.
type When struct {
	AsOf string `json:"as_of,omitempty" doc:"time or date: use the relations and the properties of entities that were valid then; default now"`
}

func (w When) instant(now int64) (int64, error) { return toInstant("as_of", w.AsOf, now) }

// GetRelationsParams are the parameters of graph.get_relations.
type GetRelationsParams struct {
	Namespace
	When
	EntityID      string     `json:"entity_id,omitempty" doc:"the entity; alternatively from_entity and to_entity"`
	FromEntity    string     `json:"from_entity,omitempty"`
	ToEntity      string     `json:"to_entity,omitempty"`
	RelationTypes []string   `json:"relation_types,omitempty" doc:"types of the relations; default all"`
	Direction     Directions `json:"direction,omitempty" default:"both" doc:"of the relations of entity_id"`
	History       bool       `json:"history,omitempty" doc:"also return relations that are not valid at the time"`
	Limit         int        `json:"limit,omitempty" default:"100" minimum:"1" maximum:"10000"`
}

// GetRelationsResult is the result of graph.get_relations.
type GetRelationsResult struct {
	Success   bool       `json:"success"`
	Relations []Relation `json:"relations" doc:"ordered by from, type, to and valid_from"`
	Count     int        `json:"count"`
	Total     int        `json:"total" doc:"number before the limit"`
	Notes     []string   `json:"notes,omitempty" doc:"without a result: which of the entities and relation_types do not exist"`
}

// GetRelations is the action graph.get_relations.
func (g *Graph) GetRelations(ctx context.Context, _ *tea.Request, p GetRelationsParams) (*GetRelationsResult, error) {
	v, err := g.read(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	defer v.done()
	a := store.Adjacency{Types: p.RelationTypes, Ever: p.History}
	if a.At, err = p.instant(v.now); err != nil {
		return nil, err
	}
	switch {
	case p.EntityID != "" && p.FromEntity == "" && p.ToEntity == "":
		a.IDs, a.Direction = []string{p.EntityID}, p.Direction.store()
	case p.EntityID != "" || p.FromEntity == "" && p.ToEntity == "":
		return nil, tea.Errorf(tea.ValidationError, "graph.get_relations needs entity_id, or from_entity, to_entity or both")
	case p.FromEntity != "":
		a.IDs, a.Direction = []string{p.FromEntity}, store.Out
	default:
		a.IDs, a.Direction = []string{p.ToEntity}, store.In
	}
	found, err := v.adjacent(ctx, a)
	if err != nil {
		return nil, err
	}
	if p.ToEntity != "" {
		found = slices.DeleteFunc(found, func(r store.Relation) bool { return r.To != p.ToEntity })
	}
	r := &GetRelationsResult{Success: true, Total: len(found), Count: min(len(found), p.Limit)}
	if r.Relations, err = toRelations(found[:r.Count]); err != nil || r.Total > 0 {
		return r, err
	}
	ids := slices.DeleteFunc([]string{p.EntityID, p.FromEntity, p.ToEntity}, func(id string) bool { return id == "" })
	r.Notes, err = v.notes(ctx, asked{ids: ids, relationTypes: p.RelationTypes})
	return r, err
}

// DeleteRelationParams are the parameters of graph.delete_relation.
type DeleteRelationParams struct {
	Namespace
	FromEntity   string `json:"from_entity"`
	ToEntity     string `json:"to_entity"`
	RelationType string `json:"relation_type"`
	ValidFrom    string `json:"valid_from,omitempty" doc:"only the relation that began then; default all between the entities"`
	ValidTo      string `json:"valid_to,omitempty" doc:"time or date: end the relation then, instead of removing it"`
}

// DeleteRelationResult is the result of graph.delete_relation.
type DeleteRelationResult struct {
	Success bool     `json:"success"`
	Deleted int      `json:"deleted" doc:"number of removed relations"`
	Closed  int      `json:"closed" doc:"number of relations that valid_to ended"`
	Notes   []string `json:"notes,omitempty" doc:"without such a relation: which of the names do not exist, or when it is valid"`
}

// DeleteRelation is the action graph.delete_relation.
func (g *Graph) DeleteRelation(ctx context.Context, _ *tea.Request, p DeleteRelationParams) (*DeleteRelationResult, error) {
	end, err := toInstant("valid_to", p.ValidTo, 0)
	if err != nil {
		return nil, err
	}
	begin, err := toInstant("valid_from", p.ValidFrom, 0)
	if err != nil {
		return nil, err
	}
	v, err := g.write(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	defer v.done()
	found, err := v.Between(ctx, v.ns, []store.RelationKey{{From: p.FromEntity, Type: p.RelationType, To: p.ToEntity}})
	if err != nil {
		return nil, err
	}
	r := &DeleteRelationResult{Success: true}
	var batch store.Batch
	for _, relation := range found {
		switch {
		case p.ValidFrom != "" && relation.ValidFrom != begin:
		case p.ValidTo == "", relation.ValidFrom == end: // it was never valid
			batch.DeleteRelations = append(batch.DeleteRelations, relation.RelationKey)
			r.Deleted++
		case relation.Valid(end):
			relation.ValidTo, relation.UpdatedAt = end, v.now
			batch.Relations = append(batch.Relations, relation)
			r.Closed++
		}
	}
	if r.Deleted+r.Closed == 0 {
		if len(found) > 0 {
			r.Notes = []string{fmt.Sprintf("the relation is valid at other times (%d)", len(found))}
			return r, nil
		}
		r.Notes, err = v.notes(ctx, asked{ids: []string{p.FromEntity, p.ToEntity}, relationTypes: []string{p.RelationType}})
		return r, err
	}
	return r, v.Apply(ctx, v.ns, batch)
}

// encodeProperties returns the stored form of properties.
func encodeProperties(what string, properties map[string]any) ([]byte, error) {
	text, err := value.Encode(withoutNull(properties))
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "properties of %s: %w", what, err)
	}
	return text, nil
}
