package vector

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

// measuredOptions make graphs that find out themselves how to be searched.
var measuredOptions = Options{Dimension: 32, Exact: -1, M: 8, EfConstruction: 48}

// foreign makes queries that are like nothing in the index.
func foreign(dimension int) *source {
	from := newSource(dimension, 0, 0)
	from.random = rand.New(rand.NewPCG(1, 2))
	return from
}

// recalls searches with each of the queries.
func recalls(t *testing.T, ix *Index, queries [][]float32, k int, accept func(int64) bool) []float64 {
	t.Helper()
	all := make([]float64, len(queries))
	for i, query := range queries {
		exact := search(t, ix, query, k, SearchOptions{Accept: accept, Exact: true})
		all[i] = recall(search(t, ix, query, k, SearchOptions{Accept: accept}), exact)
	}
	return all
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// byGraph returns the part of the searches without a filter that the graph
// answers alone.
func byGraph(t *testing.T, ix *Index, queries [][]float32) float64 {
	t.Helper()
	n := 0
	for _, query := range queries {
		row, _, err := normalise(query, ix.options.Dimension)
		if err != nil {
			t.Fatal(err)
		}
		r, ok := ix.route(mustLook(t, ix), row, nil)
		if !ok {
			t.Fatal("there is no graph")
		}
		best := newRanking(10)
		if found, err := r.walk(t.Context(), efAt(0, 10), r.affordable(), best); err != nil || !found {
			continue
		}
		if level, known := ix.quality.choose(r.v, kindOf(best, false)); known && level < scanning {
			n++
		}
	}
	return float64(n) / float64(len(queries))
}

func TestRecallIsReachedWhateverTheData(t *testing.T) {
	t.Parallel()
	half := func(id int64) bool { return scatter(uint64(id))%2 == 0 }
	for name, c := range map[string]struct {
		from, queries *source
		target        float64
		accept        func(int64) bool
	}{
		"noise":               {from: newSource(32, 0, 0), queries: foreign(32)},
		"noise, all of it":    {from: newSource(32, 0, 0), queries: foreign(32), target: 1},
		"noise, little of it": {from: newSource(32, 0, 0), queries: foreign(32), target: 0.7},
		"noise, filtered":     {from: newSource(32, 0, 0), queries: foreign(32), accept: half},
		"inside":              {from: newSource(32, 40, 0.65)},
		"inside, filtered":    {from: newSource(32, 40, 0.65), accept: half},
		"outside":             {from: newSource(32, 40, 0.65), queries: foreign(32)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := measuredOptions
			o.Recall = c.target
			ix := filled(t, o, c.from.many(4000))
			if c.queries == nil {
				c.queries = c.from
			}
			for _, k := range []int{10, 1, 50} {
				all := recalls(t, ix, c.queries.many(150), k, c.accept)
				if first := mean(all[:learning]); first != 1 {
					t.Errorf("k = %d: recall %.3f of the first searches", k, first)
				}
				if r := mean(all); r < ix.options.Recall {
					t.Errorf("k = %d: recall %.3f\n%+v", k, r, ix.Stats().Measured)
				}
			}
		})
	}
}

func TestStructureIsFoundByTheGraphAlone(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := measuredOptions
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	from := newSource(32, 40, 0.65)
	ix := filled(t, o, from.many(4000))
	recalls(t, ix, from.many(150), 10, nil)
	if part := byGraph(t, ix, from.many(100)); part < 0.8 {
		t.Errorf("the graph answers %.2f of the searches\n%+v", part, ix.Stats().Measured)
	}
	for _, m := range ix.Stats().Measured {
		if m.Samples >= learning && (m.Ef == 0 || m.Recall < 0.95 || m.Filtered || m.MinK > 10 || m.MaxK < 10) {
			t.Errorf("%+v", m)
		}
	}
	if log.Len() > 0 {
		t.Error(log.String())
	}
}

func TestNoStructureIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := measuredOptions
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	o.Dimension = 192
	ix := filled(t, o, newSource(192, 0, 0).many(4000))
	queries := foreign(192)
	recalls(t, ix, queries.many(200), 10, nil)
	if part := byGraph(t, ix, queries.many(100)); part > 0 {
		t.Errorf("the graph answers %.2f of the searches\n%+v", part, ix.Stats().Measured)
	}
	if n := strings.Count(log.String(), "no structure"); n != 1 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

// The first query that is unlike those before is not answered with what was
// learned from them.
func TestOtherQueriesAreMeasuredAnew(t *testing.T) {
	t.Parallel()
	from := newSource(32, 40, 0.4)
	ix := filled(t, measuredOptions, from.many(5000))
	outside := foreign(32)
	for round := range 3 {
		for _, one := range []*source{from, outside} {
			if r := mean(recalls(t, ix, one.many(100), 10, nil)); r < 0.95 {
				t.Errorf("round %d, inside %v: recall %.3f\n%+v", round, one == from, r, ix.Stats().Measured)
			}
		}
	}
	if part := byGraph(t, ix, from.many(100)); part < 0.8 {
		t.Errorf("the graph answers %.2f of the searches inside", part)
	}
}

// Clusters smaller than k: the last hit of a query inside lies as far away as
// that of one outside, though the one is far easier.
func TestOtherQueriesAreMeasuredAnewAmongSmallClusters(t *testing.T) {
	t.Parallel()
	from := newSource(192, 1000, 0.65)
	ix := filled(t, Options{Dimension: 192, Exact: -1}, from.many(10_000))
	recalls(t, ix, from.many(200), 10, nil)
	if r := mean(recalls(t, ix, foreign(192).many(100), 10, nil)); r < 0.95 {
		t.Errorf("recall %.3f\n%+v", r, ix.Stats().Measured)
	}
	if part := byGraph(t, ix, from.many(100)); part < 0.8 {
		t.Errorf("the graph answers %.2f of the searches inside", part)
	}
}

// Where the searches of one kind become harder, few of them are answered badly
// until the level rises; and it sinks again.
func TestLevelFollowsTheMeasurements(t *testing.T) {
	t.Parallel()
	var q quality
	v := newGeneration(0, 1, 8).viewAt(1)
	of := kind{near: 3, size: 2}
	easy, hard := sample{1}, sample{0.4, 0.7, 0.98, 1}
	level := 0
	// run makes n searches and returns how many found too little.
	run := func(n int, s sample) (missed, measured int) {
		for range n {
			l, known := q.choose(v, of)
			if !known {
				q.note(v, of, s, 0.95)
				measured++
				continue
			}
			if recall, _ := s.at(l); recall < 0.95 {
				missed++
			}
			level = l
		}
		return missed, measured
	}
	if missed, measured := run(1000, easy); missed > 0 || level != 0 || measured != learning+(1000-learning)/interval {
		t.Errorf("easy: %d missed, %d measured, level %d", missed, measured, level)
	}
	if missed, measured := run(1000, hard); missed > interval || level != 2 || measured > 100 {
		t.Errorf("hard: %d missed, %d measured, level %d", missed, measured, level)
	}
	if run(interval*window*2, easy); level != 0 {
		t.Errorf("easy again: level %d", level)
	}
	if run(interval*window*2, sample{0.1, 0.2}); level != scanning {
		t.Errorf("hopeless: level %d", level)
	}
	if run(interval*window*2, easy); level != 0 {
		t.Errorf("easy at last: level %d", level)
	}
}

func TestGrowthIsMeasuredAnew(t *testing.T) {
	t.Parallel()
	from := newSource(32, 40, 0.65)
	ix := filled(t, measuredOptions, from.many(4000))
	recalls(t, ix, from.many(60), 10, nil)
	grow := func(to int) {
		for n := ix.Stats().Vectors; n < to; n++ {
			put(t, ix, int64(n), int64(n+1), from.next()...)
		}
		settle(t, ix)
		search(t, ix, from.next(), 10, SearchOptions{})
	}
	samples := func() (n int) {
		for _, m := range ix.Stats().Measured {
			n += m.Samples
		}
		return n
	}
	if grow(5900); samples() < learning {
		t.Errorf("%d samples are left", samples())
	}
	if grow(6100); samples() != 1 {
		t.Errorf("%d samples instead of a new one", samples())
	}
	if err := ix.Reset(); err != nil {
		t.Fatal(err)
	}
	for i, vec := range from.many(4000) {
		put(t, ix, int64(i), int64(i+1), vec...)
	}
	settle(t, ix)
	if search(t, ix, from.next(), 10, SearchOptions{}); samples() != 1 {
		t.Errorf("%d samples after a reset", samples())
	}
}

func TestFixedEfIsNotMeasured(t *testing.T) {
	t.Parallel()
	from := newSource(32, 0, 0)
	vecs := from.many(4000)
	o := measuredOptions
	o.EfSearch = 48
	fixed := filled(t, o, vecs)
	free := filled(t, measuredOptions, vecs)
	for range 50 {
		query := from.next()
		search(t, fixed, query, 10, SearchOptions{})
		search(t, free, query, 10, SearchOptions{Ef: 48})
		search(t, free, query, 10, SearchOptions{Exact: true})
	}
	for _, ix := range []*Index{fixed, free} {
		if got := ix.Stats().Measured; len(got) > 0 {
			t.Errorf("%+v", got)
		}
	}
}

func TestMeasuringDuringChanges(t *testing.T) {
	t.Parallel()
	from := newSource(32, 40, 0.65)
	ix := fresh(t, measuredOptions)
	vecs := from.many(2000)
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for n := range 3 {
		queries := newSource(32, 40, 0.65)
		queries.random = rand.New(rand.NewPCG(9, uint64(n)))
		group.Go(func() {
			for ctx.Err() == nil {
				o := SearchOptions{}
				if n == 0 {
					o.Accept = func(id int64) bool { return id%2 == 0 }
				}
				hits, err := ix.Search(ctx, queries.next(), 5, o)
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
					return
				}
				for _, h := range hits {
					if n == 0 && h.ID%2 != 0 {
						t.Errorf("%v was not accepted", h)
					}
				}
				ix.Stats()
			}
		})
	}
	seq := int64(0)
	for i, vec := range vecs {
		seq++
		put(t, ix, int64(i), seq, vec...)
		if i%3 == 0 {
			seq++
			remove(t, ix, int64(i), seq)
		}
	}
	settle(t, ix)
	stop()
	group.Wait()
	if r := mean(recalls(t, ix, from.many(100), 10, nil)); r < 0.95 {
		t.Errorf("recall %.3f", r)
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ix.Search(t.Context(), vecs[0], 1, SearchOptions{}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}
