package fulltext

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// Entries of several runs come in the order of their keys, as they were added.
func TestStemsOfSeveralRuns(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // not a secret
	var s stems
	var want, got []list
	for i := range 2*stemsPerRun + 100 {
		l := list{key: fmt.Sprintf("%x %d", r.IntN(1000), i), df: r.IntN(9), at: r.Int64N(1 << 40), docsLen: i, posLen: 2 * i}
		s.add(l)
		want = append(want, l)
	}
	s.each(func(l list) { got = append(got, l) })
	slices.SortFunc(want, func(a, b list) int { return cmp.Compare(a.key, b.key) })
	if !slices.Equal(got, want) {
		t.Errorf("%d entries are not the %d that were added, in their order", len(got), len(want))
	}
	var none stems
	none.each(func(l list) { t.Errorf("%v", l) })
}
