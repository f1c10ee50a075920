package graph

import (
	"context"
	"errors"
	"maps"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// part is the part of a pattern for an entity or a relation.
type part struct {
	id, kind string
	filter   filter.Filter
}

// any reports whether everything matches.
func (p *part) any() bool { return p.id == "" && p.kind == "" && len(p.filter) == 0 }

// types returns the type as a selection.
func (p *part) types() []string {
	if p.kind == "" {
		return nil
	}
	return []string{p.kind}
}

// readPart reads a part of a pattern. A string stands for the member short.
func readPart(pattern map[string]any, name, short string) (*part, error) {
	var object map[string]any
	switch v := pattern[name].(type) {
	case nil:
	case string:
		object = map[string]any{short: v}
	case map[string]any:
		object = v
	default:
		return nil, tea.Errorf(tea.ValidationError, "pattern.%s is %s, not a text or an object", name, value.TypeName(v))
	}
	p := &part{}
	for member, v := range object {
		var ok bool
		switch {
		case member == "type":
			p.kind, ok = v.(string)
		case member == "id" && short == "id":
			p.id, ok = v.(string)
		case member == "properties":
			var properties map[string]any
			if properties, ok = v.(map[string]any); ok {
				var err error
				if p.filter, err = filter.Parse("pattern."+name+".properties", properties); err != nil {
					return nil, err
				}
			}
		default:
			return nil, tea.Errorf(tea.ValidationError, "pattern.%s: unknown member %q; use %s, type and properties", name, member, short)
		}
		if !ok {
			return nil, tea.Errorf(tea.ValidationError, "pattern.%s.%s has the wrong type, %s", name, member, value.TypeName(v))
		}
	}
	return p, nil
}

// pattern finds the relations, or the entities, that match a pattern.
func (v *view) pattern(ctx context.Context, p *QueryParams) (*QueryResult, error) {
	bound, err := bind(p.Pattern, p.Params)
	if err != nil {
		return nil, err
	}
	pattern, _ := bound.(map[string]any)
	for name := range pattern {
		if !slices.Contains([]string{"from", "relation", "to"}, name) {
			return nil, tea.Errorf(tea.ValidationError, "pattern: unknown member %q; use from, relation and to", name)
		}
	}
	at, err := p.instant(v.now)
	if err != nil {
		return nil, err
	}
	from, err := readPart(pattern, "from", "id")
	if err != nil {
		return nil, err
	}
	relation, err := readPart(pattern, "relation", "type")
	if err != nil {
		return nil, err
	}
	to, err := readPart(pattern, "to", "id")
	if err != nil {
		return nil, err
	}
	r := &QueryResult{Success: true, Query: p.Pattern, Results: []map[string]any{}}
	if _, hasRelation := pattern["relation"]; !hasRelation && pattern["to"] == nil {
		if err := v.patternEntities(ctx, from, at, p.Limit, r); err != nil {
			return nil, err
		}
		return r, v.notePattern(ctx, r, at, relation, from)
	}
	found, err := v.patternRelations(ctx, from, relation, to, at, p.Limit+1)
	if err != nil {
		return nil, err
	}
	if r.Truncated = len(found) > p.Limit; r.Truncated {
		found = found[:p.Limit]
	}
	if err := v.rows(ctx, found, at, r); err != nil {
		return nil, err
	}
	return r, v.notePattern(ctx, r, at, relation, from, to)
}

// notePattern adds notes about ids, types and properties of a pattern that do not exist.
func (v *view) notePattern(ctx context.Context, r *QueryResult, at int64, relation *part, ends ...*part) (err error) {
	if r.Count > 0 {
		return nil
	}
	a := asked{all: true, relationTypes: relation.types(), ofRelations: relation.filter, at: at}
	for _, end := range ends {
		a.entityTypes, a.filter = append(a.entityTypes, end.types()...), append(a.filter, end.filter...)
		if end.id != "" {
			a.ids = append(a.ids, end.id)
		}
	}
	r.Notes, err = v.notes(ctx, a)
	return err
}

// patternEntities finds entities.
func (v *view) patternEntities(ctx context.Context, from *part, at int64, limit int, r *QueryResult) error {
	r.Columns = []string{"from"}
	add := func(e *store.Entity) error {
		entity, err := v.toEntity(e, at)
		if err != nil {
			return err
		}
		if from.kind != "" && from.kind != e.Type || !from.filter.MatchesObject(entity.Properties) {
			return nil
		}
		if r.Truncated = r.Count == limit; r.Truncated {
			return errStopScan
		}
		r.Results = append(r.Results, map[string]any{"from": store.Node(e.ID, e.Type, entity.Properties)})
		r.Count++
		return nil
	}
	if from.id == "" {
		err := v.EachEntity(ctx, v.ns, store.EntityScan{Types: from.types(), Facts: true}, add)
		if errors.Is(err, errStopScan) {
			err = nil
		}
		return err
	}
	found, err := v.Entities(ctx, v.ns, []string{from.id}, store.Fields{Facts: true})
	for i := range found {
		err = errors.Join(err, add(&found[i]))
	}
	return err
}

// patternRelations returns the first matching relations in the order of their keys.
func (v *view) patternRelations(ctx context.Context, from, relation, to *part, at int64, limit int) ([]store.Relation, error) {
	sources, err := v.chosen(ctx, from, at)
	if err != nil {
		return nil, err
	}
	targets, err := v.chosen(ctx, to, at)
	if err != nil {
		return nil, err
	}
	var found []store.Relation
	add := func(r *store.Relation) error {
		if sources != nil && !sources[r.From] || targets != nil && !targets[r.To] {
			return nil
		}
		if len(relation.filter) > 0 && !filter.Matches(r.Properties, relation.filter) {
			return nil
		}
		if found = append(found, *r); len(found) == limit {
			return errStopScan
		}
		return nil
	}
	a := store.Adjacency{Types: relation.types(), At: at}
	switch {
	case sources != nil && len(sources) <= 1000:
		a.IDs, a.Direction = slices.Collect(maps.Keys(sources)), store.Out
	case targets != nil && len(targets) <= 1000:
		a.IDs, a.Direction = slices.Collect(maps.Keys(targets)), store.In
	default:
		err = v.EachRelation(ctx, v.ns, store.RelationScan{Types: relation.types(), At: at}, add)
	}
	if len(a.IDs) > 0 {
		var all []store.Relation
		if all, err = v.adjacent(ctx, a); err != nil {
			return nil, err
		}
		for i := range all {
			if err = add(&all[i]); err != nil {
				break
			}
		}
	}
	if errors.Is(err, errStopScan) {
		err = nil
	}
	return found, err
}

// chosen returns the ids of the entities that match at an instant; nil for all.
func (v *view) chosen(ctx context.Context, p *part, at int64) (map[string]bool, error) {
	if p.any() {
		return nil, nil
	}
	ids := map[string]bool{}
	add := func(e *store.Entity) error {
		if p.kind != "" && p.kind != e.Type {
			return nil
		}
		text := e.Properties
		if len(p.filter) > 0 && !v.isNow(e, at) {
			then, err := v.toEntity(e, at)
			if err != nil {
				return err
			}
			if text, err = value.Encode(then.Properties); err != nil {
				return err
			}
		}
		if len(p.filter) == 0 || filter.Matches(text, p.filter) {
			ids[e.ID] = true
		}
		return nil
	}
	if p.id == "" {
		return ids, v.EachEntity(ctx, v.ns, store.EntityScan{Types: p.types(), Keys: len(p.filter) == 0, Facts: len(p.filter) > 0}, add)
	}
	found, err := v.Entities(ctx, v.ns, []string{p.id}, store.Fields{Facts: true})
	for i := range found {
		err = errors.Join(err, add(&found[i]))
	}
	return ids, err
}

// rows adds rows with relations and the entities at their ends.
func (v *view) rows(ctx context.Context, found []store.Relation, at int64, r *QueryResult) error {
	r.Columns = []string{"from", "relation", "to"}
	ids := map[string]any{}
	for i := range found {
		ids[found[i].From], ids[found[i].To] = nil, nil
	}
	entities, err := v.selectEntities(ctx, slices.Sorted(maps.Keys(ids)), nil, nil, at)
	if err != nil {
		return err
	}
	for _, e := range entities {
		ids[e.ID] = store.Node(e.ID, e.Type, e.Properties)
	}
	for i := range found {
		properties, err := readProperties(found[i].Properties)
		if err != nil {
			return err
		}
		edge := store.Edge(found[i].From, found[i].Type, found[i].To, properties)
		for name, text := range map[string]string{"valid_from": store.FormatInstant(found[i].ValidFrom), "valid_to": store.FormatInstant(found[i].ValidTo)} {
			if text != "" {
				edge[name] = text
			}
		}
		r.Results = append(r.Results, map[string]any{"from": ids[found[i].From], "relation": edge, "to": ids[found[i].To]})
	}
	r.Count = len(r.Results)
	return nil
}
