package sqlite

import (
	"cmp"
	"context"
	"database/sql"
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
}

// vectorChange is an embedding that was stored, or deleted if vector is nil.
type vectorChange struct {
	pk     int64
	tag    exact.Tag
	vector []float32
}

func (v *vectors) size() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.dimension
}

// forget makes the next search load the embeddings. The caller holds mu.
func (v *vectors) forget() { v.index = nil }

// apply follows a commit. The caller holds mu.
func (v *vectors) apply(dimension int, changes []vectorChange) {
	v.dimension = dimension
	if v.index == nil {
		return
	}
	for _, c := range changes {
		if c.vector == nil {
			v.index.Delete(c.pk)
		} else {
			v.index.Put(c.pk, c.tag, c.vector)
		}
	}
	if v.index.Len()*v.dimension > maxIndexed {
		v.forget()
	}
}

// Dimension is [store.Store.Dimension].
func (db *DB) Dimension(context.Context) (int, error) { return db.vectors.size(), nil }

// Nearest is [store.Store.Nearest].
func (db *DB) Nearest(ctx context.Context, namespace string, q store.VectorQuery) ([]string, error) {
	ns, done, err := db.reading(namespace)
	if done == nil {
		return nil, err
	}
	defer done()
	kinds := db.names.known(q.Types)
	keep := func(t exact.Tag) bool {
		return t.Namespace == ns && (kinds == nil || slices.Contains(kinds, t.Kind))
	}
	keys, err := db.candidates(ctx, q, keep)
	if err != nil {
		return nil, err
	}
	query, args := "SELECT n.id, n.namespace, n.kind, e.vector FROM node n CROSS JOIN embedding e ON e.pk = n.pk", []any{}
	if keys != nil {
		query, args = "SELECT n.id, n.namespace, n.kind, e.vector FROM json_each(?) j CROSS JOIN node n ON n.pk = j.value CROSS JOIN embedding e ON e.pk = n.pk", []any{list(keys)}
	}
	type hit struct {
		id    string
		score float64
	}
	var hits []hit
	best := func() {
		slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.id, b.id)) })
		hits = hits[:min(len(hits), q.Limit)]
	}
	var h hit
	var tag exact.Tag
	var blob sql.RawBytes
	err = scan(ctx, db.read, query, args, func() error {
		vector := fromBlob(blob)
		if len(vector) != len(q.Embedding) || !keep(tag) {
			return nil
		}
		h.score = store.Cosine(q.Embedding, vector)
		if hits = append(hits, h); len(hits) >= 4*q.Limit+1000 {
			best()
		}
		return nil
	}, &h.id, &tag.Namespace, &tag.Kind, &blob)
	best()
	ids := make([]string, len(hits))
	for i, h := range hits {
		ids[i] = h.id
	}
	return ids, err
}

// candidates returns the nodes to compare, nil for all.
func (db *DB) candidates(ctx context.Context, q store.VectorQuery, keep func(exact.Tag) bool) ([]int64, error) {
	v := &db.vectors
	v.mu.RLock()
	index, dimension := v.index, v.dimension
	if index != nil || dimension != len(q.Embedding) {
		defer v.mu.RUnlock()
		if dimension != len(q.Embedding) {
			return []int64{}, nil
		}
		return append([]int64{}, index.Candidates(q.Embedding, q.Limit, keep)...), nil
	}
	v.mu.RUnlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.index == nil {
		var err error
		if v.index, err = db.loadVectors(ctx, dimension); v.index == nil {
			return nil, err
		}
	}
	return append([]int64{}, v.index.Candidates(q.Embedding, q.Limit, keep)...), nil
}

// loadVectors returns nil if there are too many.
func (db *DB) loadVectors(ctx context.Context, dimension int) (*exact.Index, error) {
	var n int
	if err := scan(ctx, db.read, "SELECT count(*) FROM embedding", nil, func() error { return nil }, &n); err != nil || n*dimension > maxIndexed {
		return nil, err
	}
	index := exact.New(dimension)
	var pk int64
	var tag exact.Tag
	var blob sql.RawBytes
	err := scan(ctx, db.read, "SELECT e.pk, n.namespace, n.kind, e.vector FROM embedding e CROSS JOIN node n ON n.pk = e.pk", nil,
		func() error { index.Put(pk, tag, fromBlob(blob)); return nil }, &pk, &tag.Namespace, &tag.Kind, &blob)
	if err != nil {
		return nil, err
	}
	return index, nil
}
