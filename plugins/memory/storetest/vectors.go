package storetest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// VectorIndex runs the suite of [store.VectorIndex]. The first call of open in a
// test returns an empty index; each later call reopens the same items.
func VectorIndex(t *testing.T, open func(t *testing.T) store.VectorIndex) {
	t.Helper()
	start := func(t *testing.T) *index {
		t.Helper()
		x := &index{open: open}
		x.reopen(t)
		return x
	}
	run(t, start, map[string]func(t *testing.T, x *index){
		"round trip":  vectorsRoundTrip,
		"replace":     vectorsReplace,
		"refusals":    vectorsRefusals,
		"names":       vectorsNames,
		"delete":      vectorsDelete,
		"nearest":     vectorsNearest,
		"filter":      vectorsFilter,
		"list":        vectorsList,
		"drop":        vectorsDrop,
		"collections": vectorsCollections,
		"concurrent":  vectorsConcurrent,
		"closed":      vectorsClosed,
		"canceled":    vectorsCanceled,
	})
}

// index is a backend with a collection named c.
type index struct {
	store.VectorIndex
	open func(t *testing.T) store.VectorIndex
}

func (x *index) reopen(t *testing.T) {
	t.Helper()
	x.VectorIndex = x.open(t)
}

func (x *index) put(t *testing.T, items ...store.VectorItem) {
	t.Helper()
	if err := x.Store(t.Context(), "c", items...); err != nil {
		t.Fatal(err)
	}
}

func (x *index) get(t *testing.T, ids ...string) []store.VectorItem {
	t.Helper()
	items := must(x.Get(t.Context(), "c", ids...))(t)
	return items
}

func (x *index) search(t *testing.T, query store.VectorQuery) []store.VectorHit {
	t.Helper()
	hits := must(x.Search(t.Context(), "c", query))(t)
	return hits
}

// near returns the ids nearest to an embedding.
func (x *index) near(t *testing.T, k int, embedding ...float32) string {
	t.Helper()
	return hitIDs(x.search(t, store.VectorQuery{Embedding: embedding, K: k, MinScore: -1}))
}

func hitIDs(hits []store.VectorHit) string {
	ids := make([]string, len(hits))
	for i, hit := range hits {
		ids[i] = hit.ID
	}
	return strings.Join(ids, " ")
}

func item(id string, embedding ...float32) store.VectorItem {
	return store.VectorItem{ID: id, Embedding: embedding}
}

func vectorsRoundTrip(t *testing.T, x *index) {
	items := []store.VectorItem{
		{ID: "a", Text: "Grüße \x00 '\"", Embedding: []float32{1, 0.1, -1e-30}, Metadata: map[string]any{"n": int64(1), "f": 1.5, "l": []any{"x", nil, true}, "o": map[string]any{}}},
		{ID: "b", Embedding: []float32{math.MaxFloat32 / 4, -2, 1.0 / 3}},
		{ID: "c", Text: "c", Embedding: []float32{0, 0, 1}, Metadata: map[string]any{}},
	}
	x.put(t, items...)
	for range 2 {
		want(t, "all", x.get(t, "a", "b", "c"), items)
		want(t, "in the order asked for", x.get(t, "c", "none", "a"), []store.VectorItem{items[2], items[0]})
		want(t, "none", len(x.get(t)), 0)
		hits := x.search(t, store.VectorQuery{Embedding: []float32{0, 0, 7}, K: 1, Embeddings: true})
		want(t, "a hit", len(hits), 1)
		want(t, "its item", hits[0].VectorItem, items[2])
		if math.Abs(hits[0].Score-1) > 1e-6 {
			t.Errorf("score %v, want 1", hits[0].Score)
		}
		x.reopen(t)
	}
}

func vectorsReplace(t *testing.T, x *index) {
	x.put(t, item("a", 1, 0), item("b", 0, 1))
	want(t, "before", x.near(t, 5, 1, 0.1), "a b")
	x.put(t, item("a", -1, 0), store.VectorItem{ID: "b", Text: "later", Embedding: []float32{1, 0}})
	refused(t, "two items with one id", x.Store(t.Context(), "c", item("c", 1, 0), item("d", 1, 0), item("c", 0, 1)))
	for range 2 {
		want(t, "after", x.near(t, 5, 1, 0.1), "b a")
		want(t, "the later one", x.get(t, "b")[0].Text, "later")
		x.reopen(t)
	}
}

func vectorsRefusals(t *testing.T, x *index) {
	x.put(t, item("a", 1, 0))
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, bad := range map[string]store.VectorItem{
		"another dimension": item("b", 1, 0, 0), "no numbers": item("b"), "not a number": item("b", nan, 0), "infinite": item("b", 0, inf),
		"zeros": item("b", 0, 0), "no id": item("", 1, 0), "a long id": item(strings.Repeat("i", 4097), 1, 0), "an id that is bytes": item("\xff", 1, 0),
		"a text that is bytes": {ID: "b", Text: "\xff", Embedding: []float32{1, 0}},
	} {
		refused(t, name, x.Store(t.Context(), "c", item("good", 0, 1), bad))
	}
	for _, name := range []string{"", strings.Repeat("c", 101), "\xff"} {
		refused(t, fmt.Sprintf("a collection called %.10q", name), x.Store(t.Context(), name, item("a", 1, 0)))
		want(t, fmt.Sprintf("hits in %.10q", name), len(must(x.Search(t.Context(), name, store.VectorQuery{Embedding: []float32{1, 0}, K: 1}))(t)), 0)
		want(t, fmt.Sprintf("removed in %.10q", name), must(x.Delete(t.Context(), name, "a"))(t), 0)
	}
	want(t, "nothing was stored", x.near(t, 5, 1, 1), "a")
	for _, embedding := range [][]float32{{1}, {1, 0, 0}, {}, {nan, 1}, {inf, 1}, {0, 0}} {
		_, err := x.Search(t.Context(), "c", store.VectorQuery{Embedding: embedding, K: 1})
		refused(t, fmt.Sprintf("a search for %v", embedding), err)
	}
	want(t, "the error of no items", x.Store(t.Context(), "empty"), nil)
	want(t, "collections", must(x.Collections(t.Context()))(t), []store.Collection{{Name: "c", Dimension: 2, Count: 1}})
}

func vectorsNames(t *testing.T, x *index) {
	names := []string{"a", "A", "a ", "ä", "a\u0308", "%", "_", "a'b", `a\`, "a/b", "..", "a\x00b", "日本", strings.Repeat("n", 100)}
	for i, name := range names {
		if err := x.Store(t.Context(), name, item(name, float32(i+1), 1)); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
	}
	for range 2 {
		for i, name := range names {
			want(t, "items under "+name, must(x.Get(t.Context(), name, name, name+"x"))(t), []store.VectorItem{item(name, float32(i+1), 1)})
			want(t, "hits in "+name, hitIDs(must(x.Search(t.Context(), name, store.VectorQuery{Embedding: []float32{1, 1}, K: 9}))(t)), name)
		}
		x.reopen(t)
	}
}

func vectorsDelete(t *testing.T, x *index) {
	x.put(t, item("a", 1, 0), item("b", 0, 1), item("c", 1, 1))
	want(t, "removed", must(x.Delete(t.Context(), "c", "a", "none", "b", "", "a"))(t), 2)
	for range 2 {
		want(t, "left", x.near(t, 5, 1, 0), "c")
		want(t, "gone", len(x.get(t, "a", "b")), 0)
		x.reopen(t)
	}
	x.put(t, item("a", 0, 1))
	want(t, "a new one", x.near(t, 5, 0, 1), "a c")
	want(t, "removed", must(x.Delete(t.Context(), "c", "a", "c"))(t), 2)
	x.reopen(t)
	want(t, "nothing", x.near(t, 5, 1, 0), "")
	refused(t, "another dimension", x.Store(t.Context(), "c", item("a", 1)))
	x.put(t, item("a", 0, 1))
	want(t, "the same dimension", x.near(t, 5, 0, 1), "a")
	want(t, "removed from no collection", must(x.Delete(t.Context(), "none", "a"))(t), 0)
}

func random(n, dimension int, seed uint64) []store.VectorItem {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's data
	items := make([]store.VectorItem, n)
	for i := range items {
		items[i] = store.VectorItem{ID: fmt.Sprintf("%04d", i), Text: fmt.Sprint(i), Metadata: map[string]any{"tenth": int64(i % 10), "odd": i%2 == 1}}
		for range dimension {
			items[i].Embedding = append(items[i].Embedding, float32(r.NormFloat64()))
		}
	}
	return items
}

func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	return dot / math.Sqrt(aa*bb)
}

// nearest returns the k items nearest to a query, computed directly.
func nearest(items []store.VectorItem, query []float32, k int) []store.VectorHit {
	var hits []store.VectorHit
	for _, i := range items {
		hits = append(hits, store.VectorHit{VectorItem: i, Score: cosine(i.Embedding, query)})
	}
	slices.SortFunc(hits, func(a, b store.VectorHit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:min(k, len(hits))]
}

func vectorsNearest(t *testing.T, x *index) {
	items := random(1100, 24, 1)
	x.put(t, items[:600]...)
	for _, i := range items[600:650] {
		x.put(t, i)
	}
	x.put(t, items[650:]...)
	queries := random(20, 24, 2)
	for range 2 {
		for _, q := range queries {
			for _, exact := range []bool{true, false} {
				hits := x.search(t, store.VectorQuery{Embedding: q.Embedding, K: 15, MinScore: -1, Exact: exact})
				wanted := nearest(items, q.Embedding, 15)
				want(t, "ids", hitIDs(hits), hitIDs(wanted))
				for i := range hits {
					if math.Abs(hits[i].Score-wanted[i].Score) > 1e-5 {
						t.Errorf("score %v, want %v", hits[i].Score, wanted[i].Score)
					}
				}
			}
		}
		x.reopen(t)
	}
	want(t, "all", len(x.search(t, store.VectorQuery{Embedding: queries[0].Embedding, K: 5000, MinScore: -1})), 1100)
	for _, hit := range x.search(t, store.VectorQuery{Embedding: queries[0].Embedding, K: 5000, MinScore: 0.2}) {
		if hit.Score < 0.2 {
			t.Errorf("score %v is below the least", hit.Score)
		}
	}
	for _, k := range []int{0, -1} {
		want(t, "no results", len(x.search(t, store.VectorQuery{Embedding: queries[0].Embedding, K: k})), 0)
	}
}

func vectorsFilter(t *testing.T, x *index) {
	items := random(400, 8, 3)
	x.put(t, items...)
	q := random(1, 8, 4)[0].Embedding
	for name, test := range map[string]struct {
		filter map[string]any
		keep   func(i int) bool
	}{
		"one value": {map[string]any{"tenth": int64(3)}, func(i int) bool { return i%10 == 3 }},
		"any of":    {map[string]any{"tenth": []any{int64(3), 4.0}}, func(i int) bool { return i%10 == 3 || i%10 == 4 }},
		"two":       {map[string]any{"tenth": int64(3), "odd": true}, func(i int) bool { return i%10 == 3 }},
		"none":      {map[string]any{"tenth": int64(3), "odd": false}, func(int) bool { return false }},
		"a range":   {map[string]any{"tenth": map[string]any{"gte": 3, "lt": 5}}, func(i int) bool { return i%10 == 3 || i%10 == 4 }},
		"not":       {map[string]any{"tenth": map[string]any{"ne": 3}, "other": map[string]any{"exists": false}}, func(i int) bool { return i%10 != 3 }},
		"no field":  {map[string]any{"other": int64(3)}, func(int) bool { return false }},
	} {
		var kept []store.VectorItem
		for i, one := range items {
			if test.keep(i) {
				kept = append(kept, one)
			}
		}
		got := x.search(t, store.VectorQuery{Embedding: q, K: 30, Filter: Filter(t, test.filter), MinScore: -1})
		want(t, name, hitIDs(got), hitIDs(nearest(kept, q, 30)))
	}
}

// Filter parses a filter.
func Filter(t *testing.T, wanted map[string]any) filter.Filter {
	t.Helper()
	f := must(filter.Parse("filter", wanted))(t)
	return f
}

func vectorsList(t *testing.T, x *index) {
	items := random(25, 4, 6)
	x.put(t, items...)
	for range 2 {
		var listed []store.VectorItem
		for after := ""; ; {
			page := must(x.List(t.Context(), "c", store.VectorPage{After: after, Limit: 10, Embeddings: true}))(t)
			listed = append(listed, page...)
			if len(page) < 10 {
				break
			}
			after = page[9].ID
		}
		want(t, "all pages", listed, items)
		x.reopen(t)
	}
	for name, page := range map[string]store.VectorPage{"none": {}, "the end": {After: "0024", Limit: 10}} {
		want(t, name, len(must(x.List(t.Context(), "c", page))(t)), 0)
	}
	want(t, "without embeddings", len(must(x.List(t.Context(), "c", store.VectorPage{Limit: 1}))(t)[0].Embedding), 0)
	want(t, "no collection", len(must(x.List(t.Context(), "none", store.VectorPage{Limit: 1}))(t)), 0)
}

func vectorsDrop(t *testing.T, x *index) {
	drop := func(collection string, items int, existed bool) {
		t.Helper()
		n, there, err := x.Drop(t.Context(), collection)
		if n != items || there != existed || err != nil {
			t.Errorf("Drop: %d, %v, %v; want %d, %v", n, there, err, items, existed)
		}
	}
	drop("c", 0, false)
	x.put(t, item("a", 1, 0), item("b", 0, 1))
	if err := x.Store(t.Context(), "other", item("a", 1, 0)); err != nil {
		t.Fatal(err)
	}
	x.reopen(t)
	want(t, "before", x.near(t, 5, 1, 0.1), "a b")
	drop("c", 2, true)
	for range 2 {
		want(t, "after", x.near(t, 5, 1, 0), "")
		want(t, "gone", len(x.get(t, "a", "b")), 0)
		want(t, "the other one is left", must(x.Collections(t.Context()))(t), []store.Collection{{Name: "other", Dimension: 2, Count: 1}})
		x.reopen(t)
	}
	x.put(t, item("a", 0, 0, 1), item("z", 1, 0, 0)) // with a different dimension
	for range 2 {
		want(t, "a new one", x.near(t, 5, 0, 0, 1), "a z")
		x.reopen(t)
	}
	drop("c", 2, true)
	x.put(t, item("b", 1, 0))
	want(t, "once more", x.near(t, 1, 1, 0), "b")
}

func vectorsCollections(t *testing.T, x *index) {
	want(t, "collections at first", len(must(x.Collections(t.Context()))(t)), 0)
	var wanted []store.Collection
	for i, name := range []string{"B", "a", "b", "é", "\uffff", "\U0001F600"} {
		wanted = append(wanted, store.Collection{Name: name, Dimension: i + 1, Count: 6 - i})
		for n := range 6 - i {
			if err := x.Store(t.Context(), name, item(fmt.Sprint(n), append(make([]float32, i), 1)...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	want(t, "collections", must(x.Collections(t.Context()))(t), wanted)
}

func vectorsConcurrent(t *testing.T, x *index) {
	const goroutines, each = 12, 15
	items := random(goroutines*each, 16, 5)
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for i := range each {
				one := items[g*each+i]
				x.put(t, one)
				if got := hitIDs(x.search(t, store.VectorQuery{Embedding: one.Embedding, K: 1})); got != one.ID {
					t.Errorf("%s is not found after it was stored: %q", one.ID, got)
				}
				if i%5 < 4 {
					continue
				}
				if n, err := x.Delete(t.Context(), "c", one.ID); err != nil || n != 1 { // must ends only the test's goroutine
					t.Errorf("%d removed, %v", n, err)
				}
				if got := hitIDs(x.search(t, store.VectorQuery{Embedding: one.Embedding, K: 1})); got == one.ID {
					t.Errorf("%s is found after it was removed", one.ID)
				}
			}
		})
	}
	group.Wait()
	for range 2 {
		want(t, "found", len(x.search(t, store.VectorQuery{Embedding: items[0].Embedding, K: 1000, MinScore: -1})), goroutines*each*4/5)
		x.reopen(t)
	}
}

func vectorCalls(x store.VectorIndex) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"Store":  func(ctx context.Context) error { return x.Store(ctx, "c", item("a", 1, 0)) },
		"Delete": func(ctx context.Context) error { _, err := x.Delete(ctx, "c", "b"); return err },
		"Search": func(ctx context.Context) error {
			_, err := x.Search(ctx, "c", store.VectorQuery{Embedding: []float32{1, 0}, K: 1})
			return err
		},
		"Get":         func(ctx context.Context) error { _, err := x.Get(ctx, "c", "a"); return err },
		"List":        func(ctx context.Context) error { _, err := x.List(ctx, "c", store.VectorPage{Limit: 1}); return err },
		"Drop":        func(ctx context.Context) error { _, _, err := x.Drop(ctx, "none"); return err },
		"Collections": func(ctx context.Context) error { _, err := x.Collections(ctx); return err },
	}
}

func vectorsClosed(t *testing.T, x *index) {
	x.put(t, item("a", 1, 0))
	before := x.VectorIndex
	x.reopen(t)
	for name, call := range vectorCalls(before) {
		typed(t, name+" after Close", call(t.Context()), tea.ConnectionError)
	}
	want(t, "what was stored", x.near(t, 1, 1, 0), "a")
}

func vectorsCanceled(t *testing.T, x *index) {
	x.put(t, item("a", 1, 0))
	canceled(t, vectorCalls(x.VectorIndex))
	x.put(t, item("b", 0, 1))
	want(t, "afterwards", x.near(t, 1, 0, 1), "b")
}
