package postgres

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// candidates and maxCandidates bound how many items the search of an index compares
	// (hnsw.ef_search), which is twice the number of results.
	candidates    = 200
	maxCandidates = 1000
	// pageSize is the number of rows that a search with a filter reads at a time.
	pageSize = 1000
)

// nearest is a search that the server does.
type nearest struct {
	e          *extension
	schema     string // of the extension
	collection string
	q          store.VectorQuery
	unit       string // the query as the text of a vector of length 1

	// dimension is that of the collection, 0 if it does not exist.
	dimension int
	// indexed reports whether the collection has an index, and items how many items
	// it has, at most extension.indexFrom, if it has none.
	indexed bool
	items   int
	hits    []store.VectorHit
}

// search returns the items nearest to the query. ok is false where the server
// cannot compare vectors.
func (e *extension) search(ctx context.Context, collection string, q store.VectorQuery) (hits []store.VectorHit, ok bool, err error) {
	if q.K < 1 || !vectors.Named(collection) || len(q.Embedding) == 0 || len(q.Embedding) > maxUnit {
		return nil, false, nil
	}
	unit, valid := unitOf(q.Embedding)
	if !valid { // the search in the plugin has the error
		return nil, false, nil
	}
	schema, err := e.use(ctx)
	if err != nil || schema == "" {
		return nil, false, err
	}
	n := &nearest{e: e, schema: schema, collection: collection, q: q, unit: unit}
	missing := false
	err = e.d.do(ctx, reading, func(ctx context.Context, c conn) error {
		err := n.run(ctx, c)
		missing = e.forget(err)
		return err
	})
	switch {
	case missing: // the extension was dropped
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case n.dimension == 0:
		return nil, true, nil
	case n.dimension != len(q.Embedding):
		return nil, false, vectors.WrongDimension(collection, len(q.Embedding), n.dimension)
	}
	if !n.indexed && n.items >= e.indexFrom {
		e.build(schema, collection, n.dimension)
	}
	return n.hits, true, nil
}

// unitOf returns a vector of length 1 as text. ok is false if there is none.
func unitOf(embedding []float32) (text string, ok bool) {
	var square float64
	for _, f := range embedding {
		square += float64(f) * float64(f)
	}
	if square == 0 || math.IsInf(square, 0) || math.IsNaN(square) {
		return "", false
	}
	length := math.Sqrt(square)
	b := make([]byte, 0, 12*len(embedding))
	for i, f := range embedding {
		b = append(b, "[,"[min(i, 1)])
		b = strconv.AppendFloat(b, float64(f)/length, 'g', 9, 32)
	}
	return string(append(b, ']')), true
}

// run searches, by the index if the collection has one. If that finds fewer items
// than there are, all are compared.
func (n *nearest) run(ctx context.Context, c conn) error {
	n.hits = nil
	name := indexName(n.collection, len(n.q.Embedding))
	s := n.byDistance(" LIMIT " + strconv.Itoa(n.q.K))
	approximate := false
	if i, ok := indexOf(n.schema, len(n.q.Embedding)); ok && !n.q.Exact && (!i.half || n.e.known(name)) {
		s, approximate = n.byIndex(i), true
	}
	found := 0
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	n.describe(b, name)
	b.Queue("SELECT set_config(name, value, true) FROM (VALUES ('hnsw.ef_search', $1), ('hnsw.iterative_scan', 'relaxed_order'), ('enable_sort', $2)) AS settings (name, value)",
		strconv.Itoa(min(max(2*n.q.K, candidates), maxCandidates)), n.sorting(name, approximate))
	b.Queue(s.sql, s.args...).Query(func(rows pgx.Rows) (err error) {
		found, err = n.add(rows)
		return err
	})
	b.Queue("COMMIT")
	if err := n.e.d.transaction(ctx, c, b); err != nil {
		return err
	}
	if n.indexed {
		n.e.know(name)
	}
	all := !approximate || !n.indexed // items were compared
	if n.dimension == len(n.q.Embedding) && len(n.hits) < n.q.K && (!all || found == n.q.K) {
		if err := n.scan(ctx, c); err != nil {
			return err
		}
	}
	n.hits = slices.DeleteFunc(n.hits, func(hit store.VectorHit) bool { return hit.Score < n.q.MinScore })
	return nil
}

// sorting returns the setting of the planner with which it uses the index: its
// estimate of the number of vectors is far too low. A filter can make the comparison
// with all of them faster.
func (n *nearest) sorting(index string, approximate bool) string {
	if approximate && len(n.q.Filter) == 0 && n.e.known(index) {
		return "off" // if it can be avoided
	}
	return "on"
}

// describe queues the query of what the collection is.
func (n *nearest) describe(b *pgx.Batch, index string) {
	b.Queue(`SELECT c.dimension, i.valid, CASE WHEN i.valid THEN 0 ELSE (SELECT count(*) FROM (SELECT 1 FROM vectors WHERE collection = $1 LIMIT $3) AS counted) END
		FROM vector_collections AS c, (SELECT coalesce((SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($2)), false) AS valid) AS i WHERE c.name = $1`,
		[]byte(n.collection), index, n.e.indexFrom).Query(func(rows pgx.Rows) error {
		n.dimension, n.indexed, n.items = 0, false, 0
		_, err := pgx.ForEachRow(rows, []any{&n.dimension, &n.indexed, &n.items}, func() error { return nil })
		return err
	})
}

// statement is a query with its arguments.
type statement struct {
	sql  string
	args []any
}

// byIndex returns the search by an index; while there is none, it compares all
// items.
func (n *nearest) byIndex(i index) statement {
	inner := n.byDistance("")
	limit := n.q.K
	if i.half {
		limit *= 2 // whose order is not exact
	}
	inner.sql = strings.TrimSuffix(inner.sql, order) + " ORDER BY " + i.expression + " OPERATOR(" + n.schema + ".<=>) " + n.literal() + "::" + i.typ + " LIMIT " + strconv.Itoa(limit)
	return statement{"SELECT * FROM (" + inner.sql + ") AS found" + order + " LIMIT " + strconv.Itoa(n.q.K), inner.args}
}

const order = " ORDER BY distance, id"

// byDistance returns the search that compares all items.
func (n *nearest) byDistance(limit string) statement {
	columns := itemColumns
	if n.q.Embeddings {
		columns = withVector
	}
	a := &args{}
	where := only(n.schema, n.collection, len(n.q.Embedding)) + a.facts(n.q.Filter)
	return statement{"SELECT " + columns + ", unit OPERATOR(" + n.schema + ".<=>) " + n.literal() + " AS distance FROM vectors WHERE " + where + order + limit, a.list}
}

// literal is the query as a constant. It consists of numbers.
func (n *nearest) literal() string { return "'" + n.unit + "'::" + n.schema + ".vector" }

// add adds the rows that match the filter, until there are enough.
func (n *nearest) add(rows pgx.Rows) (read int, err error) {
	_, items, distances, err := scanItems(rows, n.q.Embeddings, true)
	for i, item := range items {
		if len(n.hits) < n.q.K && n.q.Filter.MatchesObject(item.Metadata) {
			n.hits = append(n.hits, store.VectorHit{VectorItem: item, Score: max(-1, min(1-distances[i], 1))})
		}
	}
	return len(items), err
}

// scan reads the items in the order of their distance until enough match the
// filter.
func (n *nearest) scan(ctx context.Context, c conn) error {
	n.hits = nil
	s := n.byDistance("")
	b := &pgx.Batch{}
	b.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	b.Queue("DECLARE near NO SCROLL CURSOR FOR "+s.sql, s.args...)
	for {
		read := 0
		b.Queue("FETCH " + strconv.Itoa(pageSize) + " FROM near").Query(func(rows pgx.Rows) (err error) {
			read, err = n.add(rows)
			return err
		})
		if err := n.e.d.transaction(ctx, c, b); err != nil {
			return err
		}
		if read < pageSize || len(n.hits) == n.q.K {
			_, err := c.Exec(ctx, "COMMIT")
			return err
		}
		b = &pgx.Batch{}
	}
}

// facts returns a condition that each item that matches the filter satisfies: the
// column facts contains values of the filter that are compared for equality.
func (a *args) facts(f filter.Filter) string {
	var all strings.Builder
	for _, c := range f {
		want, ok := c.Value()
		if !ok {
			continue
		}
		choices, isList := want.([]any)
		if !isList {
			choices = []any{want}
		}
		var anyOf []string
		for _, choice := range choices {
			text, err := json.Marshal(choice)
			if _, nested := choice.([]any); nested || err != nil || strings.Contains(string(text), `\u0000`) { // jsonb has none
				anyOf = nil
				break
			}
			for _, object := range objectsWith(c.Field, string(text)) {
				anyOf = append(anyOf, "facts @> "+a.add(object)+"::text::jsonb")
			}
		}
		if len(anyOf) > 0 {
			// Metadata that are not facts are compared by the plugin.
			all.WriteString(" AND (metadata IS NOT NULL AND facts IS NULL OR " + strings.Join(anyOf, " OR ") + ")")
		}
	}
	return all.String()
}

// objectsWith returns the objects in which filter.Lookup finds a value, or a list
// with it.
func objectsWith(field, text string) []string {
	name, _ := json.Marshal(field) // a string
	objects := []string{"{" + string(name) + ":" + text + "}", "{" + string(name) + ":[" + text + "]}"}
	if first, rest, dotted := strings.Cut(field, "."); dotted {
		name, _ := json.Marshal(first)
		for _, inner := range objectsWith(rest, text) {
			objects = append(objects, "{"+string(name)+":"+inner+"}")
		}
	}
	return objects
}
