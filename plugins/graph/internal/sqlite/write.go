package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/plugins/graph/internal/exact"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// Apply implements [store.Store].
func (db *DB) Apply(ctx context.Context, namespace string, b store.Batch) error {
	done, err := db.use()
	if err != nil {
		return err
	}
	defer done()
	types := map[string]int64{}
	for i := range b.Entities {
		types[b.Entities[i].Type] = 0
	}
	for i := range b.Relations {
		types[b.Relations[i].Type] = 0
	}
	for _, k := range b.DeleteRelations {
		types[k.Type] = 0
	}
	dimension, err := store.DimensionAfter(db.vectors.Dimension(), b.Entities)
	if err != nil {
		return err
	}
	ns, err := db.names.intern(ctx, db.write, namespace, types)
	if err != nil {
		return fault(err)
	}
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return fault(err)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	w := &writing{ctx: ctx, tx: tx, ns: ns, kinds: types, next: db.nextNode, kept: db.kept, statements: map[string]*sql.Stmt{}}
	if err := w.apply(b); err != nil {
		return fault(err)
	}
	if dimension != db.vectors.Dimension() {
		if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO meta VALUES ('dimension', ?)", dimension); err != nil {
			return fault(err)
		}
	}
	if err := db.vectors.Commit(dimension, slices.Values(w.vectors), tx.Commit); err != nil {
		return fault(err)
	}
	db.nextNode = w.next
	for query := range w.statements {
		if db.kept[query] == nil {
			// Without it the next transaction prepares the statement again.
			db.kept[query], _ = db.write.PrepareContext(ctx, query)
		}
	}
	return nil
}

// writing is a transaction.
type writing struct {
	ctx   context.Context
	tx    *sql.Tx
	ns    int64
	kinds map[string]int64
	nodes map[string]node
	next  int64
	// vectors are the embeddings that changed.
	vectors []exact.Change[int64, tag]
	// kept are statements from earlier transactions, and statements those of this
	// transaction, by text.
	kept, statements map[string]*sql.Stmt
}

// node is the stored data for an ID.
type node struct {
	pk int64
	// entity reports whether it is an entity, not only the end of relations.
	entity, embedded bool
}

// statement returns the prepared statement for a text. The transaction closes it.
func (w *writing) statement(query string) (*sql.Stmt, error) {
	if s := w.statements[query]; s != nil {
		return s, nil
	}
	var s *sql.Stmt
	if kept := w.kept[query]; kept != nil {
		s = w.tx.StmtContext(w.ctx, kept)
	} else {
		var err error
		if s, err = w.tx.PrepareContext(w.ctx, query); err != nil {
			return nil, err
		}
	}
	w.statements[query] = s
	return s, nil
}

func (w *writing) exec(query string, args ...any) error {
	s, err := w.statement(query)
	if err != nil {
		return err
	}
	// Statements are short, and a context that can be canceled costs a goroutine.
	_, err = s.ExecContext(context.WithoutCancel(w.ctx), args...)
	return errors.Join(err, w.ctx.Err())
}

// QueryContext is [sql.Tx.QueryContext] with a prepared statement.
func (w *writing) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := w.statement(query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

func (w *writing) apply(b store.Batch) error {
	if err := w.find(b); err != nil {
		return err
	}
	for _, id := range b.DeleteEntities {
		if err := w.deleteEntity(id); err != nil {
			return err
		}
	}
	for _, k := range b.DeleteRelations {
		source, target := w.nodes[k.From], w.nodes[k.To]
		if err := w.exec("DELETE FROM relation WHERE source_pk = ? AND kind = ? AND target_pk = ? AND valid_from = ?", source.pk, w.kinds[k.Type], target.pk, k.ValidFrom); err != nil {
			return err
		}
	}
	for i := range b.Entities {
		if err := w.putEntity(&b.Entities[i]); err != nil {
			return err
		}
	}
	for i := range b.Relations {
		if err := w.putRelation(&b.Relations[i]); err != nil {
			return err
		}
	}
	return nil
}

// find looks up all nodes of a batch.
func (w *writing) find(b store.Batch) error {
	ids := make([]string, 0, len(b.Entities)+2*len(b.Relations)+len(b.DeleteEntities)+2*len(b.DeleteRelations))
	for i := range b.Entities {
		ids = append(ids, b.Entities[i].ID)
	}
	ids = append(ids, b.DeleteEntities...)
	for i := range b.Relations {
		ids = append(ids, b.Relations[i].From, b.Relations[i].To)
	}
	for _, k := range b.DeleteRelations {
		ids = append(ids, k.From, k.To)
	}
	w.nodes = make(map[string]node, len(ids))
	var id string
	var n node
	return scan(w.ctx, w, `SELECT n.id, n.pk, n.kind IS NOT NULL, e.pk IS NOT NULL FROM json_each(?) j
		CROSS JOIN node n ON n.namespace = ? AND n.id = j.value LEFT JOIN embedding e ON e.pk = n.pk`,
		[]any{list(ids), w.ns}, func() error { w.nodes[id] = n; return nil }, &id, &n.pk, &n.entity, &n.embedded)
}

func (w *writing) deleteEntity(id string) error {
	n := w.nodes[id]
	if !n.entity {
		return nil
	}
	// The node stays, because relations may end there.
	err := w.exec("UPDATE node SET kind = NULL WHERE pk = ?", n.pk)
	if err == nil {
		err = w.exec("DELETE FROM body WHERE pk = ?", n.pk)
	}
	if err == nil {
		err = w.exec("DELETE FROM word WHERE rowid = ?", n.pk)
	}
	if err == nil && n.embedded {
		err = w.exec("DELETE FROM embedding WHERE pk = ?", n.pk)
		w.vectors = append(w.vectors, exact.Change[int64, tag]{Key: n.pk})
	}
	w.nodes[id] = node{pk: n.pk}
	return err
}

func (w *writing) putEntity(e *store.Entity) error {
	n, known := w.nodes[e.ID]
	kind := w.kinds[e.Type]
	var err error
	if known {
		err = w.exec("UPDATE node SET kind = ? WHERE pk = ?", kind, n.pk)
	} else {
		n.pk = w.next
		w.next++
		err = w.exec("INSERT INTO node (pk, namespace, id, kind) VALUES (?, ?, ?, ?)", n.pk, w.ns, e.ID, kind)
	}
	if err == nil {
		err = w.exec("INSERT OR REPLACE INTO body VALUES (?, ?, ?, ?, ?, ?, ?)", n.pk, e.CreatedAt, e.UpdatedAt, e.Source, string(e.Properties), e.Text, e.Facts)
	}
	if err == nil && n.entity {
		err = w.exec("DELETE FROM word WHERE rowid = ?", n.pk)
	}
	if err == nil {
		err = w.exec("INSERT INTO word (rowid, words) VALUES (?, ?)", n.pk, namespaceWord(w.ns)+" "+strings.Join(e.Words, " "))
	}
	switch {
	case err != nil:
		return err
	case e.Embedding != nil:
		err = w.exec("INSERT OR REPLACE INTO embedding VALUES (?, ?)", n.pk, exact.ToBlob(e.Embedding))
		w.vectors = append(w.vectors, exact.Change[int64, tag]{Key: n.pk, Tag: tag{w.ns, kind}, Vector: e.Embedding})
	case n.embedded:
		err = w.exec("DELETE FROM embedding WHERE pk = ?", n.pk)
		w.vectors = append(w.vectors, exact.Change[int64, tag]{Key: n.pk})
	}
	w.nodes[e.ID] = node{pk: n.pk, entity: true, embedded: e.Embedding != nil}
	return err
}

// end returns the node at an end of a relation.
func (w *writing) end(id string) (int64, error) {
	if n, ok := w.nodes[id]; ok {
		return n.pk, nil
	}
	n := node{pk: w.next}
	w.next++
	w.nodes[id] = n
	return n.pk, w.exec("INSERT INTO node (pk, namespace, id) VALUES (?, ?, ?)", n.pk, w.ns, id)
}

func (w *writing) putRelation(r *store.Relation) error {
	source, err := w.end(r.From)
	if err != nil {
		return err
	}
	target, err := w.end(r.To)
	if err != nil {
		return err
	}
	return w.exec("INSERT OR REPLACE INTO relation (source_pk, kind, target_pk, valid_from, valid_to, weight, created, updated, source, properties) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		source, w.kinds[r.Type], target, r.ValidFrom, r.ValidTo, r.Weight, r.CreatedAt, r.UpdatedAt, r.Source, string(r.Properties))
}

// namespaceWord is a word that restricts a search to a namespace. Words of texts begin
// with a letter or a digit.
func namespaceWord(ns int64) string {
	digits := "0123456789abcdef"
	word := []byte("\uE000")
	for ; ns > 0; ns >>= 4 {
		word = append(word, digits[ns&15])
	}
	return string(word)
}
