package graph

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
	"github.com/the-edge-agent/tea/plugins/graph/internal/words"
)

func entityActions() []tea.Action {
	return []tea.Action{
		withAliases(tea.NewMethod("graph.store_entity", "Stores an entity, or replaces the one with the same id.", (*Graph).StoreEntity, tea.Idempotent()), "", entityAliases),
		withAliases(tea.NewMethod("graph.store_entities", "Stores many entities in one transaction.", (*Graph).StoreEntities, tea.Idempotent()), "entities", entityAliases),
		tea.NewMethod("graph.get_entity", "Returns an entity.", (*Graph).GetEntity, tea.Idempotent(), tea.Reads()),
		withAliases(tea.NewMethod("graph.update_entity", "Changes properties of an entity and keeps the others.", (*Graph).UpdateEntity, tea.Idempotent()), "", entityAliases),
		tea.NewMethod("graph.delete_entity", "Removes entities.", (*Graph).DeleteEntity, tea.Idempotent()),
	}
}

// defaultType is the type of an entity without one.
const defaultType = "entity"

// EntityFields are the fields of an entity that a call can store.
type EntityFields struct {
	EntityID   string         `json:"entity_id" doc:"id of the entity, unique in its namespace"`
	EntityType string         `json:"entity_type,omitempty" doc:"type, such as person; default: the stored entity's, otherwise entity"`
	Properties map[string]any `json:"properties,omitempty" doc:"values by name"`
	Text       *string        `json:"text,omitempty" doc:"text for full-text search, for models and, with embed, for similarity search"`
	Embed      bool           `json:"embed,omitempty" doc:"embed the text by the action embedding.create"`
	Embedding  Embedding      `json:"embedding,omitempty" doc:"vector for similarity search"`
	Merge      bool           `json:"merge,omitempty" doc:"keep what is stored and not passed; without it the entity is replaced: properties that are not passed end"`
	ValidFrom  string         `json:"valid_from,omitempty" doc:"time or date from which the properties and the text are valid, also in the past or the future; former values are kept. Default now, and unknown for a property that the entity did not have"`
	Source     string         `json:"source,omitempty" doc:"where the facts come from"`
}

// StoreEntityParams are the parameters of graph.store_entity.
type StoreEntityParams struct {
	Namespace
	EntityFields
	EmbeddingModel string `json:"embedding_model,omitempty" doc:"model for embedding.create"`
}

// StoreEntityResult is the result of graph.store_entity.
type StoreEntityResult struct {
	Success      bool   `json:"success"`
	EntityID     string `json:"entity_id"`
	Type         string `json:"type"`
	HasEmbedding bool   `json:"has_embedding"`
	Created      bool   `json:"created" doc:"false if the entity existed"`
}

// StoreEntity is the action graph.store_entity.
func (g *Graph) StoreEntity(ctx context.Context, req *tea.Request, p StoreEntityParams) (*StoreEntityResult, error) {
	stored, created, err := g.storeEntities(ctx, req, p.Namespace, []EntityFields{p.EntityFields}, p.EmbeddingModel)
	if err != nil {
		return nil, err
	}
	e := stored[0]
	return &StoreEntityResult{Success: true, EntityID: e.ID, Type: e.Type, HasEmbedding: e.Embedding != nil, Created: created == 1}, nil
}

// StoreEntitiesParams are the parameters of graph.store_entities.
type StoreEntitiesParams struct {
	Namespace
	Entities       []EntityFields `json:"entities" doc:"up to 10000; all are stored or none"`
	EmbeddingModel string         `json:"embedding_model,omitempty" doc:"model for embedding.create"`
}

// StoreEntitiesResult is the result of graph.store_entities.
type StoreEntitiesResult struct {
	Success bool     `json:"success"`
	Stored  int      `json:"stored" doc:"number of different entities"`
	Created int      `json:"created" doc:"number of those that did not exist"`
	IDs     []string `json:"ids"`
}

// StoreEntities is the action graph.store_entities.
func (g *Graph) StoreEntities(ctx context.Context, req *tea.Request, p StoreEntitiesParams) (*StoreEntitiesResult, error) {
	stored, created, err := g.storeEntities(ctx, req, p.Namespace, p.Entities, p.EmbeddingModel)
	if err != nil {
		return nil, err
	}
	r := &StoreEntitiesResult{Success: true, Stored: len(stored), Created: created, IDs: make([]string, len(stored))}
	for i, e := range stored {
		r.IDs[i] = e.ID
	}
	return r, nil
}

// storeEntities stores entities in one transaction and returns each once.
func (g *Graph) storeEntities(ctx context.Context, req *tea.Request, ns Namespace, given []EntityFields, model string) (stored []store.Entity, created int, err error) {
	if len(given) > maxItems {
		return nil, 0, tea.Errorf(tea.ValidationError, "too many entities: %d (limit %d)", len(given), maxItems)
	}
	ids := make([]string, len(given))
	for i, e := range given {
		if err := e.check(); err != nil {
			return nil, 0, err
		}
		ids[i] = e.EntityID
	}
	// The model is called before the graph is locked.
	if err := embedTexts(ctx, req, given, model); err != nil {
		return nil, 0, err
	}
	v, err := g.write(ctx, ns)
	if err != nil {
		return nil, 0, err
	}
	defer v.done()
	c, err := v.changes(ctx, ids, g.settings.History)
	if err != nil {
		return nil, 0, err
	}
	for i := range given {
		if err := c.put(&given[i]); err != nil {
			return nil, 0, err
		}
	}
	batch := c.entities()
	return batch, c.created, v.Apply(ctx, v.ns, store.Batch{Entities: batch})
}

func (e *EntityFields) check() error {
	if err := checkName("entity_id", e.EntityID); err != nil {
		return err
	}
	if e.EntityType != "" {
		if err := checkName("entity_type", e.EntityType); err != nil {
			return err
		}
	}
	if err := checkSource(e.Source); err != nil {
		return err
	}
	if e.Embed && e.Embedding == nil && (e.Text == nil || *e.Text == "") {
		return tea.Errorf(tea.ValidationError, "entity %q: embed needs a text", e.EntityID)
	}
	if err := checkEmbedding(e.EntityID, e.Embedding); err != nil {
		return err
	}
	if _, unnamed := e.Properties[textName]; unnamed {
		return tea.Errorf(tea.ValidationError, "entity %q has a property with an empty name", e.EntityID)
	}
	if err := checkProperties(fmt.Sprintf("entity %q", e.EntityID), e.Properties); err != nil {
		return err
	}
	_, err := toInstant("valid_from", e.ValidFrom, 0)
	return err
}

// embedTexts sets the requested embeddings.
func embedTexts(ctx context.Context, req *tea.Request, entities []EntityFields, model string) error {
	var texts []string
	var at []int
	for i, e := range entities {
		if e.Embed && e.Embedding == nil {
			texts, at = append(texts, *e.Text), append(at, i)
		}
	}
	vectors, err := embed(ctx, req, texts, model)
	for i, vector := range vectors {
		entities[at[i]].Embedding = vector
	}
	return err
}

// changes are entities that change together.
type changes struct {
	now     int64
	history int
	byID    map[string]*store.Entity
	order   []string // ids of the put entities
	index   words.Index
	changed map[string]bool
	created int
}

// changes reads the existing entities.
func (v *view) changes(ctx context.Context, ids []string, history int) (*changes, error) {
	unique := slices.Clone(ids)
	slices.Sort(unique)
	existing, err := v.Entities(ctx, v.ns, slices.Compact(unique), store.Fields{Embeddings: true, Facts: true})
	if err != nil {
		return nil, err
	}
	c := &changes{now: v.now, history: history, byID: make(map[string]*store.Entity, len(ids)), changed: make(map[string]bool, len(ids))}
	for i := range existing {
		c.byID[existing[i].ID] = &existing[i]
	}
	return c, nil
}

// put stores or changes an entity.
func (c *changes) put(e *EntityFields) error {
	old := c.byID[e.EntityID]
	s := store.Entity{ID: e.EntityID, Type: cmp.Or(e.EntityType, defaultType), Source: e.Source, CreatedAt: c.now, UpdatedAt: c.now, Embedding: e.Embedding}
	var values map[string]any
	h := &history{}
	if old == nil {
		c.created++
	} else {
		var err error
		if values, h, err = readFacts(old); err != nil {
			return err
		}
		s.CreatedAt, s.Type = old.CreatedAt, cmp.Or(e.EntityType, old.Type)
	}
	from, err := toInstant("valid_from", e.ValidFrom, c.now)
	if err != nil {
		return err
	}
	values, other := h.apply(values, &change{
		given: e.values(), replace: !e.Merge, at: from, now: c.now, dated: e.ValidFrom != "", source: e.Source, limit: c.history,
	})
	if old != nil {
		s.Source = e.source(old, other)
	}
	if err := h.write(&s, values); err != nil {
		return tea.Errorf(tea.ValidationError, "properties of %q: %w", e.EntityID, err)
	}
	// The embedding of another text would find the wrong entity.
	if isOther := e.Text != nil && s.Text != *e.Text; old != nil && s.Text == old.Text && (isOther || e.Merge && s.Embedding == nil) {
		s.Embedding = old.Embedding
	}
	s.Words = keysOf(&c.index, &s, values, h)
	c.keep(&s)
	return nil
}

// values returns the properties and the text.
func (e *EntityFields) values() map[string]any {
	switch {
	case e.Text == nil:
		return e.Properties
	case *e.Text == "":
		return merged(e.Properties, map[string]any{textName: nil})
	}
	return merged(e.Properties, map[string]any{textName: *e.Text})
}

// source returns the source of a changed entity. A change of other times than now does not
// change it.
func (e *EntityFields) source(old *store.Entity, other bool) string {
	switch {
	case other && e.EntityType == "":
		return old.Source
	case e.Merge:
		return cmp.Or(e.Source, old.Source)
	}
	return e.Source
}

func (c *changes) keep(e *store.Entity) {
	if !c.changed[e.ID] {
		c.changed[e.ID] = true
		c.order = append(c.order, e.ID)
	}
	c.byID[e.ID] = e
}

// entities returns the entities that were put.
func (c *changes) entities() []store.Entity {
	all := make([]store.Entity, len(c.order))
	for i, id := range c.order {
		all[i] = *c.byID[id]
	}
	return all
}

// withoutNull drops members that are null, which remove a property.
func withoutNull(properties map[string]any) map[string]any {
	kept := make(map[string]any, len(properties))
	for name, v := range properties {
		if v != nil {
			kept[name] = v
		}
	}
	return kept
}

// keysOf returns the keys under which a search finds an entity, at any instant.
func keysOf(index *words.Index, e *store.Entity, properties map[string]any, h *history) []string {
	texts := textsOf(&Entity{ID: e.ID, Type: e.Type, Text: e.Text, Properties: properties})
	for i := range h.Former {
		texts = appendTexts(texts, h.Former[i].Value)
	}
	return index.Keys(texts...)
}

// textsOf returns the texts of an entity that a search compares: its id, its type, its
// text, and the texts and numbers in its properties.
func textsOf(e *Entity) []string {
	texts := []string{e.ID, e.Text}
	if e.Type != defaultType {
		texts = append(texts, e.Type)
	}
	return appendTexts(texts, e.Properties)
}

// nameProperties are the properties that name an entity, besides its id.
var nameProperties = []string{"name", "title", "aliases"}

// namesOf returns the names of an entity.
func namesOf(e *Entity) []string {
	names := []string{e.ID}
	for _, property := range nameProperties {
		names = appendTexts(names, e.Properties[property])
	}
	return names
}

func appendTexts(texts []string, v any) []string {
	switch v := v.(type) {
	case string:
		texts = append(texts, v)
	case []any:
		for _, item := range v {
			texts = appendTexts(texts, item)
		}
	case map[string]any:
		for _, member := range v {
			texts = appendTexts(texts, member)
		}
	case int64, float64, json.Number:
		if text, err := value.Encode(v); err == nil {
			texts = append(texts, string(text))
		}
	}
	return texts
}

func readProperties(text []byte) (map[string]any, error) {
	decoded, err := value.Decode(text)
	if err != nil {
		return nil, store.Damaged("stored properties: %w", err)
	}
	properties, _ := decoded.(map[string]any)
	return properties, nil
}

// Entity is an entity of a result.
type Entity struct {
	ID           string         `json:"id"`
	Type         string         `json:"type"`
	Properties   map[string]any `json:"properties"`
	Text         string         `json:"text,omitempty"`
	Source       string         `json:"source,omitempty"`
	CreatedAt    string         `json:"created_at"`
	UpdatedAt    string         `json:"updated_at"`
	HasEmbedding *bool          `json:"has_embedding,omitempty" doc:"missing unless an entity was asked for by its id"`
	Embedding    []float32      `json:"embedding,omitempty"`
}

// toEntity returns an entity as of an instant. Its facts must have been read.
func (v *view) toEntity(e *store.Entity, at int64) (Entity, error) {
	entity := Entity{
		ID: e.ID, Type: e.Type, Text: e.Text, Source: e.Source,
		CreatedAt: store.FormatInstant(e.CreatedAt), UpdatedAt: store.FormatInstant(e.UpdatedAt),
	}
	if v.isNow(e, at) {
		var err error
		entity.Properties, err = readProperties(e.Properties)
		return entity, err
	}
	values, h, err := readFacts(e)
	if err == nil {
		h.setAt(&entity, values, at)
	}
	return entity, err
}

// isNow reports whether the stored values of an entity are valid at an instant.
func (v *view) isNow(e *store.Entity, at int64) bool {
	return e.Facts == "" || at >= v.now && !strings.HasPrefix(e.Facts, aheadPrefix)
}

// GetEntityParams are the parameters of graph.get_entity.
type GetEntityParams struct {
	Namespace
	EntityID         string `json:"entity_id"`
	AsOf             string `json:"as_of,omitempty" doc:"time or date: return the properties and the text that were valid then; default now"`
	History          bool   `json:"history,omitempty" doc:"also return the facts: all values with their times and sources"`
	IncludeEmbedding bool   `json:"include_embedding,omitempty" doc:"also return the vector"`
}

// GetEntityResult is the result of graph.get_entity.
type GetEntityResult struct {
	Success bool   `json:"success"`
	Entity  Entity `json:"entity"`
	Facts   []Fact `json:"facts,omitempty" doc:"by property and time"`
	Dropped int    `json:"dropped,omitempty" doc:"number of former values that settings.graph.history has removed"`
}

// GetEntity is the action graph.get_entity.
func (g *Graph) GetEntity(ctx context.Context, _ *tea.Request, p GetEntityParams) (*GetEntityResult, error) {
	v, err := g.read(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	defer v.done()
	found, err := v.Entities(ctx, v.ns, []string{p.EntityID}, store.Fields{Embeddings: true, Facts: true})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, v.missing(p.EntityID)
	}
	at, err := toInstant("as_of", p.AsOf, v.now)
	if err != nil {
		return nil, err
	}
	r := &GetEntityResult{Success: true}
	if r.Entity, err = v.toEntity(&found[0], at); err != nil {
		return nil, err
	}
	embedded := found[0].Embedding != nil
	r.Entity.HasEmbedding = &embedded
	if p.IncludeEmbedding {
		r.Entity.Embedding = found[0].Embedding
	}
	if !p.History {
		return r, nil
	}
	values, h, err := readFacts(&found[0])
	if err != nil {
		return nil, err
	}
	r.Facts, r.Dropped = h.facts(values), h.Dropped
	return r, nil
}

// missing is the error for an entity that does not exist.
func (v *view) missing(id string) error {
	return tea.Errorf(tea.NotFound, "there is no entity %q in the namespace %q of the graph", id, v.ns)
}

// UpdateEntityParams are the parameters of graph.update_entity.
type UpdateEntityParams struct {
	Namespace
	EntityID       string         `json:"entity_id"`
	EntityType     string         `json:"entity_type,omitempty" doc:"new type"`
	Properties     map[string]any `json:"properties,omitempty" doc:"values to set; null removes a property"`
	Text           *string        `json:"text,omitempty" doc:"new text; the embedding of the old one is removed"`
	Embed          bool           `json:"embed,omitempty" doc:"embed the new text by the action embedding.create"`
	Embedding      Embedding      `json:"embedding,omitempty" doc:"new vector"`
	ValidFrom      string         `json:"valid_from,omitempty" doc:"time or date from which the values are valid, default now; former values are kept"`
	Source         string         `json:"source,omitempty" doc:"where the facts come from"`
	EmbeddingModel string         `json:"embedding_model,omitempty" doc:"model for embedding.create"`
}

// UpdateEntityResult is the result of graph.update_entity.
type UpdateEntityResult struct {
	Success bool   `json:"success"`
	Entity  Entity `json:"entity"`
}

// UpdateEntity is the action graph.update_entity.
func (g *Graph) UpdateEntity(ctx context.Context, req *tea.Request, p UpdateEntityParams) (*UpdateEntityResult, error) {
	fields := []EntityFields{{
		EntityID: p.EntityID, EntityType: p.EntityType, Properties: p.Properties, Text: p.Text, Embed: p.Embed, Embedding: p.Embedding,
		Merge: true, ValidFrom: p.ValidFrom, Source: p.Source,
	}}
	if err := fields[0].check(); err != nil {
		return nil, err
	}
	if err := embedTexts(ctx, req, fields, p.EmbeddingModel); err != nil {
		return nil, err
	}
	v, err := g.write(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	defer v.done()
	c, err := v.changes(ctx, []string{p.EntityID}, g.settings.History)
	if err != nil {
		return nil, err
	}
	if c.byID[p.EntityID] == nil {
		return nil, v.missing(p.EntityID)
	}
	if err := c.put(&fields[0]); err != nil {
		return nil, err
	}
	batch := c.entities()
	if err := v.Apply(ctx, v.ns, store.Batch{Entities: batch}); err != nil {
		return nil, err
	}
	r := &UpdateEntityResult{Success: true}
	r.Entity, err = v.toEntity(&batch[0], v.now)
	return r, err
}

// DeleteEntityParams are the parameters of graph.delete_entity.
type DeleteEntityParams struct {
	Namespace
	EntityID  string   `json:"entity_id,omitempty"`
	EntityIDs []string `json:"entity_ids,omitempty" doc:"several at a time, up to 10000"`
	Detach    bool     `json:"detach,omitempty" doc:"also remove the relations of the entities; without it an entity that has relations is an error"`
}

// DeleteEntityResult is the result of graph.delete_entity.
type DeleteEntityResult struct {
	Success          bool     `json:"success"`
	Deleted          int      `json:"deleted" doc:"number of entities that existed"`
	DeletedRelations int      `json:"deleted_relations"`
	Notes            []string `json:"notes,omitempty" doc:"without an entity: which ids do not exist, at most 10"`
}

// DeleteEntity is the action graph.delete_entity.
func (g *Graph) DeleteEntity(ctx context.Context, _ *tea.Request, p DeleteEntityParams) (*DeleteEntityResult, error) {
	ids := slices.Clone(p.EntityIDs)
	if p.EntityID != "" {
		ids = append(ids, p.EntityID)
	}
	if len(ids) == 0 || len(ids) > maxItems {
		return nil, tea.Errorf(tea.ValidationError, "graph.delete_entity needs entity_id or entity_ids, from 1 to %d ids", maxItems)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	v, err := g.write(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	defer v.done()
	found, err := v.Entities(ctx, v.ns, ids, store.Fields{})
	if err != nil {
		return nil, err
	}
	existing := make(map[string]bool, len(found))
	for i := range found {
		existing[found[i].ID] = true
	}
	given := ids
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !existing[id] })
	relations, err := v.adjacent(ctx, store.Adjacency{IDs: ids, Direction: store.Both, Ever: true, Lean: true})
	if err != nil {
		return nil, err
	}
	batch := store.Batch{DeleteEntities: ids}
	if len(relations) > 0 && !p.Detach {
		return nil, tea.Errorf(tea.ValidationError, "the entity still has %d relations, such as %s; set detach: true to remove these too", len(relations), describe(relations[0]))
	}
	for _, r := range relations {
		batch.DeleteRelations = append(batch.DeleteRelations, r.RelationKey)
	}
	r := &DeleteEntityResult{Success: true, Deleted: len(ids), DeletedRelations: len(relations)}
	if len(ids) == 0 {
		r.Notes, err = v.notes(ctx, asked{ids: given[:min(len(given), 10)]})
		return r, err
	}
	return r, v.Apply(ctx, v.ns, batch)
}
