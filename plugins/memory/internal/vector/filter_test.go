package vector

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFiltersLoseNothing(t *testing.T) {
	t.Parallel()
	const count, clusters = 4000, 40
	from := newSource(16, clusters, 0.5)
	vecs := make([][]float32, count)
	for i := range vecs {
		vecs[i] = from.near(i % clusters)
	}
	// Some with the same vector, of which the filters let pass a part.
	for i := range 100 {
		vecs[i*clusters+1] = vecs[1]
	}
	ix := filled(t, graphOptions, vecs)
	cluster := func(id int64) int64 { return id % clusters }
	for _, c := range []struct {
		name   string
		accept func(id int64) bool
		exact  bool // the result must equal the exact one
	}{
		{"everything", func(int64) bool { return true }, false},
		{"half", func(id int64) bool { return scattered(id, 2) }, false},
		{"half of the clusters", func(id int64) bool { return cluster(id) < clusters/2 }, false},
		{"all but the nearest cluster", func(id int64) bool { return cluster(id) != 5 }, false},
		{"every hundredth", func(id int64) bool { return scattered(id, 100) }, true},
		{"one cluster", func(id int64) bool { return cluster(id) == 17 }, true},
		{"one", func(id int64) bool { return id == 1234 }, true},
		{"few of the same", func(id int64) bool { return id%400 == 1 }, true},
		{"none", func(int64) bool { return false }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ids := among(count, c.accept)
			o := SearchOptions{Among: ids, Ef: 20}
			sum, queries := 0.0, 0
			for q := range clusters {
				query := vecs[q]
				got := search(t, ix, query, 10, o)
				want := search(t, ix, query, 10, SearchOptions{Among: ids, Exact: true})
				if diff := cmp.Diff(want, got); c.exact && diff != "" {
					t.Errorf("query %d: %s", q, diff)
				}
				if len(got) != len(want) {
					t.Errorf("query %d: %d hits instead of %d", q, len(got), len(want))
				}
				for _, h := range got {
					if !c.accept(h.ID) {
						t.Errorf("query %d: %v was not accepted", q, h)
					}
				}
				sum, queries = sum+recall(got, want), queries+1
			}
			if r := sum / float64(queries); r < 0.93 {
				t.Errorf("recall %.3f", r)
			}
		})
	}
}

func TestFilteredSearchUsesTheGraph(t *testing.T) {
	t.Parallel()
	from := newSource(16, 40, 0.5)
	ix := filled(t, graphOptions, from.many(2000))
	half := func(id int64) bool { return id%2 == 0 }
	if !usesGraph(t, ix, from.next(), SearchOptions{Among: among(2000, half), Ef: 10}) {
		t.Error("it compares everything")
	}
}
