//go:build linux && (amd64 || arm64) && !lite

package kuzu

import (
	"context"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

const (
	// maxQuery is the length of a query in bytes, and maxDepth the depth of its
	// brackets: the parser recurses.
	maxQuery = 32 << 10
	maxDepth = 100
	// maxResult is the size of an encoded result.
	maxResult = 32 << 20
)

// Language is [store.Querier.Language].
func (*DB) Language() string { return "cypher" }

// Query is [store.Querier.Query].
func (db *DB) Query(ctx context.Context, q store.Query) (*store.Table, error) {
	if !q.ReadOnly {
		return nil, tea.Errorf(tea.PermissionDenied, "a query only reads on the backend cypher; set read_only: true, and change the graph with graph.store_entity, store_relation, update_entity, delete_entity and delete_relation")
	}
	if err := checkQuery(q.Text); err != nil {
		return nil, err
	}
	encoded, err := params(q.Params).encode()
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "params: %w", err)
	}
	var t *store.Table
	err = db.read(ctx, func(*connection) error {
		// The connection keeps the plan of each statement: this one is for one query.
		c, err := db.engine.connect()
		if err != nil {
			return err
		}
		defer c.close()
		t, err = c.table(ctx, q, encoded)
		return err
	})
	return t, err
}

// checkQuery bounds what the parser does.
func checkQuery(text string) error {
	if len(text) > maxQuery {
		return tea.Errorf(tea.ValidationError, "the query has %d bytes, more than %d; pass data as params", len(text), maxQuery)
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
	if err := c.execute("BEGIN TRANSACTION READ ONLY"); err != nil {
		return nil, err
	}
	defer c.execute("ROLLBACK") //nolint:errcheck // a read-only transaction has nothing to lose
	statement, err := c.prepare(ctx, q.Text, true, encoded)
	if err != nil {
		return nil, err
	}
	defer c.library.finalize(statement)
	r, err := c.run(ctx, statement, encoded, limits{rows: int64(q.MaxRows), bytes: maxResult})
	if err != nil {
		return nil, err
	}
	if r.flags&cutByBytes != 0 {
		return nil, tea.Errorf(tea.ResourceExhausted, "the result of the query has more than %d MiB; let it return less", maxResult>>20)
	}
	t := &store.Table{Columns: r.columns, Rows: [][]any{}, Truncated: r.flags&cutByRows != 0}
	for r.next() {
		row := make([]any, len(r.columns))
		for i := range row {
			row[i] = present(r.value())
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// present replaces the engine's nodes, relationships and paths by those of a
// table.
func present(v any) any {
	switch v := v.(type) {
	case *object:
		return v.present()
	case *path:
		for i := range v.nodes {
			v.nodes[i] = present(v.nodes[i])
		}
		for i := range v.relations {
			v.relations[i] = present(v.relations[i])
		}
		return store.Path(v.nodes, v.relations)
	case []any:
		for i := range v {
			v[i] = present(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = present(v[name])
		}
	case []byte:
		return string(v)
	}
	return v
}

func (o *object) present() any {
	text := func(name string) string {
		s, _ := o.properties[name].(string)
		return s
	}
	decoded, _ := value.Decode([]byte(text("properties"))) // what this package has written
	properties, _ := decoded.(map[string]any)
	if o.relation {
		return store.Edge(text("from_id"), text("type"), text("to_id"), properties)
	}
	return store.Node(text("id"), text("type"), properties)
}
