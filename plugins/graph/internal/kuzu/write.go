//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"context"
	"math"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/exact"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

const (
	// maxText is the maximum size in bytes of a text that the engine stores.
	maxText = 256 << 10
	// joinFrom is the number of rows from which one join is faster than a lookup
	// per row.
	joinFrom = 32
	// maxRows is the maximum number of rows of a statement.
	maxRows = 5000
)

// Apply implements [store.Store].
func (db *DB) Apply(ctx context.Context, namespace string, b store.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	dimension, err := store.DimensionAfter(db.vectors.Dimension(), b.Entities)
	if err != nil {
		return err
	}
	if err := checkSizes(b); err != nil {
		return err
	}
	db.writing.Lock()
	defer db.writing.Unlock()
	done, err := db.use(ctx)
	if err != nil {
		return err
	}
	if err := db.unseal(); err != nil {
		done()
		return err
	}
	w := &writing{ctx: ctx, c: db.writer, namespace: namespace, dimension: dimension, hadDimension: db.vectors.Dimension()}
	transaction := w.c.transaction
	if w.isOneStatement(b) {
		transaction = func(f func() error) error { return f() } // a single statement is a transaction
	}
	err = db.vectors.Commit(dimension, exact.Changes(namespace, b), func() error { return transaction(func() error { return w.apply(b) }) })
	if err != nil {
		if fresh, failed := db.engine.connect(); failed == nil {
			db.writer.close()
			db.writer = fresh
		}
	}
	grown := err == nil && db.grown()
	done()
	if err != nil {
		return db.abandon(err)
	}
	if grown {
		_ = db.checkpoint() // committed changes are durable
	}
	return nil
}

// checkSizes refuses texts that the engine cannot store.
func checkSizes(b store.Batch) error {
	check := func(id, what string, n int) error {
		if n > maxText {
			return tea.Errorf(tea.ValidationError, "the %s of %q is too large for the backend cypher: %d bytes (limit %d); store a part of it", what, id, n, maxText)
		}
		return nil
	}
	for i := range b.Entities {
		e := &b.Entities[i]
		for what, n := range map[string]int{"text": len(e.Text), "properties": len(e.Properties), "source": len(e.Source), "history": len(e.Facts), "embedding": 4 * len(e.Embedding)} {
			if err := check(e.ID, what, n); err != nil {
				return err
			}
		}
	}
	for i := range b.Relations {
		r := &b.Relations[i]
		if err := check(r.From, "relations' properties", max(len(r.Properties), len(r.Source))); err != nil {
			return err
		}
	}
	return nil
}

// writing is a transaction.
type writing struct {
	ctx                     context.Context
	c                       *connection
	namespace               string
	dimension, hadDimension int
	// nodes are the existing nodes of the batch.
	nodes map[string]bool
}

// isOneStatement reports whether a single statement stores the batch, because it is one
// entity.
func (w *writing) isOneStatement(b store.Batch) bool {
	return len(b.Entities) == 1 && len(b.Relations)+len(b.DeleteEntities)+len(b.DeleteRelations) == 0 && w.dimension == w.hadDimension
}

func key(namespace, id string) string { return namespace + "\x1f" + id }

func keysOf(namespace string, ids []string) []string {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = key(namespace, id)
	}
	return keys
}

func (w *writing) exec(statement string, p params) error {
	_, err := w.c.query(w.ctx, statement, p)
	return err
}

// each executes the statement one for each row, or all for many rows.
func (w *writing) each(one, all string, rows []params) error {
	if len(rows) < joinFrom {
		for _, row := range rows {
			if err := w.exec(one, row); err != nil {
				return err
			}
		}
		return nil
	}
	for part := range slices.Chunk(rows, maxRows) {
		if err := w.exec(all, columns(part)); err != nil {
			return err
		}
	}
	return nil
}

// columns returns the values of rows by column, and the number n of rows.
func columns(rows []params) params {
	all := params{"n": int64(len(rows))}
	for name := range rows[0] {
		list := make([]any, len(rows))
		for i, row := range rows {
			list[i] = row[name]
		}
		all[name] = list
	}
	return all
}

func (w *writing) apply(b store.Batch) error {
	if err := w.find(b); err != nil {
		return err
	}
	for _, k := range b.DeleteRelations {
		if w.nodes[k.From] && w.nodes[k.To] {
			if err := w.exec(deleteRelation, w.keyParams(k)); err != nil {
				return err
			}
		}
	}
	if err := w.deleteEntities(b); err != nil {
		return err
	}
	if err := w.putEntities(b); err != nil {
		return err
	}
	if err := w.putRelations(b); err != nil {
		return err
	}
	if w.dimension != w.hadDimension {
		return w.exec(setDimension, params{"value": int64(w.dimension)})
	}
	return nil
}

// find looks up all nodes of a batch.
func (w *writing) find(b store.Batch) error {
	w.nodes = map[string]bool{}
	ids := slices.Clone(b.DeleteEntities)
	for i := range b.Entities {
		ids = append(ids, b.Entities[i].ID)
	}
	for i := range b.Relations {
		ids = append(ids, b.Relations[i].From, b.Relations[i].To)
	}
	for _, k := range b.DeleteRelations {
		ids = append(ids, k.From, k.To)
	}
	slices.Sort(ids)
	r, err := w.c.entities(w.ctx, keysOf(w.namespace, slices.Compact(ids)), []string{"id"})
	if err != nil {
		return err
	}
	for r.next() {
		w.nodes[r.text()] = true
	}
	return nil
}

// deleteEntities keeps the nodes without a type, like the ends of relations: if a key is
// deleted and stored again, the engine finds it twice when it replays the log after a
// crash, and fails.
func (w *writing) deleteEntities(b store.Batch) error {
	var rows []params
	for _, id := range b.DeleteEntities {
		if w.nodes[id] {
			rows = append(rows, w.updateRow(&store.Entity{ID: id}))
		}
	}
	return w.each(updateEntity, updateEntities, rows)
}

// updateRow returns the columns of an existing entity.
func (w *writing) updateRow(e *store.Entity) params {
	row := w.entityRow(e)
	delete(row, "namespace")
	delete(row, "id")
	return row
}

// entityRow returns the columns of an entity. An entity without a type is only an end.
func (w *writing) entityRow(e *store.Entity) params {
	words := ""
	if len(e.Words) > 0 {
		words = " " + strings.Join(e.Words, " ") + " "
	}
	return params{
		"key": key(w.namespace, e.ID), "namespace": w.namespace, "id": e.ID, "type": e.Type, "created_at": e.CreatedAt, "updated_at": e.UpdatedAt,
		"source": e.Source, "properties": string(e.Properties), "text": e.Text, "facts": e.Facts, "words": words, "embedding": exact.ToBlob(e.Embedding),
	}
}

// putEntities stores the entities, and nodes for the ends of relations.
func (w *writing) putEntities(b store.Batch) error {
	var created, updated []params
	for i := range b.Entities {
		e := &b.Entities[i]
		if w.nodes[e.ID] {
			updated = append(updated, w.updateRow(e))
		} else {
			w.nodes[e.ID] = true
			created = append(created, w.entityRow(e))
		}
	}
	for i := range b.Relations {
		for _, id := range []string{b.Relations[i].From, b.Relations[i].To} {
			if !w.nodes[id] {
				w.nodes[id] = true
				created = append(created, w.entityRow(&store.Entity{ID: id}))
			}
		}
	}
	if err := w.each(updateEntity, updateEntities, updated); err != nil {
		return err
	}
	for part := range slices.Chunk(created, maxRows) {
		if err := w.exec(createEntities, columns(part)); err != nil {
			return err
		}
	}
	return nil
}

func (w *writing) keyParams(k store.RelationKey) params {
	return params{"from_key": key(w.namespace, k.From), "to_key": key(w.namespace, k.To), "type": k.Type, "valid_from": toColumn(k.ValidFrom)}
}

func (w *writing) putRelations(b store.Batch) error {
	if len(b.Relations) == 0 {
		return nil
	}
	existing, err := w.existing(b.Relations)
	if err != nil {
		return err
	}
	var created, updated []params
	for i := range b.Relations {
		r := &b.Relations[i]
		row := w.keyParams(r.RelationKey)
		row["valid_to"], row["weight"], row["created_at"], row["updated_at"], row["source"], row["properties"] = toColumn(r.ValidTo), r.Weight, r.CreatedAt, r.UpdatedAt, r.Source, string(r.Properties)
		if existing[r.RelationKey] {
			updated = append(updated, row)
			continue
		}
		row["from_id"], row["to_id"] = r.From, r.To
		created = append(created, row)
	}
	if err := w.each(updateRelation, updateRelations, updated); err != nil {
		return err
	}
	return w.each(createRelation, createRelations, created)
}

// existing returns which of the relations are stored.
func (w *writing) existing(relations []store.Relation) (map[store.RelationKey]bool, error) {
	var from []string
	for i := range relations {
		from = append(from, key(w.namespace, relations[i].From))
	}
	slices.Sort(from)
	r, err := w.c.adjacent(w.ctx, slices.Compact(from), leanColumns, store.Adjacency{Ever: true, Max: math.MaxInt32})
	if err != nil {
		return nil, err
	}
	all := make(map[store.RelationKey]bool, r.rows)
	for r.next() {
		all[r.relation(true).RelationKey] = true
	}
	return all, nil
}
