package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"sync"

	"github.com/the-edge-agent/tea/plugins/graph/internal/exact"
	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// queryer is a database or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// reader is a pool of connections that prepare each query once.
type reader struct {
	*sql.DB
	statements sync.Map // few *sql.Stmt, by text
}

// QueryContext is [sql.DB.QueryContext] with a prepared statement.
func (r *reader) QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	statement, ok := r.statements.Load(text)
	if !ok {
		prepared, err := r.PrepareContext(ctx, text)
		if err != nil {
			return nil, err
		}
		if statement, ok = r.statements.LoadOrStore(text, prepared); ok {
			prepared.Close()
		}
	}
	return statement.(*sql.Stmt).QueryContext(ctx, args...)
}

// scan stores the columns of each row in into and then calls row, whose error it
// returns.
func scan(ctx context.Context, db queryer, query string, args []any, row func() error, into ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return fault(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return store.Damaged("%s: %w", databaseFile, err) // a value of an unexpected type
		}
		if err := row(); err != nil {
			return err
		}
	}
	return fault(rows.Err())
}

// list returns a parameter for json_each.
func list[T any](items []T) string {
	if items == nil {
		return "[]"
	}
	text, err := json.Marshal(items)
	if err != nil {
		return "[]" // strings and integers always have a JSON form
	}
	return string(text)
}

// reading begins a call that reads a namespace. done is nil if there is nothing
// to read.
func (db *DB) reading(namespace string) (ns int64, done func(), err error) {
	done, err = db.use()
	if err != nil {
		return 0, nil, err
	}
	ns, ok := db.names.namespace(namespace)
	if !ok {
		done()
		return 0, nil, nil
	}
	return ns, done, nil
}

const entityColumns = "n.id, n.kind, b.created, b.updated, b.source, b.properties, b.text"

// Entities implements [store.Store].
func (db *DB) Entities(ctx context.Context, namespace string, ids []string, o store.Fields) ([]store.Entity, error) {
	ns, done, err := db.reading(namespace)
	if done == nil {
		return nil, err
	}
	defer done()
	found := make([]store.Entity, 0, len(ids))
	query := "SELECT " + entityColumns + optional(o) + " FROM json_each(?) j CROSS JOIN node n ON n.namespace = ? AND n.id = j.value" + bodyJoin + embeddingJoin(o.Embeddings) + " WHERE n.kind IS NOT NULL ORDER BY j.key"
	err = db.entities(ctx, query, []any{list(ids), ns}, o, func(e *store.Entity) error { found = append(found, *e); return nil })
	return found, err
}

const bodyJoin = " CROSS JOIN body b ON b.pk = n.pk"

func optional(o store.Fields) string {
	columns := ""
	if o.Facts {
		columns += ", b.facts"
	}
	if o.Embeddings {
		columns += ", e.vector"
	}
	return columns
}

func embeddingJoin(wanted bool) string {
	if wanted {
		return " LEFT JOIN embedding e ON e.pk = n.pk"
	}
	return ""
}

// entities calls f with a new Entity for each row.
func (db *DB) entities(ctx context.Context, query string, args []any, o store.Fields, f func(*store.Entity) error) error {
	var e store.Entity
	var kind int64
	var vector sql.RawBytes
	into := []any{&e.ID, &kind, &e.CreatedAt, &e.UpdatedAt, &e.Source, &e.Properties, &e.Text}
	if o.Facts {
		into = append(into, &e.Facts)
	}
	if o.Embeddings {
		into = append(into, &vector)
	}
	return scan(ctx, db.read, query, args, func() error {
		row := e
		row.Type = db.names.kind(kind)
		row.Embedding = exact.FromBlob(vector)
		return f(&row)
	}, into...)
}

// EachEntity implements [store.Store].
func (db *DB) EachEntity(ctx context.Context, namespace string, s store.EntityScan, f func(*store.Entity) error) error {
	ns, done, err := db.reading(namespace)
	if done == nil {
		return err
	}
	defer done()
	fields := store.Fields{Embeddings: s.Embeddings, Facts: s.Facts}
	columns, join := entityColumns+optional(fields), bodyJoin
	if s.Keys {
		columns, join = "n.id, n.kind, 0, 0, '', '', ''"+optional(fields), ""
	}
	query := "SELECT " + columns + " FROM node n" + join + embeddingJoin(s.Embeddings) + " WHERE n.namespace = ? AND n.id > ? AND n.kind IS NOT NULL"
	args := []any{ns, s.After}
	if kinds := db.names.known(s.Types); kinds != nil {
		query += " AND n.kind IN (SELECT value FROM json_each(?))"
		args = append(args, list(kinds))
	}
	query += " ORDER BY n.id"
	return db.entities(ctx, query, args, fields, f)
}

// relationFields returns the columns of a relation r with source node s and target
// node t.
func relationFields(lean bool) string {
	if lean {
		return "s.id, r.kind, t.id, r.valid_from, r.valid_to, r.weight"
	}
	return "s.id, r.kind, t.id, r.valid_from, r.valid_to, r.weight, r.created, r.updated, r.source, r.properties"
}

func (db *DB) relations(ctx context.Context, query string, args []any, lean bool, f func(*store.Relation) error) error {
	var r store.Relation
	var kind int64
	into := []any{&r.From, &kind, &r.To, &r.ValidFrom, &r.ValidTo, &r.Weight}
	if !lean {
		into = append(into, &r.CreatedAt, &r.UpdatedAt, &r.Source, &r.Properties)
	}
	return scan(ctx, db.read, query, args, func() error {
		row := r
		row.Type = db.names.kind(kind)
		return f(&row)
	}, into...)
}

// condition returns the part of a WHERE clause that selects relations by type and
// time.
func (db *DB) condition(types []string, at int64, ever bool) (text string, args []any) {
	if kinds := db.names.known(types); kinds != nil {
		text, args = " AND r.kind IN (SELECT value FROM json_each(?))", []any{list(kinds)}
	}
	if !ever {
		text += " AND r.valid_from <= ? AND r.valid_to > ?"
		args = append(args, at, at)
	}
	return text, args
}

// Adjacent implements [store.Store].
func (db *DB) Adjacent(ctx context.Context, namespace string, a store.Adjacency) ([]store.Relation, error) {
	ns, done, err := db.reading(namespace)
	if done == nil {
		return nil, err
	}
	defer done()
	var found []store.Relation
	errEnough := errors.New("enough relations")
	skip := map[string]bool{}
	collect := func(r *store.Relation) error {
		if skip[r.From] {
			return nil
		}
		if found = append(found, *r); len(found) > a.Max {
			return errEnough
		}
		return nil
	}
	condition, args := db.condition(a.Types, a.At, a.Ever)
	args = append([]any{list(a.IDs), ns}, args...)
	if a.Direction != store.In {
		query := "SELECT " + relationFields(a.Lean) + " FROM json_each(?) j CROSS JOIN node s ON s.namespace = ? AND s.id = j.value CROSS JOIN relation r ON r.source_pk = s.pk CROSS JOIN node t ON t.pk = r.target_pk WHERE true" + condition
		err = db.relations(ctx, query, args, a.Lean, collect)
	}
	if err == nil && a.Direction != store.Out {
		if a.Direction == store.Both {
			// Relations between two of the entities were found from their source.
			for _, id := range a.IDs {
				skip[id] = true
			}
		}
		query := "SELECT " + relationFields(a.Lean) + " FROM json_each(?) j CROSS JOIN node t ON t.namespace = ? AND t.id = j.value CROSS JOIN relation r ON r.target_pk = t.pk CROSS JOIN node s ON s.pk = r.source_pk WHERE true" + condition
		err = db.relations(ctx, query, args, a.Lean, collect)
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return found, err
}

// Between implements [store.Store].
func (db *DB) Between(ctx context.Context, namespace string, keys []store.RelationKey) ([]store.Relation, error) {
	ns, done, err := db.reading(namespace)
	if done == nil {
		return nil, err
	}
	defer done()
	type triple struct {
		From string `json:"f"`
		Kind int64  `json:"k"`
		To   string `json:"t"`
	}
	seen := make(map[triple]bool, len(keys))
	triples := make([]triple, 0, len(keys))
	for _, k := range keys {
		for _, kind := range db.names.known([]string{k.Type}) {
			if t := (triple{From: k.From, Kind: kind, To: k.To}); !seen[t] {
				seen[t] = true
				triples = append(triples, t)
			}
		}
	}
	var found []store.Relation
	query := "SELECT " + relationFields(false) + ` FROM json_each(?) j
		CROSS JOIN node s ON s.namespace = ? AND s.id = j.value ->> 'f' CROSS JOIN node t ON t.namespace = ? AND t.id = j.value ->> 't'
		CROSS JOIN relation r ON r.source_pk = s.pk AND r.kind = j.value ->> 'k' AND r.target_pk = t.pk`
	err = db.relations(ctx, query, []any{list(triples), ns, ns}, false, func(r *store.Relation) error { found = append(found, *r); return nil })
	return found, err
}

// EachRelation implements [store.Store].
func (db *DB) EachRelation(ctx context.Context, namespace string, s store.RelationScan, f func(*store.Relation) error) error {
	ns, done, err := db.reading(namespace)
	if done == nil {
		return err
	}
	defer done()
	condition, args := db.condition(s.Types, s.At, s.Ever)
	query := "SELECT " + relationFields(s.Lean) + " FROM node s CROSS JOIN relation r ON r.source_pk = s.pk JOIN node t ON t.pk = r.target_pk JOIN kind k ON k.pk = r.kind WHERE s.namespace = ?" + condition + " ORDER BY s.id, k.name, t.id, r.valid_from"
	return db.relations(ctx, query, append([]any{ns}, args...), s.Lean, f)
}

// Stats implements [store.Store].
func (db *DB) Stats(ctx context.Context, namespace string) (store.Stats, error) {
	s := store.Stats{EntityTypes: map[string]int64{}, RelationTypes: map[string]int64{}, Namespaces: []string{}}
	done, err := db.use()
	if err != nil {
		return s, err
	}
	defer done()
	s.Dimension = db.vectors.Dimension()
	var name string
	err = scan(ctx, db.read, `SELECT name FROM namespace WHERE EXISTS (SELECT 1 FROM node n WHERE n.namespace = namespace.pk AND n.kind IS NOT NULL)
		OR EXISTS (SELECT 1 FROM node n CROSS JOIN relation r ON r.source_pk = n.pk WHERE n.namespace = namespace.pk) ORDER BY name`, nil,
		func() error { s.Namespaces = append(s.Namespaces, name); return nil }, &name)
	if err != nil {
		return s, err
	}
	ns, _ := db.names.namespace(namespace)
	var kind, n int64
	err = scan(ctx, db.read, "SELECT kind, count(*) FROM node WHERE namespace = ? AND kind IS NOT NULL GROUP BY kind", []any{ns},
		func() error { s.EntityTypes[db.names.kind(kind)] = n; s.Entities += n; return nil }, &kind, &n)
	if err == nil {
		err = scan(ctx, db.read, "SELECT r.kind, count(*) FROM node n CROSS JOIN relation r ON r.source_pk = n.pk WHERE n.namespace = ? GROUP BY r.kind", []any{ns},
			func() error { s.RelationTypes[db.names.kind(kind)] = n; s.Relations += n; return nil }, &kind, &n)
	}
	if err == nil {
		err = scan(ctx, db.read, "SELECT count(*) FROM embedding e CROSS JOIN node n ON n.pk = e.pk WHERE n.namespace = ?", []any{ns},
			func() error { s.Embeddings = n; return nil }, &n)
	}
	return s, err
}
