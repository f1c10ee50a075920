package graph

import (
	"bytes"
	"context"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// timeline has the relations that a call stores, and those that it may end.
type timeline struct {
	now      int64
	byTriple map[store.RelationKey][]*store.Relation // ValidFrom is 0
	byType   map[store.RelationKey][]*store.Relation // exclusive ones by From and Type
	stored   []*store.Relation
	isStored map[*store.Relation]bool

	created, closed, entities int
	// last is the relation of the last put.
	last *store.Relation
}

func triple(from, kind, to string) store.RelationKey {
	return store.RelationKey{From: from, Type: kind, To: to}
}

// timeline reads the relations that the given ones may change.
func (v *view) timeline(ctx context.Context, given []RelationFields) (*timeline, error) {
	t := &timeline{now: v.now, byTriple: map[store.RelationKey][]*store.Relation{}, byType: map[store.RelationKey][]*store.Relation{}, isStored: map[*store.Relation]bool{}}
	var keys []store.RelationKey
	exclusive := map[string][]string{} // ids by type
	for i := range given {
		f := &given[i]
		if f.Exclusive {
			exclusive[f.RelationType] = append(exclusive[f.RelationType], f.FromEntity)
		}
		keys = append(keys, triple(f.FromEntity, f.RelationType, f.ToEntity))
	}
	found, err := v.Between(ctx, v.ns, keys)
	if err != nil {
		return nil, err
	}
	known := map[store.RelationKey]bool{}
	add := func(all []store.Relation) {
		for i := range all {
			if !known[all[i].RelationKey] {
				known[all[i].RelationKey] = true
				t.add(&all[i])
			}
		}
	}
	add(found)
	for kind, ids := range exclusive {
		others, err := v.adjacent(ctx, store.Adjacency{IDs: ids, Direction: store.Out, Types: []string{kind}, Ever: true})
		if err != nil {
			return nil, err
		}
		add(others)
	}
	return t, nil
}

func (t *timeline) add(r *store.Relation) {
	three, two := triple(r.From, r.Type, r.To), triple(r.From, r.Type, "")
	t.byTriple[three] = append(t.byTriple[three], r)
	t.byType[two] = append(t.byType[two], r)
}

// store marks a relation as changed.
func (t *timeline) store(r *store.Relation) {
	r.UpdatedAt = t.now
	if !t.isStored[r] {
		t.isStored[r] = true
		t.stored = append(t.stored, r)
	}
}

func (t *timeline) changed() []store.Relation {
	all := make([]store.Relation, len(t.stored))
	for i, r := range t.stored {
		all[i] = *r
	}
	return all
}

// put stores a relation.
func (t *timeline) put(f *RelationFields) error {
	key := triple(f.FromEntity, f.RelationType, f.ToEntity)
	same := t.byTriple[key]
	from := t.begin(f, same)
	key.ValidFrom = from
	until, err := toInstant("valid_to", f.ValidTo, store.Forever)
	if err != nil {
		return err
	}
	if until <= from {
		return tea.Errorf(tea.ValidationError, "the relation %s ends before it begins; pass valid_from", f)
	}
	r := &store.Relation{RelationKey: key, ValidTo: until, Weight: 1, CreatedAt: t.now}
	existing, known := false, false
	for _, other := range same {
		switch {
		case other.ValidFrom != from:
		case other.ValidTo <= from: // it was never valid
			*other = *r
			r, known = other, true
		default:
			r, existing = other, true
			if f.ValidTo != "" {
				r.ValidTo = until
			}
		}
	}
	if err := fill(r, f, existing); err != nil {
		return err
	}
	if existing {
		endAtNext(r, same)
	} else {
		if said := t.endBefore(r, same, f); said != nil {
			t.last = said // nothing changes
			return t.endOthers(f, said)
		}
		t.created++
		if !known {
			t.add(r)
		}
	}
	t.store(r)
	t.last = r
	return t.endOthers(f, r)
}

// begin returns the start of a relation.
func (t *timeline) begin(f *RelationFields, same []*store.Relation) int64 {
	if f.ValidFrom != "" {
		from, _ := toInstant("valid_from", f.ValidFrom, 0) // already checked
		return from
	}
	for _, r := range same {
		if r.Valid(t.now) {
			return r.ValidFrom // changed in place
		}
	}
	if len(same) > 0 {
		return t.now
	}
	if f.Exclusive {
		for _, r := range t.byType[triple(f.FromEntity, f.RelationType, "")] {
			if r.To != f.ToEntity && r.ValidTo > r.ValidFrom {
				return t.now
			}
		}
	}
	return store.Always
}

// fill sets the fields of a relation from a call.
func fill(r *store.Relation, f *RelationFields, existing bool) error {
	properties := f.Properties
	if existing && f.Merge {
		old, err := readProperties(r.Properties)
		if err != nil {
			return err
		}
		properties = merged(old, properties)
	}
	text, err := encodeProperties(f.String(), properties)
	if err != nil {
		return err
	}
	r.Properties = text
	if f.Weight != nil {
		r.Weight = *f.Weight
	} else if !f.Merge {
		r.Weight = 1
	}
	if f.Source != "" || !f.Merge {
		r.Source = f.Source
	}
	return nil
}

// endAtNext ends a relation where the next one with the same ends and type begins.
func endAtNext(r *store.Relation, same []*store.Relation) {
	for _, other := range same {
		if other.ValidTo > other.ValidFrom && other.ValidFrom > r.ValidFrom {
			r.ValidTo = min(r.ValidTo, other.ValidFrom)
		}
	}
}

// endBefore ends the same relation where a new one begins, and the new one where the
// next one begins. It returns an earlier relation that makes the new one redundant.
func (t *timeline) endBefore(r *store.Relation, same []*store.Relation, f *RelationFields) *store.Relation {
	endAtNext(r, same)
	for _, other := range same {
		if other != r && other.ValidFrom <= r.ValidFrom && other.ValidTo > r.ValidFrom {
			if f.ValidTo == "" && other.Weight == r.Weight && bytes.Equal(other.Properties, r.Properties) && (r.Source == "" || r.Source == other.Source) {
				return other
			}
			t.end(other, r.ValidFrom)
		}
	}
	return nil
}

// endOthers ends the relations that an exclusive one replaces.
func (t *timeline) endOthers(f *RelationFields, r *store.Relation) error {
	if !f.Exclusive {
		return nil
	}
	for _, other := range t.byType[triple(r.From, r.Type, "")] {
		switch {
		case other.To == r.To || other.ValidTo <= other.ValidFrom:
		case other.ValidFrom > r.ValidFrom:
			if other.ValidFrom < r.ValidTo {
				r.ValidTo = other.ValidFrom
				t.store(r)
			}
		case other.ValidTo > r.ValidFrom:
			t.end(other, r.ValidFrom)
		}
	}
	return nil
}

func (t *timeline) end(r *store.Relation, at int64) {
	r.ValidTo = at
	t.closed++
	t.store(r)
}
