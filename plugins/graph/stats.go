package graph

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

func statsActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("graph.stats", "Counts what is in the graph.", (*Graph).Stats, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("graph.schema", "Describes the types of entities and relations, with their properties.", (*Graph).Schema, tea.Idempotent(), tea.Reads()),
	}
}

// StatsParams are the parameters of graph.stats.
type StatsParams struct{ Namespace }

// StatsResult is the result of graph.stats.
type StatsResult struct {
	Success       bool             `json:"success"`
	Backend       string           `json:"backend"`
	Path          string           `json:"path" doc:"the folder of the graph"`
	Bytes         int64            `json:"bytes" doc:"size of the folder on disk, all namespaces together"`
	Entities      int64            `json:"entities"`
	Relations     int64            `json:"relations" doc:"with those that have ended"`
	Embeddings    int64            `json:"embeddings"`
	Dimension     int              `json:"dimension" doc:"length of the embeddings, 0 if there are none"`
	EntityTypes   map[string]int64 `json:"entity_types"`
	RelationTypes map[string]int64 `json:"relation_types"`
	Namespaces    []string         `json:"namespaces" doc:"the namespaces that are not empty"`
	Notes         []string         `json:"notes,omitempty" doc:"whether the graph is empty or lacks the namespace"`
}

// Stats is the action graph.stats.
func (g *Graph) Stats(ctx context.Context, _ *tea.Request, p StatsParams) (*StatsResult, error) {
	v, err := g.read(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	defer v.done()
	s, err := v.Store.Stats(ctx, v.ns)
	if err != nil {
		return nil, err
	}
	bytes, err := sizeOf(g.settings.Path)
	if err != nil {
		return nil, systemError("measure the graph", err)
	}
	r := &StatsResult{
		Success: true, Backend: string(g.db.used), Path: g.settings.Path, Bytes: bytes,
		Entities: s.Entities, Relations: s.Relations, Embeddings: s.Embeddings, Dimension: s.Dimension,
		EntityTypes: s.EntityTypes, RelationTypes: s.RelationTypes, Namespaces: s.Namespaces,
	}
	r.Notes = v.noteNamespace(&s)
	return r, nil
}

// noteNamespace returns a note if the namespace is empty.
func (v *view) noteNamespace(s *store.Stats) []string {
	switch {
	case slices.Contains(s.Namespaces, v.ns):
		return nil
	case len(s.Namespaces) == 0:
		return []string{"the graph is empty"}
	}
	return []string{fmt.Sprintf("the graph has no namespace %q; it has %s", v.ns, strings.Join(s.Namespaces[:min(len(s.Namespaces), 10)], ", "))}
}

// sizeOf returns the size of the files of a folder, which may be a link.
func sizeOf(dir string) (total int64, err error) {
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return 0, err
	}
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

// SchemaParams are the parameters of graph.schema.
type SchemaParams struct {
	Namespace
	Sample int `json:"sample,omitempty" default:"1000" minimum:"1" maximum:"1000000" doc:"number of entities, and of relations, whose properties are looked at"`
}

// TypeSchema describes a type.
type TypeSchema struct {
	Type       string            `json:"type"`
	Count      int64             `json:"count"`
	Properties map[string]string `json:"properties" doc:"types of the values by name, such as string or \"integer or null\""`
	// Ends is for relations only.
	Ends []string `json:"ends,omitempty" doc:"for relations: types of the entities at their ends, such as person -> company"`
}

// SchemaResult is the result of graph.schema.
type SchemaResult struct {
	Success       bool         `json:"success"`
	EntityTypes   []TypeSchema `json:"entity_types" doc:"ordered by type"`
	RelationTypes []TypeSchema `json:"relation_types" doc:"ordered by type"`
	Sampled       bool         `json:"sampled" doc:"whether there is more than was looked at"`
	Notes         []string     `json:"notes,omitempty" doc:"whether the graph is empty or lacks the namespace"`
}

// Schema is the action graph.schema.
func (g *Graph) Schema(ctx context.Context, _ *tea.Request, p SchemaParams) (*SchemaResult, error) {
	v, err := g.read(ctx, p.Namespace)
	if err != nil {
		return nil, err
	}
	defer v.done()
	s, err := v.Store.Stats(ctx, v.ns)
	if err != nil {
		return nil, err
	}
	r := &SchemaResult{Success: true, Sampled: s.Entities > int64(p.Sample) || s.Relations > int64(p.Sample), Notes: v.noteNamespace(&s)}
	entities, relations := newSampler(s.EntityTypes), newSampler(s.RelationTypes)
	err = v.EachEntity(ctx, v.ns, store.EntityScan{}, atMost(p.Sample, func(e *store.Entity) error { return entities.add(e.Type, e.Properties) }))
	if err != nil && !errors.Is(err, errStopScan) {
		return nil, err
	}
	var seen []store.Relation
	err = v.EachRelation(ctx, v.ns, store.RelationScan{Ever: true}, atMost(p.Sample, func(r *store.Relation) error {
		seen = append(seen, *r)
		return relations.add(r.Type, r.Properties)
	}))
	if err != nil && !errors.Is(err, errStopScan) {
		return nil, err
	}
	if err := v.sampleEnds(ctx, seen, relations); err != nil {
		return nil, err
	}
	r.EntityTypes, r.RelationTypes = entities.list(), relations.list()
	return r, nil
}

// sampleEnds records the types of the entities at the ends of relations.
func (v *view) sampleEnds(ctx context.Context, seen []store.Relation, s *sampler) error {
	ids := map[string]string{}
	for i := range seen {
		ids[seen[i].From], ids[seen[i].To] = "?", "?"
	}
	for page := range slices.Chunk(slices.Sorted(maps.Keys(ids)), maxItems) {
		found, err := v.Entities(ctx, v.ns, page, store.Fields{})
		if err != nil {
			return err
		}
		for i := range found {
			ids[found[i].ID] = found[i].Type
		}
	}
	for i := range seen {
		r := &seen[i]
		s.of(r.Type).ends[ids[r.From]+" -> "+ids[r.To]] = true
	}
	return nil
}

// sampler collects properties by type.
type sampler struct {
	counts map[string]int64
	types  map[string]*sampledType
}

type sampledType struct {
	properties map[string]map[string]bool
	ends       map[string]bool
}

func newSampler(counts map[string]int64) *sampler {
	s := &sampler{counts: counts, types: map[string]*sampledType{}}
	for name := range counts {
		s.of(name)
	}
	return s
}

func (s *sampler) of(name string) *sampledType {
	t := s.types[name]
	if t == nil {
		t = &sampledType{properties: map[string]map[string]bool{}, ends: map[string]bool{}}
		s.types[name] = t
	}
	return t
}

func (s *sampler) add(name string, text []byte) error {
	properties, err := readProperties(text)
	if err != nil {
		return err
	}
	t := s.of(name)
	for property, v := range properties {
		if t.properties[property] == nil {
			t.properties[property] = map[string]bool{}
		}
		t.properties[property][value.TypeName(v)] = true
	}
	return nil
}

func (s *sampler) list() []TypeSchema {
	all := make([]TypeSchema, 0, len(s.types))
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		t := TypeSchema{Type: name, Count: s.counts[name], Properties: map[string]string{}, Ends: slices.Sorted(maps.Keys(s.types[name].ends))}
		for property, kinds := range s.types[name].properties {
			text := ""
			for _, kind := range slices.Sorted(maps.Keys(kinds)) {
				if text != "" {
					text += " or "
				}
				text += kind
			}
			t.Properties[property] = text
		}
		all = append(all, t)
	}
	return all
}
