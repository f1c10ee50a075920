//go:build cozo && cgo

package cozo

import (
	"context"
	"strings"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// page is the number of rows that a scan reads at a time.
const page = 2000

// script builds a script.
type script struct{ strings.Builder }

func (s *script) add(parts ...string) {
	for _, p := range parts {
		s.WriteString(p)
	}
}

const (
	entityFields = "id, type, properties, exact, created_at, updated_at, source, text"
	leanFields   = "from_id, rel_type, to_id, valid_from, valid_to, weight"
	moreFields   = ", properties, exact, created_at, updated_at, source"
)

func fields(o store.Fields) string {
	columns := entityFields
	if o.Facts {
		columns += ", facts"
	}
	if o.Embeddings {
		columns += ", embedding"
	}
	return columns
}

// entity reads the columns of the requested fields.
func (r *reader) entity(o store.Fields) store.Entity {
	e := store.Entity{ID: r.string(), Type: r.string(), Properties: r.json()}
	if exact := r.string(); exact != "" {
		e.Properties = []byte(exact)
	}
	e.CreatedAt, e.UpdatedAt, e.Source, e.Text = r.integer(), r.integer(), r.string(), r.string()
	if o.Facts {
		e.Facts = r.string()
	}
	if o.Embeddings {
		e.Embedding = r.vector()
	}
	return e
}

// relation reads leanFields, and moreFields unless lean is set.
func (r *reader) relation(lean bool) store.Relation {
	var e store.Relation
	e.From, e.Type, e.To, e.ValidFrom = r.string(), r.string(), r.string(), r.integer()
	e.ValidTo, e.Weight = r.integer(), r.float()
	if lean {
		return e
	}
	if e.Properties = r.json(); e.Properties == nil {
		e.Properties = []byte("{}")
	}
	if exact := r.string(); exact != "" {
		e.Properties = []byte(exact)
	}
	e.CreatedAt, e.UpdatedAt, e.Source = r.integer(), r.integer(), r.string()
	return e
}

// selection adds the conditions on types and time, and their parameters.
func selection(s *script, p *params, types []string, at int64, ever bool) {
	if len(types) > 0 {
		s.add(", rel_type in $types")
		p.add("types").strings(types)
	}
	if !ever {
		s.add(", valid_from <= $at, valid_to > $at")
		p.add("at").integer(at)
	}
}

// relations runs a script that returns relations.
func (db *DB) relations(s *script, p *params, lean bool, f func(*store.Relation) error) error {
	return db.engine.run(s.String(), p.done(), func(r *reader) error {
		for range r.open().rows {
			e := r.relation(lean)
			if err := f(&e); err != nil {
				return err
			}
		}
		return nil
	})
}

func relationFields(lean bool) string {
	if lean {
		return leanFields
	}
	return leanFields + moreFields
}

// EachEntity implements [store.Store].
func (db *DB) EachEntity(ctx context.Context, namespace string, s store.EntityScan, f func(*store.Entity) error) error {
	done, err := db.use(ctx)
	if err != nil {
		return err
	}
	defer done()
	o := store.Fields{Embeddings: s.Embeddings, Facts: s.Facts}
	columns := fields(o)
	for after, n := s.After, page; n == page; {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := newParams(namespace)
		p.add("after").string(after)
		p.add("limit").integer(page)
		text := "?[" + columns + "] := *entity{namespace: $namespace, " + columns + "}, id > $after"
		if len(s.Types) > 0 {
			text += ", type in $types"
			p.add("types").strings(s.Types)
		}
		var entities []store.Entity
		err := db.engine.run(text+"\n:limit $limit", p.done(), func(r *reader) error {
			for range r.open().rows {
				entities = append(entities, r.entity(o))
			}
			return nil
		})
		if err != nil {
			return fault(err)
		}
		for i := range entities {
			if err := f(&entities[i]); err != nil {
				return err
			}
		}
		if n = len(entities); n > 0 {
			after = entities[n-1].ID
		}
	}
	return nil
}

// steps are the parts of a scan after a relation: further relations with the same ends
// and type, with the same source and type, of the same source, and of later sources.
// known comes first, so that the engine seeks it.
var steps = []struct{ known, after string }{
	{"from_id = $from, rel_type = $type, to_id = $to, ", ", valid_from > $valid_from"},
	{"from_id = $from, rel_type = $type, ", ", to_id > $to"},
	{"from_id = $from, ", ", rel_type > $type"},
	{"", ", from_id > $from"},
}

// EachRelation implements [store.Store].
func (db *DB) EachRelation(ctx context.Context, namespace string, s store.RelationScan, f func(*store.Relation) error) error {
	done, err := db.use(ctx)
	if err != nil {
		return err
	}
	defer done()
	columns := relationFields(s.Lean)
	var after store.RelationKey
	for step := len(steps) - 1; step < len(steps); {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := newParams(namespace)
		var text script
		text.add("?[", columns, "] := namespace = $namespace, ", steps[step].known, "*relation{namespace, ", columns, "}", steps[step].after)
		selection(&text, p, s.Types, s.At, s.Ever)
		text.add("\n:limit $limit")
		p.add("from").string(after.From)
		p.add("type").string(after.Type)
		p.add("to").string(after.To)
		p.add("valid_from").integer(after.ValidFrom)
		p.add("limit").integer(page)
		var found []store.Relation
		if err := db.relations(&text, p, s.Lean, func(e *store.Relation) error { found = append(found, *e); return nil }); err != nil {
			return fault(err)
		}
		for i := range found {
			if err := f(&found[i]); err != nil {
				return err
			}
		}
		if step++; len(found) == page {
			after, step = found[page-1].RelationKey, 0
		}
	}
	return nil
}

// Stats implements [store.Store].
func (db *DB) Stats(ctx context.Context, namespace string) (store.Stats, error) {
	s := store.Stats{EntityTypes: map[string]int64{}, RelationTypes: map[string]int64{}, Namespaces: []string{}}
	done, err := db.use(ctx)
	if err != nil {
		return s, err
	}
	defer done()
	s.Dimension = db.vectors.Dimension()
	count := func(into map[string]int64, sum *int64) func(*reader) error {
		return func(r *reader) error {
			for range r.open().rows {
				kind, n := r.string(), r.integer()
				into[kind], *sum = n, *sum+n
			}
			return nil
		}
	}
	p := newParams(namespace).done()
	err = db.engine.run("?[type, count(id)] := *entity{namespace: $namespace, id, type}", p, count(s.EntityTypes, &s.Entities))
	if err == nil {
		err = db.engine.run("?[rel_type, count(to_id)] := *relation{namespace: $namespace, from_id, rel_type, to_id, valid_from}", p, count(s.RelationTypes, &s.Relations))
	}
	if err == nil {
		err = db.engine.run("?[count(id)] := *entity{namespace: $namespace, id, embedding}, !is_null(embedding)", p, func(r *reader) error {
			for range r.open().rows {
				s.Embeddings = r.integer()
			}
			return nil
		})
	}
	if err == nil {
		s.Namespaces, err = db.used()
	}
	return s, fault(err)
}

// used returns the namespaces that are not empty.
func (db *DB) used() ([]string, error) {
	var all []string
	err := db.engine.run("?[namespace] := *namespace{namespace}", &writer{}, func(r *reader) error {
		for range r.open().rows {
			all = append(all, r.string())
		}
		return nil
	})
	names := []string{}
	for _, name := range all {
		for _, relation := range []string{"*entity", "*relation"} {
			if err != nil {
				return nil, err
			}
			found := 0
			err = db.engine.run("?[namespace] := namespace = $namespace, "+relation+"{namespace}\n:limit 1", newParams(name).done(), func(r *reader) error {
				found = r.open().rows
				return nil
			})
			if found > 0 {
				names = append(names, name)
				break
			}
		}
	}
	return names, err
}
