//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"context"
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

const (
	// maxQuery is the maximum length of a query in bytes, and maxDepth the maximum
	// nesting of its brackets: the parser recurses.
	maxQuery = 32 << 10
	maxDepth = 100
	// maxResult is the maximum size of an encoded result.
	maxResult = 32 << 20
)

// Language implements [store.Querier].
func (*DB) Language() string { return "cypher" }

// Query implements [store.Querier].
func (db *DB) Query(ctx context.Context, q store.Query) (*store.Table, error) {
	if err := checkQuery(q.Text); err != nil {
		return nil, err
	}
	encoded, err := params(q.Params).encode()
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "params: %w", err)
	}
	if !q.ReadOnly {
		return db.queryWriting(ctx, q, encoded)
	}
	var t *store.Table
	err = db.read(ctx, func(*connection) error {
		t, err = db.querySeparately(ctx, q, encoded)
		return err
	})
	return t, err
}

// querySeparately runs a query on a separate connection, which discards the plans of
// its statements when it is closed. The caller has called use.
func (db *DB) querySeparately(ctx context.Context, q store.Query, encoded []byte) (*store.Table, error) {
	c, err := db.engine.connect()
	if err != nil {
		return nil, err
	}
	defer c.close()
	return c.table(ctx, q, encoded)
}

// queryWriting runs a query that writes. It applies the log before and after it: the
// engine cannot replay a log in which a deleted key is stored again.
func (db *DB) queryWriting(ctx context.Context, q store.Query, encoded []byte) (*store.Table, error) {
	db.writing.Lock()
	defer db.writing.Unlock()
	done, err := db.use(ctx)
	if err != nil {
		return nil, err
	}
	err = db.unseal()
	done()
	if err == nil {
		err = db.checkpoint()
	}
	if err != nil {
		return nil, err
	}
	if done, err = db.use(ctx); err != nil {
		return nil, err
	}
	t, err := db.querySeparately(ctx, q, encoded)
	done()
	if err != nil {
		return nil, db.abandon(err)
	}
	_ = db.checkpoint() // committed changes are durable
	return t, nil
}

// checkQuery bounds the work of the parser.
func checkQuery(text string) error {
	if len(text) > maxQuery {
		return tea.Errorf(tea.ValidationError, "the query is too long: %d bytes (limit %d); pass data as params", len(text), maxQuery)
	}
	if strings.TrimSpace(text) == "" {
		return tea.Errorf(tea.ValidationError, "the query is empty")
	}
	if strings.Contains(text, "\x00") {
		return tea.Errorf(tea.ValidationError, "the query contains a null character")
	}
	depth := 0
	for _, r := range text {
		switch r {
		case '(', '[', '{':
			if depth++; depth > maxDepth {
				return tea.Errorf(tea.ValidationError, "the query has more than %d nested brackets", maxDepth)
			}
		case ')', ']', '}':
			depth--
		}
	}
	return nil
}

func (c *connection) table(ctx context.Context, q store.Query, encoded []byte) (*store.Table, error) {
	begin, a := "BEGIN TRANSACTION READ ONLY", accessRead
	if !q.ReadOnly {
		begin, a = "BEGIN TRANSACTION", accessWrite
	}
	if err := c.execute(begin); err != nil {
		return nil, err
	}
	committed := false
	defer func() {
		if !committed {
			_ = c.execute("ROLLBACK") // after some errors the engine has already done so
		}
	}()
	statement, err := c.prepare(ctx, q.Text, a, encoded)
	if err != nil {
		return nil, err
	}
	defer c.library.finalize(statement)
	r, err := c.run(ctx, statement, encoded, limits{rows: int64(q.MaxRows), bytes: maxResult})
	if err != nil {
		return nil, err
	}
	if r.flags&cutByBytes != 0 {
		return nil, tea.Errorf(tea.ResourceExhausted, "the result of the query has more than %d MiB; return less", maxResult>>20)
	}
	t := &store.Table{Columns: r.columns, Rows: [][]any{}, Truncated: r.flags&cutByRows != 0}
	for r.next() {
		row := make([]any, len(r.columns))
		for i := range row {
			if row[i], err = present(r.value()); err != nil {
				return nil, err
			}
		}
		t.Rows = append(t.Rows, row)
	}
	if !q.ReadOnly {
		if err := c.execute("COMMIT"); err != nil {
			return nil, err
		}
		committed = true
	}
	return t, nil
}

// present replaces the engine's nodes, relationships and paths with those of a table.
func present(v any) (any, error) {
	switch v := v.(type) {
	case *object:
		return v.present()
	case *path:
		if v.missing() {
			return nil, nil
		}
		nodes, err := present(v.nodes)
		if err != nil {
			return nil, err
		}
		relations, err := present(v.relations)
		if err != nil {
			return nil, err
		}
		return store.Path(nodes.([]any), relations.([]any)), nil
	case []any:
		for i := range v {
			var err error
			if v[i], err = present(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for name := range v {
			var err error
			if v[name], err = present(v[name]); err != nil {
				return nil, err
			}
		}
	case []byte:
		return base64.StdEncoding.EncodeToString(v), nil
	case float64:
		return store.Number(v)
	}
	return v, nil
}

// missing reports whether a path of OPTIONAL MATCH was not found: the engine returns its
// beginning, and null for the rest.
func (p *path) missing() bool {
	isNull := func(part any) bool { o, ok := part.(*object); return !ok || o.id == "" }
	return slices.ContainsFunc(p.nodes, isNull) || slices.ContainsFunc(p.relations, isNull)
}

// present returns an entity or relation of the graph. It returns a node or relationship of
// another table with its columns.
func (o *object) present() (any, error) {
	if o.label != entityTable && o.label != relationTable {
		kind := store.KindNode
		if o.relation {
			kind = store.KindRelationship
		}
		// Columns of other tables on a path are null.
		maps.DeleteFunc(o.properties, func(_ string, v any) bool { return v == nil })
		_, err := present(o.properties)
		return store.Other(kind, o.label, o.properties), err
	}
	text := func(name string) string {
		s, _ := o.properties[name].(string)
		return s
	}
	decoded, _ := value.Decode([]byte(text("properties"))) // written by this package
	properties, _ := decoded.(map[string]any)
	if o.relation {
		return store.Edge(text("from_id"), text("type"), text("to_id"), properties), nil
	}
	return store.Node(text("id"), text("type"), properties), nil
}
