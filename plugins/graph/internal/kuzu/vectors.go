//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"context"
	"slices"

	"github.com/the-edge-agent/tea/plugins/graph/internal/exact"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// maxIndexed is the maximum size of an index of the embeddings in memory.
const maxIndexed = 32 << 20

// Dimension implements [store.Store].
func (db *DB) Dimension(context.Context) (int, error) { return db.vectors.Dimension(), nil }

// Nearest implements [store.Store].
func (db *DB) Nearest(ctx context.Context, namespace string, q store.VectorQuery) ([]string, error) {
	best := exact.Best{Query: q}
	consider := func(_, id, kind string, vector []float32) {
		if len(q.Types) == 0 || slices.Contains(q.Types, kind) {
			best.Add(id, vector)
		}
	}
	err := db.read(ctx, func(c *connection) error {
		names, indexed, err := db.vectors.Candidates(q, exact.In(namespace, q), func(room int, put func(exact.Name, exact.Type, []float32)) (bool, error) {
			return c.loadVectors(ctx, room, put)
		})
		switch {
		case err != nil:
			return err
		case !indexed:
			return c.eachVector(ctx, params{"namespace": namespace}, " AND e.namespace = $namespace", consider)
		}
		keys := make([]string, len(names))
		for i, n := range names {
			keys[i] = key(n.Namespace, n.ID)
		}
		r, err := c.entities(ctx, keys, []string{"id", "type", "embedding"})
		if err != nil {
			return err
		}
		for r.next() {
			consider("", r.text(), r.text(), exact.FromBlob(r.blob()))
		}
		return nil
	})
	return best.IDs(), err
}

// loadVectors calls put with all embeddings, or returns false if there are too
// many.
func (c *connection) loadVectors(ctx context.Context, room int, put func(exact.Name, exact.Type, []float32)) (bool, error) {
	r, err := c.query(ctx, "MATCH (e:Entity) WHERE octet_length(e.embedding) > 0 RETURN count(*)", nil)
	if err != nil || r.next() && r.integer() > int64(room) {
		return false, err
	}
	return true, c.eachVector(ctx, nil, "", func(namespace, id, kind string, vector []float32) {
		name, tag := exact.Named(namespace, id, kind)
		put(name, tag, vector)
	})
}

// eachVector calls f with all embeddings.
func (c *connection) eachVector(ctx context.Context, p params, where string, f func(namespace, id, kind string, vector []float32)) error {
	r, err := c.query(ctx, "MATCH (e:Entity) WHERE octet_length(e.embedding) > 0"+where+" RETURN e.namespace, e.id, e.type, e.embedding", p)
	if err != nil {
		return err
	}
	for r.next() {
		f(r.text(), r.text(), r.text(), exact.FromBlob(r.blob()))
	}
	return nil
}
