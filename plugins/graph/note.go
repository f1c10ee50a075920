package graph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// errStopScan ends a scan.
var errStopScan = errors.New("enough")

// atMost ends a scan after n items.
func atMost[T any](n int, f func(T) error) func(T) error {
	return func(item T) error {
		if n--; n < 0 {
			return errStopScan
		}
		return f(item)
	}
}

// asked describes a call without a result.
type asked struct {
	// all reports whether the call searched all entities, not only those around some.
	all                        bool
	ids                        []string
	relationTypes, entityTypes []string
	// filter is the filter of entities, ofRelations of relations.
	filter, ofRelations filter.Filter
	at                  int64
}

// notes reports the names in a call that do not exist, to distinguish a mistake from an
// empty result.
func (v *view) notes(ctx context.Context, a asked) (notes []string, err error) {
	if a.all {
		err = v.EachEntity(ctx, v.ns, store.EntityScan{Keys: true}, func(*store.Entity) error { return errStopScan })
		if !errors.Is(err, errStopScan) {
			return []string{fmt.Sprintf("the namespace %q of the graph has no entities", v.ns)}, err
		}
	}
	note := func(err error, format string, args ...any) error {
		if err == nil {
			notes = append(notes, fmt.Sprintf(format, args...))
		} else if errors.Is(err, errStopScan) {
			err = nil
		}
		return err
	}
	for _, kind := range a.relationTypes {
		scan := store.RelationScan{Types: []string{kind}, Ever: true, Lean: true}
		if err := note(v.EachRelation(ctx, v.ns, scan, func(*store.Relation) error { return errStopScan }), "no relation in the namespace %q has the type %q", v.ns, kind); err != nil {
			return nil, err
		}
	}
	for _, kind := range a.entityTypes {
		scan := store.EntityScan{Types: []string{kind}, Keys: true}
		if err := note(v.EachEntity(ctx, v.ns, scan, func(*store.Entity) error { return errStopScan }), "no entity in the namespace %q has the type %q", v.ns, kind); err != nil {
			return nil, err
		}
	}
	for _, id := range a.ids {
		err := v.exist(ctx, id)
		switch {
		case err == nil:
		case tea.AsError(err).Type != tea.NotFound:
			return nil, err
		default:
			notes = append(notes, tea.AsError(err).Message)
		}
	}
	if len(notes) > 0 {
		return notes, nil
	}
	return v.missingProperties(ctx, &a)
}

// maxNoteSearch is the number of entities, and of relations, that are searched for a property.
const maxNoteSearch = 10_000

// missingProperties returns a note for each property of the filters that no entity or
// relation has. It returns none for a graph that is too large to search completely.
func (v *view) missingProperties(ctx context.Context, a *asked) (notes []string, err error) {
	note := func(f fields, what string, err error) error {
		if err == nil {
			notes = append(notes, f.notes(what, v.ns)...)
		} else if errors.Is(err, errStopScan) {
			err = nil
		}
		return err
	}
	if f := fieldsOf(a.filter); len(f) > 0 {
		err = note(f, "entity", v.EachEntity(ctx, v.ns, store.EntityScan{Facts: true}, atMost(maxNoteSearch, func(e *store.Entity) error {
			entity, err := v.toEntity(e, a.at)
			return errors.Join(err, f.drop(entity.Properties))
		})))
	}
	if f := fieldsOf(a.ofRelations); len(f) > 0 && err == nil {
		err = note(f, "relation", v.EachRelation(ctx, v.ns, store.RelationScan{Ever: true}, atMost(maxNoteSearch, func(r *store.Relation) error {
			properties, err := readProperties(r.Properties)
			return errors.Join(err, f.drop(properties))
		})))
	}
	return notes, err
}

// fields is a set of property names.
type fields map[string]bool

// fieldsOf returns the properties that must exist for a filter to match.
func fieldsOf(f filter.Filter) fields {
	all := fields{}
	for _, c := range f {
		if !c.Holds(nil, false) {
			all[c.Field] = true
		}
	}
	return all
}

// drop removes fields that exist. It returns errStopScan if none is left.
func (f fields) drop(properties map[string]any) error {
	maps.DeleteFunc(f, func(field string, _ bool) bool { _, found := filter.Lookup(properties, field); return found })
	if len(f) == 0 {
		return errStopScan
	}
	return nil
}

func (f fields) notes(what, ns string) (notes []string) {
	for _, field := range slices.Sorted(maps.Keys(f)) {
		notes = append(notes, fmt.Sprintf("no %s in the namespace %q has the property %q", what, ns, field))
	}
	return notes
}
