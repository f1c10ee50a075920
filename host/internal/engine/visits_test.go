package engine

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVisitsFindShortAndLong(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, indexThreshold, indexThreshold + 1, 100} {
		var l, around visits
		want := map[string]any{}
		for i := range n {
			name := strconv.Itoa(i)
			if l.visit(name) != 1 || l.visit(name) != 2 {
				t.Fatalf("%d: the visits of %s are not counted", n, name)
			}
			if i%3 != 0 {
				l.setResult(name, i)
				want[name] = i
			}
		}
		around.setResult("1", "old")
		around.addResults(&l)
		if n < 2 {
			want["1"] = "old"
		}
		got := map[string]any{}
		around.copyResults(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d: %s", n, diff)
		}
		if _, ok := l.result("0"); ok {
			t.Errorf("%d: a node that has not ended has a result", n)
		}
		if l.resetVisits(); l.visit("0") != 1 {
			t.Errorf("%d: visits were not forgotten", n)
		}
	}
}
