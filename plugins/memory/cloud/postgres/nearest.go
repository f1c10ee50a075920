package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/vectors"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// candidates and maxCandidates bound the number of items that an index search compares (hnsw.ef_search), which is
	// twice the number of results.
	candidates    = 200
	maxCandidates = 1000
	// pageSize is the number of rows that a filtered search reads at a time.
	pageSize = 1000
)

// nearest is a search that the server executes.
type nearest struct {
	e          *extension
	schema     string // of the extension
	collection string
	q          store.VectorQuery
	unit       string // the query as the text of a vector of length 1

	// dimension is the dimension of the collection, 0 if it does not exist.
	dimension int
	// indexed reports whether the collection has an index. If not, items is the number of its items, at most
	// extension.indexFrom.
	indexed bool
	items   int
	rows    []store.Row
	scores  []float64
}

// errNotOnServer makes the caller compare the vectors in memory.
var errNotOnServer = fmt.Errorf("the server %w", store.ErrUnsupported)

// Nearest returns the rows nearest to a query, unless the server cannot compare
// vectors.
func (d *database) Nearest(ctx context.Context, space string, q store.VectorQuery) ([]store.Row, []float64, error) {
	e := d.pgvector
	if q.K < 1 || !vectors.Named(space) || len(q.Embedding) == 0 || len(q.Embedding) > maxUnit {
		return nil, nil, errNotOnServer
	}
	unit, valid := unitOf(q.Embedding)
	if !valid {
		return nil, nil, errNotOnServer
	}
	schema, err := e.use(ctx)
	if err != nil {
		return nil, nil, err
	}
	if schema == "" {
		return nil, nil, errNotOnServer
	}
	n := &nearest{e: e, schema: schema, collection: space, q: q, unit: unit}
	missing := false
	err = d.do(ctx, reading, func(ctx context.Context, c conn) error {
		err := n.run(ctx, c)
		missing = e.forget(err)
		return err
	})
	switch {
	case missing: // the extension was dropped
		return nil, nil, errNotOnServer
	case err != nil:
		return nil, nil, err
	case n.dimension != 0 && n.dimension != len(q.Embedding):
		return nil, nil, vectors.WrongDimension(space, len(q.Embedding), n.dimension)
	}
	if n.dimension != 0 && !n.indexed && n.items >= e.indexFrom {
		e.build(schema, space, n.dimension)
	}
	return n.rows, n.scores, nil
}

// unitOf returns a vector scaled to length 1 as text. ok is false if it cannot be scaled.
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

// run searches by the index if the collection has one. If that finds too few items, all are compared.
func (n *nearest) run(ctx context.Context, c conn) error {
	n.rows, n.scores = nil, nil
	name := indexName(n.collection, len(n.q.Embedding))
	s := n.byDistance(" LIMIT " + strconv.Itoa(n.q.K))
	approximate := false
	if i, ok := indexOf(n.schema, len(n.q.Embedding)); ok && !n.q.Exact && (!i.half || n.e.hasIndex(name)) {
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
		n.e.addIndex(name)
	}
	all := !approximate || !n.indexed // all items were compared
	if n.dimension == len(n.q.Embedding) && len(n.rows) < n.q.K && (!all || found == n.q.K) {
		if err := n.scan(ctx, c); err != nil {
			return err
		}
	}
	enough := 0 // the scores descend
	for enough < len(n.scores) && n.scores[enough] >= n.q.MinScore {
		enough++
	}
	n.rows, n.scores = n.rows[:enough], n.scores[:enough]
	return nil
}

// sorting returns the planner setting that makes it use the index, because its estimate of the number of vectors is far
// too low. With a filter, comparing all vectors can be faster.
func (n *nearest) sorting(index string, approximate bool) string {
	if approximate && len(n.q.Filter) == 0 && n.e.hasIndex(index) {
		return "off" // off, if possible
	}
	return "on"
}

// describe queues the query that reads the collection's state.
func (n *nearest) describe(b *pgx.Batch, index string) {
	b.Queue(`SELECT c.dimension, i.valid, CASE WHEN i.valid THEN 0 ELSE (SELECT count(*) FROM (SELECT 1 FROM vectors WHERE collection = $1 LIMIT $3) AS counted) END
		FROM vector_collections AS c, (SELECT coalesce((SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($2)), false) AS valid) AS i WHERE c.name = $1`,
		[]byte(n.collection), index, n.e.indexFrom).Query(func(rows pgx.Rows) error {
		n.dimension, n.indexed, n.items = 0, false, 0
		_, err := pgx.ForEachRow(rows, []any{&n.dimension, &n.indexed, &n.items}, func() error { return nil })
		return err
	})
}

type statement struct {
	sql  string
	args []any
}

// byIndex returns the search by an index. Without an index it compares all items.
func (n *nearest) byIndex(i index) statement {
	inner := n.byDistance("")
	limit := n.q.K
	if i.half {
		limit *= 2 // because the index order is not exact
	}
	inner.sql = strings.TrimSuffix(inner.sql, order) + " ORDER BY " + i.expression + " OPERATOR(" + n.schema + ".<=>) " + n.literal() + "::" + i.typ + " LIMIT " + strconv.Itoa(limit)
	return statement{"SELECT * FROM (" + inner.sql + ") AS found" + order + " LIMIT " + strconv.Itoa(n.q.K), inner.args}
}

const order = " ORDER BY score, rid"

func (n *nearest) byDistance(limit string) statement {
	a := &args{}
	where := only(n.schema, n.collection, len(n.q.Embedding)) + a.facts(n.q.Filter)
	score := ", unit OPERATOR(" + n.schema + ".<=>) " + n.literal() + " AS score" // the distance
	return statement{"SELECT " + feeds[store.VectorFeed].selected(!n.q.Embeddings, score) + noRowCount + " FROM vectors WHERE " + where + order + limit, a.list}
}

// literal returns the query vector as a constant, which consists of numbers.
func (n *nearest) literal() string { return "'" + n.unit + "'::" + n.schema + ".vector" }

// add adds the rows that match the filter, up to the limit.
func (n *nearest) add(rows pgx.Rows) (read int, err error) {
	var p page
	err = p.read(store.VectorFeed, rows)
	for i, row := range p.rows {
		if len(n.rows) < n.q.K && filter.Matches([]byte(row.Metadata), n.q.Filter) {
			n.rows, n.scores = append(n.rows, row), append(n.scores, max(-1, min(1-p.scores[i], 1)))
		}
	}
	return len(p.rows), err
}

// scan reads the items by distance until enough match the filter.
func (n *nearest) scan(ctx context.Context, c conn) error {
	n.rows, n.scores = nil, nil
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
		if read < pageSize || len(n.rows) == n.q.K {
			_, err := c.Exec(ctx, "COMMIT")
			return err
		}
		b = &pgx.Batch{}
	}
}

// facts returns a necessary condition for items that match the filter: the column facts contains the values that the
// filter compares for equality.
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
			if _, nested := choice.([]any); nested || err != nil || strings.Contains(string(text), `\u0000`) { // jsonb cannot store it
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

// objectsWith returns the objects in which filter.Lookup finds a value, or a list that contains it.
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
