//go:build cozo && cgo

package cozo

import (
	"context"
	"slices"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// The positions of columns in a stored row; see schema.go.
var (
	entityRow    = []int{1, 2, 3, 10, 5, 6, 7, 8}
	wordsRow     = []int{1, 11}
	factsColumn  = 9
	vectorColumn = 4
	relationRow  = []int{1, 2, 3, 4, 5, 6}
	relationRest = []int{7, 11, 8, 9, 10}
	targetRow    = []int{3, 2, 1, 4, 5, 6}
)

// lookup selects the rows of a relation whose keys begin with the namespace and one of
// the prefixes.
type lookup struct {
	relation string
	// columns are positions of columns.
	columns []int
	// at is the instant at which relations are valid, unless ever is set.
	at    int64
	ever  bool
	limit int
}

// lookup calls f for each row. See plugins/graph/cozo/src/lookup.rs.
func (db *DB) lookup(namespace string, l lookup, prefixes [][]string, f func(*reader)) error {
	w := &writer{}
	w.text(l.relation)
	w.count(len(prefixes))
	for _, p := range prefixes {
		w.count(1 + len(p))
		w.text(namespace)
		for _, text := range p {
			w.text(text)
		}
	}
	w.count(len(l.columns))
	for _, c := range l.columns {
		w.count(c)
	}
	w.count(l.limit)
	if l.ever {
		w.count(0)
	} else {
		// For relations and their index.
		const validFrom, validTo = 4, 5
		w.count(validFrom)
		w.count(validTo)
		w.word(uint64(l.at))
	}
	return fault(db.engine.lookup(w, func(r *reader) error {
		for range r.open().rows {
			f(r)
		}
		return nil
	}))
}

func rowOf(o store.Fields) []int {
	columns := slices.Clone(entityRow)
	if o.Facts {
		columns = append(columns, factsColumn)
	}
	if o.Embeddings {
		columns = append(columns, vectorColumn)
	}
	return columns
}

// Entities implements [store.Store].
func (db *DB) Entities(ctx context.Context, namespace string, ids []string, o store.Fields) ([]store.Entity, error) {
	done, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	found := make([]store.Entity, 0, len(ids))
	l := lookup{relation: "entity", columns: rowOf(o), ever: true, limit: len(ids)}
	err = db.lookup(namespace, l, singles(ids), func(r *reader) { found = append(found, r.entity(o)) })
	return found, err
}

// singles returns the key prefixes of entities.
func singles(ids []string) [][]string {
	prefixes := make([][]string, len(ids))
	for i := range ids {
		prefixes[i] = ids[i : i+1]
	}
	return prefixes
}

// Adjacent implements [store.Store].
func (db *DB) Adjacent(ctx context.Context, namespace string, a store.Adjacency) ([]store.Relation, error) {
	done, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	prefixes := make([][]string, 0, len(a.IDs)*max(1, len(a.Types)))
	for _, id := range a.IDs {
		if len(a.Types) == 0 {
			prefixes = append(prefixes, []string{id})
		}
		for _, kind := range unique(a.Types) {
			prefixes = append(prefixes, []string{id, kind})
		}
	}
	most := limit(a.Max) + 1
	l := lookup{relation: "relation", columns: relationColumnsOf(a.Lean), at: a.At, ever: a.Ever, limit: most}
	var found []store.Relation
	if a.Direction != store.In {
		if err := db.lookup(namespace, l, prefixes, func(r *reader) { found = append(found, r.relation(a.Lean)) }); err != nil {
			return nil, err
		}
	}
	if a.Direction == store.Out || len(found) == most {
		return found, nil
	}
	// Relations between two of the entities were found from their source.
	skip := map[string]bool{}
	if a.Direction == store.Both {
		for _, id := range a.IDs {
			skip[id] = true
		}
	}
	target := lookup{relation: "relation:by_target", columns: targetRow, at: a.At, ever: a.Ever, limit: most + len(found)}
	var ending []store.Relation
	err = db.lookup(namespace, target, prefixes, func(r *reader) {
		if e := r.relation(true); !skip[e.From] {
			ending = append(ending, e)
		}
	})
	if err != nil || a.Lean {
		return append(found, ending[:min(len(ending), most-len(found))]...), err
	}
	l.limit = most - len(found)
	err = db.lookup(namespace, l, triples(keysOf(ending)), func(r *reader) { found = append(found, r.relation(false)) })
	return found, err
}

// Between implements [store.Store].
func (db *DB) Between(ctx context.Context, namespace string, keys []store.RelationKey) ([]store.Relation, error) {
	done, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var found []store.Relation
	l := lookup{relation: "relation", columns: relationColumnsOf(false), ever: true, limit: noLimit}
	err = db.lookup(namespace, l, triples(keys), func(r *reader) { found = append(found, r.relation(false)) })
	return found, err
}

func relationColumnsOf(lean bool) []int {
	if lean {
		return relationRow
	}
	return slices.Concat(relationRow, relationRest)
}

func keysOf(relations []store.Relation) []store.RelationKey {
	keys := make([]store.RelationKey, len(relations))
	for i := range relations {
		keys[i] = relations[i].RelationKey
	}
	return keys
}

// triples returns the distinct key prefixes of relations.
func triples(keys []store.RelationKey) [][]string {
	seen := make(map[store.RelationKey]bool, len(keys))
	prefixes := make([][]string, 0, len(keys))
	for _, k := range keys {
		if k.ValidFrom = 0; !seen[k] {
			seen[k] = true
			prefixes = append(prefixes, []string{k.From, k.Type, k.To})
		}
	}
	return prefixes
}

func unique(texts []string) []string {
	texts = slices.Clone(texts)
	slices.Sort(texts)
	return slices.Compact(texts)
}

// Search implements [store.Store].
func (db *DB) Search(ctx context.Context, namespace string, q store.TextQuery) ([]string, error) {
	done, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return store.Candidates(q, func(words []string, most int) ([]string, error) {
		w := &writer{}
		w.text(namespace)
		for _, list := range [][]string{words, q.Types} {
			w.count(len(list))
			for _, text := range list {
				w.text(text)
			}
		}
		w.count(limit(most))
		var ids []string
		err := db.engine.withWords(w, func(r *reader) error {
			for range r.open().rows {
				ids = append(ids, r.string())
			}
			return nil
		})
		return ids, fault(err)
	})
}
