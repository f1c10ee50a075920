package fulltext

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSeveralIndexesRankAsOne puts texts into two indexes and searches them
// with the sum of their statistics: the scores are those of one index of all.
func TestSeveralIndexesRankAsOne(t *testing.T) {
	t.Parallel()
	texts := []string{
		"the pumps of the boiler", "a valve", "pump house | pump plan and valves", "nothing of that", "valve valve pump pumping pumpkin", "東京都の犬", "",
	}
	whole, left, right := temporary(t), temporary(t), temporary(t)
	put(t, whole, texts...)
	put(t, left, texts[:3]...)
	put(t, right, texts[3:]...)
	for _, query := range []string{"pump", "pump valve boiler", "pump* house", `"valve pump" dog`, "犬 pump", "unknown", "the", ""} {
		want := map[int64]float64{}
		for hit := range searched(t, whole, query, SearchOptions{}).All() {
			want[hit.ID] = hit.Score
		}
		a, errA := left.Statistics(t.Context(), query)
		b, errB := right.Statistics(t.Context(), query)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		sum := Statistics{}.Add(a).Add(b)
		got := map[int64]float64{}
		for hit := range searched(t, left, query, SearchOptions{Statistics: &sum}).All() {
			got[hit.ID] = hit.Score
		}
		for hit := range searched(t, right, query, SearchOptions{Statistics: &sum}).All() {
			got[hit.ID+3] = hit.Score
		}
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
		if diff := cmp.Diff(want, got, near); diff != "" {
			t.Errorf("%q (-one index +two):\n%s", query, diff)
		}
		for id, score := range want {
			if alone := sum.Score(sum.Counter().Count(strings.Split(texts[id-1], "|")...)); math.Abs(alone-score) > 1e-12 {
				t.Errorf("%q: the text of %d alone has %v, not %v", query, id, alone, score)
			}
		}
	}
}

func searched(t *testing.T, x *Index, query string, o SearchOptions) *Ranked {
	t.Helper()
	r, err := x.Search(t.Context(), query, o)
	if err != nil {
		t.Fatalf("Search(%q): %v", query, err)
	}
	return r
}

func temporary(t *testing.T) *Index {
	t.Helper()
	x := mustOpen(t, t.TempDir(), "")
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func TestIDs(t *testing.T) {
	t.Parallel()
	x := temporary(t)
	put(t, x, "a", "b", "c")
	if err := x.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{x.Delete(2, 10), x.Put(Document{ID: 3, Seq: 11}), x.Put(Document{ID: 7, Seq: 12})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ids, err := x.IDs()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	if diff := cmp.Diff([]int64{1, 3, 7}, ids); diff != "" {
		t.Error(diff)
	}
}
