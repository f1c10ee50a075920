//go:build cozo && cgo

package cozo

import (
	"context"
	"math"
	"slices"

	"github.com/the-edge-agent/tea/plugins/graph/internal/exact"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// The columns of the relations, in writing order.
var (
	entityKey       = []string{"namespace", "id"}
	entityColumns   = []string{"namespace", "id", "type", "properties", "embedding", "created_at", "updated_at", "source", "text", "facts", "exact", "words"}
	wordColumns     = []string{"namespace", "word", "id"}
	relationKey     = []string{"namespace", "from_id", "rel_type", "to_id", "valid_from"}
	relationColumns = []string{"namespace", "from_id", "rel_type", "to_id", "valid_from", "valid_to", "weight", "properties", "created_at", "updated_at", "source", "exact"}
)

// Apply implements [store.Store].
func (db *DB) Apply(ctx context.Context, namespace string, b store.Batch) error {
	done, err := db.use(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := db.unseal(); err != nil {
		return err
	}
	dimension, err := store.DimensionAfter(db.vectors.Dimension(), b.Entities)
	if err != nil {
		return err
	}
	stale, err := db.staleWords(namespace, b)
	if err != nil {
		return err
	}
	w := db.encode(namespace, b, stale, dimension)
	if err := db.vectors.Commit(dimension, exact.Changes(namespace, b), func() error { return db.engine.apply(w) }); err != nil {
		return fault(err)
	}
	db.namespaces[namespace] = true
	return nil
}

// staleWords returns the words under which the entities of a batch are currently found,
// by ID.
func (db *DB) staleWords(namespace string, b store.Batch) (map[string][]string, error) {
	if len(b.Entities)+len(b.DeleteEntities) == 0 || !db.namespaces[namespace] {
		return nil, nil
	}
	ids := slices.Clone(b.DeleteEntities)
	for i := range b.Entities {
		ids = append(ids, b.Entities[i].ID)
	}
	stale := map[string][]string{}
	l := lookup{relation: "entity", columns: wordsRow, ever: true, limit: noLimit}
	err := db.lookup(namespace, l, singles(unique(ids)), func(r *reader) { stale[r.string()] = r.strings() })
	return stale, err
}

// rows begins a part of a batch: n rows of a relation.
func (w *writer) rows(relation string, columns []string, n int) {
	w.text(relation)
	w.count(len(columns))
	for _, c := range columns {
		w.text(c)
	}
	w.count(n)
}

// encode encodes a batch. The engine executes deletions first.
func (db *DB) encode(namespace string, b store.Batch, stale map[string][]string, dimension int) *writer {
	w := &writer{}
	w.count(8)
	w.rows("-entity", entityKey, len(b.DeleteEntities))
	for _, id := range b.DeleteEntities {
		w.string(namespace)
		w.string(id)
	}
	w.rows("-relation", relationKey, len(b.DeleteRelations))
	for _, k := range b.DeleteRelations {
		w.relationKey(namespace, k)
	}
	w.rows("-word", wordColumns, total(stale))
	for id, words := range stale {
		w.words(namespace, id, words)
	}
	w.rows("entity", entityColumns, len(b.Entities))
	n := 0
	for i := range b.Entities {
		w.entity(namespace, &b.Entities[i])
		n += len(b.Entities[i].Words)
	}
	w.rows("word", wordColumns, n)
	for i := range b.Entities {
		w.words(namespace, b.Entities[i].ID, b.Entities[i].Words)
	}
	w.rows("relation", relationColumns, len(b.Relations))
	for i := range b.Relations {
		w.relation(namespace, &b.Relations[i])
	}
	if db.namespaces[namespace] {
		w.rows("namespace", []string{"namespace"}, 0)
	} else {
		w.rows("namespace", []string{"namespace"}, 1)
		w.string(namespace)
	}
	if dimension == db.vectors.Dimension() {
		w.rows("meta", []string{"name", "value"}, 0)
	} else {
		w.rows("meta", []string{"name", "value"}, 1)
		w.string("dimension")
		w.integer(int64(dimension))
	}
	return w
}

func total(words map[string][]string) int {
	n := 0
	for _, list := range words {
		n += len(list)
	}
	return n
}

func (w *writer) words(namespace, id string, words []string) {
	for _, word := range words {
		w.string(namespace)
		w.string(word)
		w.string(id)
	}
}

func (w *writer) entity(namespace string, e *store.Entity) {
	w.string(namespace)
	w.string(e.ID)
	w.string(e.Type)
	w.json(e.Properties)
	if e.Embedding == nil {
		w.null()
	} else {
		w.vector(e.Embedding)
	}
	w.integer(e.CreatedAt)
	w.integer(e.UpdatedAt)
	w.string(e.Source)
	w.string(e.Text)
	w.string(e.Facts)
	w.exact(e.Properties)
	w.strings(e.Words)
}

func (w *writer) relationKey(namespace string, k store.RelationKey) {
	w.string(namespace)
	w.string(k.From)
	w.string(k.Type)
	w.string(k.To)
	w.integer(k.ValidFrom)
}

func (w *writer) relation(namespace string, r *store.Relation) {
	w.relationKey(namespace, r.RelationKey)
	w.integer(r.ValidTo)
	w.float(r.Weight)
	if string(r.Properties) == "{}" {
		w.null()
	} else {
		w.json(r.Properties)
	}
	w.integer(r.CreatedAt)
	w.integer(r.UpdatedAt)
	w.string(r.Source)
	w.exact(r.Properties)
}

// exact writes JSON text that the engine's JSON would change, otherwise null: the engine
// only has 64-bit integers and floats.
func (w *writer) exact(text []byte) {
	digits := 0
	for _, c := range text {
		if c < '0' || c > '9' {
			digits = 0
		} else if digits++; digits >= len("9223372036854775807") {
			w.string(string(text))
			return
		}
	}
	w.null()
}

// params are the parameters of a script of this package.
type params struct {
	writer
	n int
}

// newParams returns parameters with a namespace.
func newParams(namespace string) *params {
	p := &params{}
	p.count(0)
	p.add("namespace").string(namespace)
	return p
}

// add begins a parameter. The caller writes its value.
func (p *params) add(name string) *writer {
	p.n++
	p.text(name)
	return &p.writer
}

func (p *params) done() *writer {
	for i := range 4 {
		p.b[i] = byte(p.n >> (8 * i))
	}
	return &p.writer
}

// noLimit is the limit of an unlimited lookup.
const noLimit = math.MaxInt32

// limit returns n as a limit of a lookup, which has 32 bits.
func limit(n int) int { return min(n, noLimit-1) }
