//go:build cozo && cgo

package cozo

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/the-edge-agent/tea/plugins/graph/internal/exact"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// maxIndexed is the size of the embeddings' index up to which it is kept in
// memory. Larger sets are read from the disk by each search.
const maxIndexed = 64 << 20

// vectors are the embeddings in memory. They are loaded by the first search.
type vectors struct {
	mu        sync.RWMutex
	dimension int
	index     *exact.Index
	names     names
}

// names are numbers for namespaces, types and entities.
type names struct {
	numbers  map[name]int64
	entities map[int64]name
}

// name is an entity, or a namespace or type, whose id is empty.
type name struct{ text, id string }

func (n *names) number(of name) int64 {
	i, ok := n.numbers[of]
	if !ok {
		i = int64(len(n.numbers))
		n.numbers[of] = i
		if of.id != "" {
			n.entities[i] = of
		}
	}
	return i
}

func (v *vectors) size() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.dimension
}

// forget makes the next search load the embeddings. The caller holds mu.
func (v *vectors) forget() { v.index = nil }

// put adds an embedding. The caller holds mu.
func (v *vectors) put(namespace, kind, id string, vector []float32) {
	tag := exact.Tag{Namespace: v.names.number(name{text: namespace}), Kind: v.names.number(name{text: kind})}
	v.index.Put(v.names.number(name{text: namespace, id: id}), tag, vector)
}

// apply follows a commit. The caller holds mu.
func (v *vectors) apply(namespace string, dimension int, b store.Batch) {
	v.dimension = dimension
	if v.index == nil {
		return
	}
	for _, id := range b.DeleteEntities {
		v.index.Delete(v.names.number(name{text: namespace, id: id}))
	}
	for i := range b.Entities {
		e := &b.Entities[i]
		if e.Embedding == nil {
			v.index.Delete(v.names.number(name{text: namespace, id: e.ID}))
		} else {
			v.put(namespace, e.Type, e.ID, e.Embedding)
		}
	}
	if v.index.Len()*v.dimension > maxIndexed {
		v.forget()
	}
}

// Nearest is [store.Store.Nearest].
func (db *DB) Nearest(ctx context.Context, namespace string, q store.VectorQuery) ([]string, error) {
	done, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if db.vectors.size() != len(q.Embedding) {
		return nil, nil
	}
	ids, indexed, err := db.candidates(ctx, namespace, q)
	if err != nil {
		return nil, err
	}
	best := best{query: q}
	if indexed {
		for chunk := range slices.Chunk(ids, page) {
			p := newParams(namespace)
			p.add("ids").strings(chunk)
			err := db.engine.run("?[id, type, embedding] := id in $ids, *entity{namespace: $namespace, id, type, embedding}", p.done(), best.read)
			if err != nil {
				return nil, fault(err)
			}
		}
		return best.ids(), nil
	}
	err = db.eachEmbedding(ctx, func(in, _, id string, vector []float32) {
		if in == namespace {
			best.add(id, vector)
		}
	})
	return best.ids(), err
}

// best are the entities that are most similar to a query.
type best struct {
	query store.VectorQuery
	hits  []hit
}

type hit struct {
	id    string
	score float64
}

func (b *best) read(r *reader) error {
	for range r.open().rows {
		id, kind, vector := r.string(), r.string(), r.vector()
		if len(b.query.Types) == 0 || slices.Contains(b.query.Types, kind) {
			b.add(id, vector)
		}
	}
	return nil
}

func (b *best) add(id string, vector []float32) {
	if len(vector) != len(b.query.Embedding) {
		return
	}
	b.hits = append(b.hits, hit{id: id, score: store.Cosine(b.query.Embedding, vector)})
	if len(b.hits) >= 4*b.query.Limit+1000 {
		b.cut()
	}
}

func (b *best) cut() {
	slices.SortFunc(b.hits, func(x, y hit) int { return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.id, y.id)) })
	b.hits = b.hits[:min(len(b.hits), b.query.Limit)]
}

func (b *best) ids() []string {
	b.cut()
	ids := make([]string, len(b.hits))
	for i, h := range b.hits {
		ids[i] = h.id
	}
	return ids
}

// candidates returns the entities to compare; false if all must be.
func (db *DB) candidates(ctx context.Context, namespace string, q store.VectorQuery) ([]string, bool, error) {
	v := &db.vectors
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.index == nil {
		if complete, err := db.loadVectors(ctx); !complete || err != nil {
			v.forget()
			return nil, false, err
		}
	}
	ns, kinds := v.names.number(name{text: namespace}), make([]int64, 0, len(q.Types))
	for _, t := range q.Types {
		kinds = append(kinds, v.names.number(name{text: t}))
	}
	keep := func(t exact.Tag) bool {
		return t.Namespace == ns && (len(kinds) == 0 || slices.Contains(kinds, t.Kind))
	}
	keys := v.index.Candidates(q.Embedding, q.Limit, keep)
	ids := make([]string, len(keys))
	for i, key := range keys {
		ids[i] = v.names.entities[key].id
	}
	return ids, true, nil
}

// loadVectors reads all embeddings; false if there are too many. The caller
// holds mu.
func (db *DB) loadVectors(ctx context.Context) (complete bool, err error) {
	v := &db.vectors
	v.index = exact.New(v.dimension)
	v.names = names{numbers: map[name]int64{}, entities: map[int64]name{}}
	complete = true
	err = db.eachEmbedding(ctx, func(namespace, kind, id string, vector []float32) {
		if complete = complete && v.index.Len()*v.dimension <= maxIndexed; complete {
			v.put(namespace, kind, id, vector)
		}
	})
	return complete, err
}

// eachEmbedding calls f with all embeddings.
func (db *DB) eachEmbedding(ctx context.Context, f func(namespace, kind, id string, vector []float32)) error {
	const text = `
		?[namespace, id, type, embedding] := namespace = $namespace, *entity{namespace, id, type, embedding}, id > $after, !is_null(embedding)
		:limit $limit`
	const nextNamespace = "?[namespace] := *namespace{namespace}, namespace > $namespace :limit 1"
	for namespace, more := "", true; more; {
		more = false
		err := db.engine.run(nextNamespace, newParams(namespace).done(), func(r *reader) error {
			for range r.open().rows {
				namespace, more = r.string(), true
			}
			return nil
		})
		if err != nil {
			return fault(err)
		}
		for after, n := "", page; more && n == page; {
			if err := ctx.Err(); err != nil {
				return err
			}
			p := newParams(namespace)
			p.add("after").string(after)
			p.add("limit").integer(page)
			err := db.engine.run(text, p.done(), func(r *reader) error {
				n = r.open().rows
				for range n {
					in, id, kind, vector := r.string(), r.string(), r.string(), r.vector()
					f(in, kind, id, vector)
					after = id
				}
				return nil
			})
			if err != nil {
				return fault(err)
			}
		}
	}
	return nil
}

// Dimension is [store.Store.Dimension].
func (db *DB) Dimension(ctx context.Context) (int, error) {
	done, err := db.use(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	return db.vectors.size(), nil
}
