//go:build cozo && cgo

package cozo

import (
	"context"
	"slices"

	"github.com/the-edge-agent/tea/plugins/graph/internal/exact"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// maxIndexed is the maximum size of an index of the embeddings in memory.
const maxIndexed = 64 << 20

// Nearest implements [store.Store].
func (db *DB) Nearest(ctx context.Context, namespace string, q store.VectorQuery) ([]string, error) {
	done, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	names, indexed, err := db.vectors.Candidates(q, exact.In(namespace, q), func(room int, put func(exact.Name, exact.Type, []float32)) (bool, error) {
		return db.loadVectors(ctx, room, put)
	})
	if err != nil {
		return nil, err
	}
	best := exact.Best{Query: q}
	consider := func(id, kind string, vector []float32) {
		if len(q.Types) == 0 || slices.Contains(q.Types, kind) {
			best.Add(id, vector)
		}
	}
	if !indexed {
		err = db.eachEmbedding(ctx, func(in, kind, id string, vector []float32) {
			if in == namespace {
				consider(id, kind, vector)
			}
		})
		return best.IDs(), err
	}
	for chunk := range slices.Chunk(names, page) {
		ids := make([]string, len(chunk))
		for i, n := range chunk {
			ids[i] = n.ID
		}
		p := newParams(namespace)
		p.add("ids").strings(ids)
		err := db.engine.run("?[id, type, embedding] := id in $ids, *entity{namespace: $namespace, id, type, embedding}", p.done(), func(r *reader) error {
			for range r.open().rows {
				consider(r.string(), r.string(), r.vector())
			}
			return nil
		})
		if err != nil {
			return nil, fault(err)
		}
	}
	return best.IDs(), nil
}

// loadVectors calls put with all embeddings, or returns false if there are too
// many.
func (db *DB) loadVectors(ctx context.Context, room int, put func(exact.Name, exact.Type, []float32)) (bool, error) {
	n := 0
	err := db.eachEmbedding(ctx, func(namespace, kind, id string, vector []float32) {
		if n++; n <= room {
			name, tag := exact.Named(namespace, id, kind)
			put(name, tag, vector)
		}
	})
	return n <= room, err
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

// Dimension implements [store.Store].
func (db *DB) Dimension(ctx context.Context) (int, error) {
	done, err := db.use(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	return db.vectors.Dimension(), nil
}
