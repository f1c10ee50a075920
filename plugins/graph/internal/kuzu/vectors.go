//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/the-edge-agent/tea/plugins/graph/internal/exact"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// maxIndexed is the size of the embeddings' index up to which it is kept in
// memory. A search among more embeddings reads them all.
const maxIndexed = 32 << 20

// vectors are the embeddings in memory. They are loaded by the first search.
type vectors struct {
	mu        sync.RWMutex
	dimension int
	index     *exact.Index
	// numbers are the keys of the index by those of the entities, and keys the
	// reverse; names are the numbers of namespaces and types.
	numbers map[string]int64
	keys    []string
	names   map[string]int64
}

func (v *vectors) size() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.dimension
}

// Dimension is that of the embeddings, 0 if there are none.
func (db *DB) Dimension(context.Context) (int, error) { return db.vectors.size(), nil }

// forget makes the next search load the embeddings. The caller holds mu.
func (v *vectors) forget() { v.index, v.numbers, v.keys, v.names = nil, nil, nil, nil }

// start makes an empty index. The caller holds mu.
func (v *vectors) start(dimension int) {
	v.index, v.numbers, v.keys, v.names = exact.New(dimension), map[string]int64{}, nil, map[string]int64{}
}

func (v *vectors) name(s string) int64 {
	n, ok := v.names[s]
	if !ok {
		n = int64(len(v.names))
		v.names[s] = n
	}
	return n
}

// put adds or replaces a vector. The caller holds mu.
func (v *vectors) put(namespace, id, kind string, vector []float32) {
	k := key(namespace, id)
	n, ok := v.numbers[k]
	if !ok {
		n = int64(len(v.keys))
		v.numbers[k] = n
		v.keys = append(v.keys, k)
	}
	v.index.Put(n, exact.Tag{Namespace: v.name(namespace), Kind: v.name(kind)}, vector)
}

// remove removes a vector. The caller holds mu.
func (v *vectors) remove(namespace, id string) {
	if n, ok := v.numbers[key(namespace, id)]; ok {
		v.index.Delete(n)
	}
}

// apply follows a commit. The caller holds mu.
func (v *vectors) apply(namespace string, dimension int, b store.Batch) {
	v.dimension = dimension
	if v.index == nil {
		return
	}
	for _, id := range b.DeleteEntities {
		v.remove(namespace, id)
	}
	for i := range b.Entities {
		if e := &b.Entities[i]; e.Embedding == nil {
			v.remove(namespace, e.ID)
		} else {
			v.put(namespace, e.ID, e.Type, e.Embedding)
		}
	}
	if v.index.Len()*dimension > maxIndexed || len(v.keys) > 2*v.index.Len()+10_000 {
		v.forget()
	}
}

// Nearest is [store.Store.Nearest].
func (db *DB) Nearest(ctx context.Context, namespace string, q store.VectorQuery) ([]string, error) {
	type hit struct {
		id    string
		score float64
	}
	var hits []hit
	best := func() {
		slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
		hits = hits[:min(len(hits), q.Limit)]
	}
	consider := func(id, kind string, vector []float32) {
		if len(vector) != len(q.Embedding) || len(q.Types) > 0 && !slices.Contains(q.Types, kind) {
			return
		}
		hits = append(hits, hit{id: id, score: store.Cosine(q.Embedding, vector)})
		if len(hits) >= 4*q.Limit+1000 {
			best()
		}
	}
	err := db.read(ctx, func(c *connection) error {
		keys, all, err := db.candidates(ctx, c, namespace, q)
		switch {
		case err != nil:
			return err
		case all:
			return c.eachVector(ctx, params{"namespace": namespace}, " AND e.namespace = $namespace", func(_, id, kind string, vector []float32) { consider(id, kind, vector) })
		}
		r, err := c.entities(ctx, keys, []string{"id", "type", "embedding"})
		if err != nil {
			return err
		}
		for r.next() {
			consider(r.text(), r.text(), fromBlob(r.blob()))
		}
		return nil
	})
	best()
	ids := make([]string, len(hits))
	for i, h := range hits {
		ids[i] = h.id
	}
	return ids, err
}

// candidates returns the keys of the entities to compare, or that all are.
func (db *DB) candidates(ctx context.Context, c *connection, namespace string, q store.VectorQuery) (keys []string, all bool, err error) {
	v := &db.vectors
	v.mu.RLock()
	loaded := v.index != nil
	if !loaded && v.dimension == len(q.Embedding) {
		v.mu.RUnlock()
		if all, err = db.loadVectors(ctx, c); all || err != nil {
			return nil, all, err
		}
		v.mu.RLock()
	}
	defer v.mu.RUnlock()
	if v.index == nil || v.dimension != len(q.Embedding) {
		return nil, v.dimension == len(q.Embedding), nil
	}
	ns, ok := v.names[namespace]
	if !ok {
		return nil, false, nil
	}
	kinds := map[int64]bool{}
	for _, t := range q.Types {
		if n, ok := v.names[t]; ok {
			kinds[n] = true
		}
	}
	for _, n := range v.index.Candidates(q.Embedding, q.Limit, func(t exact.Tag) bool { return t.Namespace == ns && (len(q.Types) == 0 || kinds[t.Kind]) }) {
		keys = append(keys, v.keys[n])
	}
	return keys, false, nil
}

// loadVectors loads the index, or reports that the embeddings are too many.
func (db *DB) loadVectors(ctx context.Context, c *connection) (tooMany bool, err error) {
	v := &db.vectors
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.index != nil {
		return false, nil
	}
	r, err := c.query(ctx, "MATCH (e:Entity) WHERE octet_length(e.embedding) > 0 RETURN count(*)", nil)
	if err != nil {
		return false, err
	}
	if r.next() && r.integer()*int64(v.dimension) > maxIndexed {
		return true, nil
	}
	v.start(v.dimension)
	if err := c.eachVector(ctx, nil, "", v.put); err != nil {
		v.forget()
		return false, err
	}
	return false, nil
}

// eachVector calls f with all embeddings.
func (c *connection) eachVector(ctx context.Context, p params, where string, f func(namespace, id, kind string, vector []float32)) error {
	r, err := c.query(ctx, "MATCH (e:Entity) WHERE octet_length(e.embedding) > 0"+where+" RETURN e.namespace, e.id, e.type, e.embedding", p)
	if err != nil {
		return err
	}
	for r.next() {
		f(r.text(), r.text(), r.text(), fromBlob(r.blob()))
	}
	return nil
}
