package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"github.com/the-edge-agent/tea/plugins/graph/internal/exact"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// maxIndexed is the maximum size of an index of the embeddings in memory.
const maxIndexed = 64 << 20

// tag holds the numbers of an entity's namespace and type.
type tag struct{ namespace, kind int64 }

// Dimension implements [store.Store].
func (db *DB) Dimension(context.Context) (int, error) { return db.vectors.Dimension(), nil }

// Nearest implements [store.Store].
func (db *DB) Nearest(ctx context.Context, namespace string, q store.VectorQuery) ([]string, error) {
	ns, done, err := db.reading(namespace)
	if done == nil {
		return nil, err
	}
	defer done()
	kinds := db.names.known(q.Types)
	keep := func(t tag) bool {
		return t.namespace == ns && (kinds == nil || slices.Contains(kinds, t.kind))
	}
	keys, indexed, err := db.vectors.Candidates(q, keep, func(room int, put func(int64, tag, []float32)) (bool, error) { return db.loadVectors(ctx, room, put) })
	if err != nil {
		return nil, err
	}
	query, args := "SELECT n.id, n.namespace, n.kind, e.vector FROM node n CROSS JOIN embedding e ON e.pk = n.pk", []any{}
	if indexed {
		query, args = "SELECT n.id, n.namespace, n.kind, e.vector FROM json_each(?) j CROSS JOIN node n ON n.pk = j.value CROSS JOIN embedding e ON e.pk = n.pk", []any{list(keys)}
	}
	best := exact.Best{Query: q}
	var id string
	var t tag
	var blob sql.RawBytes
	err = scan(ctx, db.read, query, args, func() error {
		if keep(t) {
			best.Add(id, exact.FromBlob(blob))
		}
		return nil
	}, &id, &t.namespace, &t.kind, &blob)
	return best.IDs(), err
}

// loadVectors calls put with all embeddings, or returns false if there are too
// many.
func (db *DB) loadVectors(ctx context.Context, room int, put func(int64, tag, []float32)) (bool, error) {
	var n int
	if err := scan(ctx, db.read, "SELECT count(*) FROM embedding", nil, func() error { return nil }, &n); err != nil || n > room {
		return false, err
	}
	var pk int64
	var t tag
	var blob sql.RawBytes
	err := scan(ctx, db.read, "SELECT e.pk, n.namespace, n.kind, e.vector FROM embedding e CROSS JOIN node n ON n.pk = e.pk", nil,
		func() error { put(pk, t, exact.FromBlob(blob)); return nil }, &pk, &t.namespace, &t.kind, &blob)
	return true, err
}
