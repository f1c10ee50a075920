//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"context"
	"slices"

	"github.com/the-edge-agent/tea/plugins/graph/internal/exact"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// scanSize is the number of entities that a scan looks up at once.
const scanSize = 500

// Entities implements [store.Store].
func (db *DB) Entities(ctx context.Context, namespace string, ids []string, f store.Fields) ([]store.Entity, error) {
	var found []store.Entity
	err := db.read(ctx, func(c *connection) error {
		return c.eachEntity(ctx, namespace, ids, f, func(e *store.Entity) error { found = append(found, *e); return nil })
	})
	return found, err
}

// eachEntity calls f with the existing entities, in the order of ids.
func (c *connection) eachEntity(ctx context.Context, namespace string, ids []string, o store.Fields, f func(*store.Entity) error) error {
	columns := slices.Clone(entityColumns)
	if o.Facts {
		columns = append(columns, "facts")
	}
	if o.Embeddings {
		columns = append(columns, "embedding")
	}
	r, err := c.entities(ctx, keysOf(namespace, ids), columns)
	if err != nil {
		return err
	}
	for r.next() {
		e := store.Entity{ID: r.text(), Type: r.text(), CreatedAt: r.integer(), UpdatedAt: r.integer(), Source: r.text(), Properties: slices.Clone(r.blob()), Text: r.text()}
		if o.Facts {
			e.Facts = r.text()
		}
		if o.Embeddings {
			e.Embedding = exact.FromBlob(r.blob())
		}
		if e.Type == "" {
			continue // it is only the end of relations
		}
		if err := f(&e); err != nil {
			return err
		}
	}
	return nil
}

// relation reads a row of leanColumns, and otherColumns unless lean is set.
func (r *result) relation(lean bool) store.Relation {
	var x store.Relation
	x.Type, x.ValidFrom, x.ValidTo, x.From, x.To, x.Weight = r.text(), fromColumn(r.integer()), fromColumn(r.integer()), r.text(), r.text(), r.float()
	if !lean {
		x.CreatedAt, x.UpdatedAt, x.Source, x.Properties = r.integer(), r.integer(), r.text(), slices.Clone(r.blob())
	}
	return x
}

func relationColumns(lean bool) []string {
	if lean {
		return leanColumns
	}
	return slices.Concat(leanColumns, otherColumns)
}

// Adjacent implements [store.Store].
func (db *DB) Adjacent(ctx context.Context, namespace string, a store.Adjacency) ([]store.Relation, error) {
	var found []store.Relation
	err := db.read(ctx, func(c *connection) error {
		most := a.Max
		if a.Direction == store.Both {
			a.Max *= 2 // a relation between two of the entities appears twice
		}
		r, err := c.adjacent(ctx, keysOf(namespace, a.IDs), relationColumns(a.Lean), a)
		if err != nil {
			return err
		}
		seen := map[store.RelationKey]bool{}
		for r.next() && len(found) <= most {
			x := r.relation(a.Lean)
			if a.Direction == store.Both {
				if seen[x.RelationKey] {
					continue
				}
				seen[x.RelationKey] = true
			}
			found = append(found, x)
		}
		return nil
	})
	return found, err
}

// Between implements [store.Store].
func (db *DB) Between(ctx context.Context, namespace string, keys []store.RelationKey) ([]store.Relation, error) {
	wanted := map[store.RelationKey]bool{}
	var from, types []string
	for _, k := range keys {
		k.ValidFrom = 0
		wanted[k] = true
		from, types = append(from, k.From), append(types, k.Type)
	}
	slices.Sort(from)
	var found []store.Relation
	all, err := db.Adjacent(ctx, namespace, store.Adjacency{IDs: slices.Compact(from), Types: types, Ever: true, Max: 1 << 30})
	for _, r := range all {
		k := r.RelationKey
		if k.ValidFrom = 0; wanted[k] {
			found = append(found, r)
		}
	}
	return found, err
}

// ids returns the IDs of nodes, sorted; only entities have a type.
func (c *connection) ids(ctx context.Context, where string, p params) ([]string, error) {
	r, err := c.query(ctx, "MATCH (e:Entity) WHERE e.namespace = $namespace"+where+" RETURN e.id", p)
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, r.rows)
	for r.next() {
		ids = append(ids, r.text())
	}
	slices.Sort(ids)
	return ids, nil
}

// EachEntity implements [store.Store].
func (db *DB) EachEntity(ctx context.Context, namespace string, s store.EntityScan, f func(*store.Entity) error) error {
	return db.snapshot(ctx, func(c *connection) error {
		where, p := " AND e.type <> ''", params{"namespace": namespace}
		if len(s.Types) > 0 {
			where += " AND e.type IN $types"
			p["types"] = s.Types
		}
		if s.After != "" {
			where += " AND e.id > $after"
			p["after"] = s.After
		}
		ids, err := c.ids(ctx, where, p)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(ids, scanSize) {
			if err := c.eachEntity(ctx, namespace, part, store.Fields{Embeddings: s.Embeddings, Facts: s.Facts}, f); err != nil {
				return err
			}
		}
		return nil
	})
}

// EachRelation implements [store.Store].
func (db *DB) EachRelation(ctx context.Context, namespace string, s store.RelationScan, f func(*store.Relation) error) error {
	return db.snapshot(ctx, func(c *connection) error {
		ids, err := c.ids(ctx, "", params{"namespace": namespace})
		if err != nil {
			return err
		}
		for part := range slices.Chunk(ids, scanSize) {
			r, err := c.adjacent(ctx, keysOf(namespace, part), relationColumns(s.Lean), store.Adjacency{Types: s.Types, At: s.At, Ever: s.Ever, Max: 1 << 30})
			if err != nil {
				return err
			}
			relations := make([]store.Relation, 0, r.rows)
			for r.next() {
				relations = append(relations, r.relation(s.Lean))
			}
			slices.SortFunc(relations, func(a, b store.Relation) int { return a.Compare(b.RelationKey) })
			for i := range relations {
				if err := f(&relations[i]); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Search implements [store.Store]. The entities of all words are read in one scan.
func (db *DB) Search(ctx context.Context, namespace string, q store.TextQuery) ([]string, error) {
	var found []string
	err := db.read(ctx, func(c *connection) error {
		r, err := c.withWords(ctx, namespace, q.Words, q.Types, false, q.Limit+1)
		if err != nil {
			return err
		}
		byWord := map[string][]string{}
		for r.next() {
			word := q.Words[r.integer()]
			byWord[word] = append(byWord[word], r.text())
		}
		found, err = store.Candidates(q, func(words []string, limit int) ([]string, error) {
			if limit > q.Limit {
				return byWord[words[0]], nil
			}
			r, err := c.withWords(ctx, namespace, words, q.Types, true, limit)
			if err != nil {
				return nil, err
			}
			ids := make([]string, 0, r.rows)
			for r.next() {
				r.integer()
				ids = append(ids, r.text())
			}
			return ids, nil
		})
		return err
	})
	return found, err
}

// namespaces returns the namespaces that have entities or relations, sorted. A deleted
// entity leaves a node without a type.
func (c *connection) namespaces(ctx context.Context) ([]string, error) {
	r, err := c.query(ctx, "MATCH (e:Entity) RETURN e.namespace, sum(CASE WHEN e.type <> '' THEN 1 ELSE 0 END)", nil)
	if err != nil {
		return nil, err
	}
	names, empty := []string{}, []string{}
	for r.next() {
		if name := r.text(); r.count() > 0 {
			names = append(names, name)
		} else {
			empty = append(empty, name)
		}
	}
	for _, name := range empty {
		if r, err = c.query(ctx, "MATCH (e:Entity)-[:Relation]->(:Entity) WHERE e.namespace = $namespace RETURN e.namespace LIMIT 1", params{"namespace": name}); err != nil {
			return nil, err
		}
		if r.next() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Stats implements [store.Store].
func (db *DB) Stats(ctx context.Context, namespace string) (store.Stats, error) {
	s := store.Stats{EntityTypes: map[string]int64{}, RelationTypes: map[string]int64{}, Namespaces: []string{}, Dimension: db.vectors.Dimension()}
	p := params{"namespace": namespace}
	err := db.snapshot(ctx, func(c *connection) error {
		var err error
		if s.Namespaces, err = c.namespaces(ctx); err != nil {
			return err
		}
		r, err := c.query(ctx, "MATCH (e:Entity) WHERE e.namespace = $namespace AND e.type <> '' RETURN e.type, count(*), sum(CASE WHEN octet_length(e.embedding) > 0 THEN 1 ELSE 0 END)", p)
		if err != nil {
			return err
		}
		for r.next() {
			name, n := r.text(), r.integer()
			s.EntityTypes[name] = n
			s.Entities += n
			s.Embeddings += r.count()
		}
		r, err = c.query(ctx, "MATCH (e:Entity)-[r:Relation]->(:Entity) WHERE e.namespace = $namespace RETURN r.type, count(*)", p)
		if err != nil {
			return err
		}
		for r.next() {
			name, n := r.text(), r.integer()
			s.RelationTypes[name] = n
			s.Relations += n
		}
		return nil
	})
	return s, err
}
