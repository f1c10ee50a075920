package vector

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// open opens an index that is closed with the test.
func open(t testing.TB, path string, o Options) *Index {
	t.Helper()
	ix, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ix.Close(); err != nil {
			t.Error(err)
		}
	})
	return ix
}

// fresh opens an empty index.
func fresh(t testing.TB, o Options) *Index {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "vectors"), o)
}

func search(t testing.TB, ix *Index, query []float32, k int, o SearchOptions) []Hit {
	t.Helper()
	hits, err := ix.Search(t.Context(), query, k, o)
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

func put(t testing.TB, ix *Index, id, seq int64, vec ...float32) {
	t.Helper()
	if err := ix.Put(id, seq, vec); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, ix *Index, id, seq int64) {
	t.Helper()
	if err := ix.Delete(id, seq); err != nil {
		t.Fatal(err)
	}
}

func settle(t testing.TB, ix *Index) {
	t.Helper()
	if err := ix.WaitBuilt(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestSearchFindsTheNearest(t *testing.T) {
	t.Parallel()
	ix := fresh(t, Options{Dimension: 2})
	put(t, ix, 7, 1, 0, 5)
	put(t, ix, 3, 2, 2, 0)
	put(t, ix, 9, 3, -1, 0)
	put(t, ix, 2, 4, 0, 1) // as similar as 7
	half := float32(math.Sqrt(0.5))
	for _, c := range []struct {
		name  string
		query []float32
		k     int
		want  []Hit
	}{
		{"best first", []float32{1, 0}, 3, []Hit{{3, 1}, {2, 0}, {7, 0}}},
		{"no longer than there are", []float32{-3, 0}, 10, []Hit{{9, 1}, {2, 0}, {7, 0}, {3, -1}}},
		{"length does not count", []float32{1e-30, 1e-30}, 1, []Hit{{2, half}}},
		{"zeros are like nothing", []float32{0, 0}, 3, []Hit{{2, 0}, {3, 0}, {7, 0}}},
		{"none wanted", []float32{1, 0}, 0, []Hit{}},
		{"fewer than none", []float32{1, 0}, -1, []Hit{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			similar := cmp.Comparer(func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 })
			if diff := cmp.Diff(c.want, search(t, ix, c.query, c.k, SearchOptions{}), similar); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSearchSeesEveryChange(t *testing.T) {
	t.Parallel()
	ix := fresh(t, Options{Dimension: 2})
	ids := func() (ids []int64) {
		for _, h := range search(t, ix, []float32{1, 0}, 10, SearchOptions{}) {
			ids = append(ids, h.ID)
		}
		return ids
	}
	steps := []struct {
		name   string
		change func()
		want   []int64
	}{
		{"nothing", func() {}, nil},
		{"put", func() { put(t, ix, 1, 10, 1, 0) }, []int64{1}},
		{"another", func() { put(t, ix, 2, 11, 0, 1) }, []int64{1, 2}},
		{"replaced", func() { put(t, ix, 1, 12, -1, 0) }, []int64{2, 1}},
		{"deleted", func() { remove(t, ix, 2, 13) }, []int64{1}},
		{"deleted again", func() { remove(t, ix, 2, 14) }, []int64{1}},
		{"back", func() { put(t, ix, 2, 20, 0, 1) }, []int64{2, 1}},
	}
	for _, s := range steps {
		s.change()
		if diff := cmp.Diff(s.want, ids()); diff != "" {
			t.Errorf("%s: %s", s.name, diff)
		}
	}
	if got := ix.Watermark(); got != 20 {
		t.Errorf("watermark %d", got)
	}
	if err := ix.Reset(); err != nil {
		t.Fatal(err)
	}
	if got := ids(); got != nil || ix.Watermark() != 0 {
		t.Errorf("after Reset: %v, watermark %d", got, ix.Watermark())
	}
}

func TestRefusedCallsChangeNothing(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	ix := fresh(t, Options{Dimension: 2})
	put(t, ix, 1, 5, 1, 0)
	for _, c := range []struct {
		name string
		call func() error
		want error
	}{
		{"too short", func() error { return ix.Put(1, 6, []float32{1}) }, ErrDimension},
		{"too long", func() error { return ix.Put(1, 6, []float32{1, 2, 3}) }, ErrDimension},
		{"NaN", func() error { return ix.Put(1, 6, []float32{0, nan}) }, ErrNotFinite},
		{"infinite", func() error { return ix.Put(1, 6, []float32{inf, 0}) }, ErrNotFinite},
		{"zeros", func() error { return ix.Put(1, 6, []float32{0, 0}) }, ErrZero},
		{"same sequence", func() error { return ix.Put(1, 5, []float32{0, 1}) }, ErrSequence},
		{"older delete", func() error { return ix.Delete(1, 4) }, ErrSequence},
		{"negative", func() error { return ix.Delete(1, -4) }, ErrSequence},
		{"query too short", func() error { _, err := ix.Search(t.Context(), nil, 1, SearchOptions{}); return err }, ErrDimension},
		{"query with NaN", func() error { _, err := ix.Search(t.Context(), []float32{nan, 0}, 1, SearchOptions{}); return err }, ErrNotFinite},
	} {
		if err := c.call(); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if diff := cmp.Diff([]Hit{{1, 1}}, search(t, ix, []float32{1, 0}, 2, SearchOptions{})); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	if got := ix.Watermark(); got != 5 {
		t.Errorf("watermark %d", got)
	}
}

func TestClosedIndexSaysSo(t *testing.T) {
	t.Parallel()
	ix := fresh(t, Options{Dimension: 1})
	put(t, ix, 1, 1, 1)
	for range 2 {
		if err := ix.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, searched := ix.Search(t.Context(), []float32{1}, 1, SearchOptions{})
	for name, err := range map[string]error{
		"Put": ix.Put(1, 2, []float32{1}), "Delete": ix.Delete(1, 2), "Search": searched,
		"Flush": ix.Flush(), "Reset": ix.Reset(), "Settle": ix.WaitBuilt(t.Context()),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCancelledSearchEnds(t *testing.T) {
	t.Parallel()
	ix := fresh(t, Options{Dimension: 1})
	put(t, ix, 1, 1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ix.Search(ctx, []float32{1}, 1, SearchOptions{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{},
		{Dimension: -1},
		{Dimension: 1 << 20},
		{Dimension: 1, M: 1},
		{Dimension: 1, M: 1000},
		{Dimension: 1, EfSearch: -1},
		{Dimension: 1, EfConstruction: -1},
	} {
		if ix, err := Open(filepath.Join(t.TempDir(), "vectors"), o); err == nil {
			t.Errorf("%+v was accepted", o)
			ix.Close()
		}
	}
}

func TestExtremeVectorsKeepTheirDirection(t *testing.T) {
	t.Parallel()
	ix := fresh(t, Options{Dimension: 3})
	put(t, ix, 1, 1, math.MaxFloat32, math.MaxFloat32, 0)
	put(t, ix, 2, 2, 0, 0, math.SmallestNonzeroFloat32)
	want := []Hit{{1, 1}, {2, 0}}
	similar := cmp.Comparer(func(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-6 })
	if diff := cmp.Diff(want, search(t, ix, []float32{1, 1, 0}, 2, SearchOptions{}), similar); diff != "" {
		t.Error(diff)
	}
}
