package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/the-edge-agent/tea/plugins/memory/internal/records"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// vectorDevice is a device with a memory on the server with the extension vector.
type vectorDevice struct {
	store.VectorIndex
	d        *database
	pgvector *extension
	trips    *roundTrips
}

// openVectors opens the memory of a test, whose collections have an index from a
// number of items.
func openVectors(t testing.TB, change func(c *store.Config), indexFrom int) *vectorDevice {
	t.Helper()
	config := configFor(pgvector.URL(t), pgvector.Schema(t), time.Now)
	if change != nil {
		change(&config)
	}
	trips := &roundTrips{}
	d, err := open(t.Context(), config, trips)
	if err != nil {
		t.Fatal(err)
	}
	d.pgvector.indexFrom = indexFrom
	stores := d.stores(config)
	t.Cleanup(func() {
		if err := (&backend[any]{nil, stores}).Close(); err != nil {
			t.Error(err)
		}
	})
	return &vectorDevice{stores.Vectors, d, d.pgvector, trips}
}

// inPlugin returns the index with vectors that the plugin compares.
func (x *vectorDevice) inPlugin(t testing.TB) store.VectorIndex {
	t.Helper()
	index := records.Open(struct{ store.Driver }{x.d}, store.Config{}).Vectors
	t.Cleanup(func() {
		if err := index.Close(); err != nil {
			t.Error(err)
		}
	})
	return index
}

// usesServer reports whether the server has compared the vectors.
func (x *vectorDevice) usesServer(t *testing.T) bool {
	t.Helper()
	schema, err := x.pgvector.use(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return schema != ""
}

// built searches until a collection has its index, which one process of a database
// builds at a time.
func (x *vectorDevice) built(t testing.TB, collection string, query []float32) {
	t.Helper()
	name := indexName(collection, len(query))
	for !x.pgvector.hasIndex(name) {
		x.find(t, collection, store.VectorQuery{Embedding: query, K: 1})
		x.pgvector.background.Wait()
	}
}

// plan returns how the server runs a search.
func (x *vectorDevice) plan(t *testing.T, collection string, q store.VectorQuery) string {
	t.Helper()
	schema, err := x.pgvector.use(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	unit, _ := unitOf(q.Embedding)
	n := &nearest{e: x.pgvector, schema: schema, collection: collection, q: q, unit: unit}
	of, _ := indexOf(schema, len(q.Embedding))
	var lines []string
	err = x.d.do(t.Context(), reading, func(ctx context.Context, c conn) error {
		s := n.byIndex(of)
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		b.Queue("SELECT set_config('enable_sort', $1, true)", n.sorting(indexName(collection, len(q.Embedding)), true))
		b.Queue("EXPLAIN "+s.sql, s.args...).Query(func(rows pgx.Rows) (err error) {
			lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		})
		b.Queue("COMMIT")
		return x.d.transaction(ctx, c, b)
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// random returns items of a dimension whose metadata has the field tenth.
func random(n, dimension int) []store.VectorItem {
	r := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // a test's data
	items := make([]store.VectorItem, n)
	for i := range items {
		items[i] = store.VectorItem{ID: fmt.Sprintf("%05d", i), Metadata: map[string]any{"tenth": int64(i % 10), "tags": []any{fmt.Sprint("t", i%7)}, "n": int64(i)}}
		for range dimension {
			items[i].Embedding = append(items[i].Embedding, float32(r.NormFloat64()))
		}
	}
	return items
}

func (x *vectorDevice) put(t testing.TB, collection string, items ...store.VectorItem) {
	t.Helper()
	for len(items) > 0 {
		n := min(1000, len(items))
		if err := x.Store(t.Context(), collection, items[:n]...); err != nil {
			t.Fatal(err)
		}
		items = items[n:]
	}
}

func (x *vectorDevice) find(t testing.TB, collection string, q store.VectorQuery) []string {
	t.Helper()
	hits, err := x.Search(t.Context(), collection, q)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, hit := range hits {
		ids = append(ids, hit.ID)
	}
	return ids
}

func (x *vectorDevice) exec(t *testing.T, sql string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if err := x.pgvector.connect(ctx, func(c *pgx.Conn) error { _, err := c.Exec(ctx, sql); return err }); err != nil {
		t.Fatal(err)
	}
}

func TestVectorIndexConformanceWithPgvector(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]int{"indexed": 100, "not indexed": indexFrom} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opened storetest.Opened[*backend[store.VectorIndex]]
			storetest.VectorIndex(t, func(t *testing.T) store.VectorIndex {
				t.Helper()
				return opened.Again(t, func() (*backend[store.VectorIndex], error) {
					config := configFor(pgvector.URL(t), pgvector.Schema(t), time.Now)
					d, err := open(t.Context(), config, nil)
					if err != nil {
						return nil, err
					}
					d.pgvector.indexFrom = from
					stores := d.stores(config)
					return &backend[store.VectorIndex]{stores.Vectors, stores}, nil
				}).store
			})
		})
	}
}

// What the index finds is what the comparison with all vectors finds, except a few.
func TestRecallOfAnIndex(t *testing.T) {
	t.Parallel()
	for dimension, n := range map[int]int{16: 5_000, 2100: 200} {
		t.Run(fmt.Sprint(dimension), func(t *testing.T) {
			t.Parallel()
			x := openVectors(t, nil, n/2)
			items := random(n, dimension)
			x.put(t, "c", items...)
			x.built(t, "c", items[0].Embedding)
			if plan := x.plan(t, "c", store.VectorQuery{Embedding: items[0].Embedding, K: 10}); !strings.Contains(plan, "using "+indexName("c", dimension)) {
				t.Errorf("the index is not used:\n%s", plan)
			}
			found, all := 0, 0
			for i := range 50 {
				q := store.VectorQuery{Embedding: items[i*3].Embedding, K: 10, MinScore: -1}
				near := x.find(t, "c", q)
				q.Exact = true
				for _, id := range x.find(t, "c", q) {
					all++
					for _, one := range near {
						if one == id {
							found++
						}
					}
				}
			}
			t.Logf("recall@10 among %d x %d: %.3f", n, dimension, float64(found)/float64(all))
			if all != 500 || found < 475 {
				t.Errorf("the index finds %d of %d, want at least 95%%", found, all)
			}
		})
	}
}

// A search has as many results with an index as there are items that match its
// filter.
func TestFilterOnAnIndex(t *testing.T) {
	t.Parallel()
	x := openVectors(t, nil, 1000)
	items := random(3000, 8)
	for i := range items {
		items[i].Metadata["deep"] = map[string]any{"a": map[string]any{"b": fmt.Sprint(i % 3)}}
	}
	items[5].Metadata = map[string]any{"tenth": int64(3), "text": "a\x00b"} // which jsonb cannot have
	items[6].Metadata = nil
	x.put(t, "c", items...)
	x.built(t, "c", items[0].Embedding)
	for name, wanted := range map[string]map[string]any{
		"one value": {"tenth": int64(3)}, "any of": {"tenth": []any{int64(3), 4.0, "x"}}, "a list": {"tags": "t3"}, "a path": {"deep.a.b": "2"},
		"few": {"n": []any{int64(17), int64(2000)}}, "a range": {"n": map[string]any{"gte": int64(2990)}}, "both": {"tenth": int64(1), "n": map[string]any{"lt": int64(500)}},
		"none": {"tenth": "3"}, "absent": {"tenth": map[string]any{"exists": false}}, "a character": {"text": "a\x00b"}, "null": {"tenth": nil}, "an object": {"deep": map[string]any{"eq": map[string]any{"a": map[string]any{"b": "0"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := storetest.Filter(t, wanted)
			matching := map[string]bool{}
			for _, item := range items {
				if f.MatchesObject(item.Metadata) {
					matching[item.ID] = true
				}
			}
			got := x.find(t, "c", store.VectorQuery{Embedding: items[1].Embedding, K: 400, Filter: f, MinScore: -1})
			if len(got) != min(400, len(matching)) {
				t.Errorf("%d results, want %d", len(got), min(400, len(matching)))
			}
			for _, id := range got {
				if !matching[id] {
					t.Errorf("item %s does not match", id)
				}
			}
			exact := x.find(t, "c", store.VectorQuery{Embedding: items[1].Embedding, K: 400, Filter: f, MinScore: -1, Exact: true})
			mirror, err := x.inPlugin(t).Search(t.Context(), "c", store.VectorQuery{Embedding: items[1].Embedding, K: 400, Filter: f, MinScore: -1})
			if err != nil {
				t.Fatal(err)
			}
			var ids []string
			for _, hit := range mirror {
				ids = append(ids, hit.ID)
			}
			if len(ids) == 0 {
				ids = []string{}
			}
			if diff := cmp.Diff(ids, exact); diff != "" {
				t.Errorf("the plugin and the server differ:\n%s", diff)
			}
		})
	}
}

// A search is one request, also with a filter that the server applies.
func TestRequestsOfSearchesWithPgvector(t *testing.T) {
	t.Parallel()
	x := openVectors(t, nil, indexFrom)
	x.put(t, "c", random(200, 8)...)
	q := store.VectorQuery{Embedding: random(1, 8)[0].Embedding, K: 10, MinScore: -1}
	x.find(t, "c", q) // looks for the extension
	for name, f := range map[string]map[string]any{"all": nil, "a filter": {"tenth": int64(3)}} {
		before := x.trips.n.Load()
		q.Filter = storetest.Filter(t, f)
		if got := x.find(t, "c", q); len(got) != 10 {
			t.Errorf("%s: %d results, want 10", name, len(got))
		}
		if got := x.trips.n.Load() - before; got != 1 {
			t.Errorf("%s: %d requests, want 1", name, got)
		}
	}
}

// The extension can be created in a database with vectors, and dropped again.
func TestPgvectorOfADatabaseWithVectors(t *testing.T) {
	t.Parallel()
	admin := openVectors(t, nil, indexFrom)
	name := "own_" + pgvector.Schema(t)
	admin.exec(t, "CREATE DATABASE "+name)
	own := func(c *store.Config) { c.URL += "&dbname=" + name }
	items := random(50, 8)
	q := store.VectorQuery{Embedding: items[3].Embedding, K: 5, MinScore: -1}

	before := openVectors(t, own, indexFrom)
	before.put(t, "c", items...)
	want := before.find(t, "c", q)
	if before.usesServer(t) {
		t.Fatal("the server compares vectors without the extension")
	}
	before.exec(t, "CREATE EXTENSION vector SCHEMA public")

	readOnly := openVectors(t, func(c *store.Config) { own(c); c.ReadOnly = "for a test" }, indexFrom)
	if diff := cmp.Diff(want, readOnly.find(t, "c", q)); diff != "" || readOnly.usesServer(t) {
		t.Errorf("read-only: the tables are changed, or the results differ:\n%s", diff)
	}
	after := openVectors(t, own, indexFrom)
	if diff := cmp.Diff(want, after.find(t, "c", q)); diff != "" || !after.usesServer(t) {
		t.Errorf("the server does not compare the vectors, or the results differ:\n%s", diff)
	}
	// A device that has not noticed the extension writes, and is read.
	before.put(t, "c", store.VectorItem{ID: "new", Embedding: q.Embedding})
	if got := after.find(t, "c", store.VectorQuery{Embedding: q.Embedding, K: 2}); len(got) != 2 || got[0] != items[3].ID || got[1] != "new" {
		t.Errorf("found %v, want the new item too", got)
	}
	after.exec(t, "DROP EXTENSION vector CASCADE")
	if got := after.find(t, "c", q); len(got) != 5 {
		t.Errorf("%d results after the extension was dropped, want 5", len(got))
	}
	if after.usesServer(t) {
		t.Error("the server compares vectors without the extension")
	}
}

// A large table is prepared in steps, during which it is read and written; rows
// that were written meanwhile have the columns too. The extension can go and
// come back.
func TestALargeTableIsPreparedInSteps(t *testing.T) {
	t.Parallel()
	admin := openVectors(t, nil, indexFrom)
	name := "large_" + pgvector.Schema(t)
	admin.exec(t, "CREATE DATABASE "+name)
	own := func(c *store.Config) { c.URL += "&dbname=" + name }
	before := openVectors(t, own, indexFrom)
	items := random(3*fillAtOnce+7, 8)
	before.put(t, "c", items...)
	before.exec(t, "CREATE EXTENSION vector SCHEMA public")
	rewritten := func() (node int64) {
		err := before.pgvector.connect(t.Context(), func(c *pgx.Conn) error {
			return c.QueryRow(t.Context(), "SELECT relfilenode::bigint FROM pg_class WHERE oid = 'vectors'::regclass").Scan(&node)
		})
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
	file := rewritten()
	for _, step := range []string{"", "DROP EXTENSION vector CASCADE; CREATE EXTENSION vector SCHEMA public"} {
		if step != "" {
			before.exec(t, step)
		}
		after := openVectors(t, own, indexFrom)
		after.pgvector.prepareNow = 0
		after.find(t, "c", store.VectorQuery{Embedding: items[0].Embedding, K: 1}) // begins it
		for i := range 20 {
			before.put(t, "c", store.VectorItem{ID: fmt.Sprint("new", i), Embedding: items[i].Embedding})
		}
		after.pgvector.background.Wait()
		if !after.usesServer(t) {
			t.Error("the server does not compare the vectors")
		}
		q := store.VectorQuery{Embedding: items[5].Embedding, K: 700, MinScore: -1, Exact: true}
		if got := after.find(t, "c", q); len(got) != len(items)+20 {
			t.Errorf("%d results, want %d", len(got), len(items)+20)
		}
	}
	if rewritten() != file {
		t.Error("the table was rewritten")
	}
}

// A failure to prepare the tables or to build an index is tried again.
func TestPgvectorIsTriedAgain(t *testing.T) {
	t.Parallel()
	owner := openVectors(t, nil, 10)
	now := time.Now()
	owner.pgvector.now = func() time.Time { return now }
	q := store.VectorQuery{Embedding: random(1, 8)[0].Embedding, K: 1, MinScore: -1}
	if err := owner.Store(t.Context(), "c", random(20, 8)...); err != nil {
		t.Fatal(err)
	}
	owner.exec(t, "ALTER TABLE vectors ADD COLUMN unit_new integer")
	owner.find(t, "c", q)
	if owner.usesServer(t) {
		t.Fatal("the tables are prepared although they cannot be")
	}
	owner.exec(t, "ALTER TABLE vectors DROP COLUMN unit_new")
	if owner.usesServer(t) {
		t.Error("it is tried again at once")
	}
	now = now.Add(attempts.Base)
	if !owner.usesServer(t) {
		t.Error("it is not tried again")
	}
	index := indexName("c", 8)
	owner.exec(t, "CREATE TABLE "+index+" ()")
	owner.find(t, "c", q)
	owner.pgvector.background.Wait()
	owner.exec(t, "DROP TABLE "+index)
	now = now.Add(attempts.Base)
	owner.built(t, "c", q.Embedding)
}

// Users without the right to change the tables search in the plugin until the owner
// has prepared them.
func TestPgvectorOfAnotherUser(t *testing.T) {
	t.Parallel()
	owner := openVectors(t, nil, indexFrom)
	owner.put(t, "c", random(20, 8)...)
	schema, user := pgvector.Schema(t), "user_"+pgvector.Schema(t)
	owner.exec(t, fmt.Sprintf("CREATE ROLE %[2]s LOGIN; GRANT USAGE ON SCHEMA %[1]s TO %[2]s; GRANT ALL ON ALL TABLES IN SCHEMA %[1]s TO %[2]s", schema, user))
	t.Cleanup(func() { owner.exec(t, fmt.Sprintf("DROP OWNED BY %[1]s; DROP ROLE %[1]s", user)) })
	as := func(c *store.Config) { c.URL += "&user=" + user }
	q := store.VectorQuery{Embedding: random(1, 8)[0].Embedding, K: 3, MinScore: -1}
	first := openVectors(t, as, indexFrom)
	got := first.find(t, "c", q)
	if first.usesServer(t) {
		t.Error("a user without rights has changed the tables")
	}
	want := owner.find(t, "c", q)
	first.put(t, "c", store.VectorItem{ID: "far", Embedding: []float32{-q.Embedding[0], -q.Embedding[1], -q.Embedding[2], -q.Embedding[3], -q.Embedding[4], -q.Embedding[5], -q.Embedding[6], -q.Embedding[7]}})
	owner.exec(t, "GRANT USAGE ON SCHEMA extensions TO "+user)
	second := openVectors(t, as, indexFrom)
	if diff := cmp.Diff([][]string{want, want}, [][]string{got, second.find(t, "c", q)}); diff != "" {
		t.Error(diff)
	}
	if !second.usesServer(t) {
		t.Error("the user searches in the plugin although the tables are prepared")
	}
}

// BenchmarkNearest measures searches among 20,000 vectors of 384 numbers.
func BenchmarkNearest(b *testing.B) {
	x := openVectors(b, nil, indexFrom)
	items := random(20_000, 384)
	x.put(b, "c", items...)
	x.built(b, "c", items[0].Embedding)
	plugin := x.inPlugin(b)
	for name, find := range map[string]func(q store.VectorQuery) ([]store.VectorHit, error){
		"index": func(q store.VectorQuery) ([]store.VectorHit, error) { return x.Search(b.Context(), "c", q) },
		"exact": func(q store.VectorQuery) ([]store.VectorHit, error) {
			q.Exact = true
			return x.Search(b.Context(), "c", q)
		},
		"plugin": func(q store.VectorQuery) ([]store.VectorHit, error) { return plugin.Search(b.Context(), "c", q) },
	} {
		b.Run(name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				i++
				if hits, err := find(store.VectorQuery{Embedding: items[i%len(items)].Embedding, K: 10}); err != nil || len(hits) == 0 {
					b.Fatal(len(hits), err)
				}
			}
		})
	}
}
