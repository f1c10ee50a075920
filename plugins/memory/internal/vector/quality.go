package vector

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync"
)

const (
	// firstEf is how many candidates the first level keeps; each further level
	// keeps twice as many.
	firstEf = 48
	// levels is how many there are: up to about 25,000 candidates.
	levels = 10
	// scanning is the level at which everything is compared.
	scanning = levels

	// learning is how many searches of a kind are measured one after the other
	// before the graph alone answers one.
	learning = 16
	// window is how many of the last measurements count.
	window = 32
	// interval is how many searches come to one that is measured later on.
	interval = 64
)

// efAt returns how many candidates a search for k keeps at the level.
func efAt(level, k int) int { return max(firstEf, k) << level }

// kind is what the searches that are measured together have in common. How
// much of the graph a search must see depends most of all on how near its
// hits are: where a query lies in a cluster, little is enough, and where all
// vectors are about equally far from it, a lot is. So what was learned from
// the one is not applied to the other. Where a cluster has fewer vectors than
// are wanted, the last hit is far away all the same, but not the first.
type kind struct {
	near     int8 // similarity of the last hit, in sixteenths
	lead     int8 // how much more that of the first is, in quarters
	size     int8 // of k, in powers of four
	filtered bool
}

// kindOf tells the kind by what the shortest walk has found.
func kindOf(found *ranking, filtered bool) kind {
	last := found.hits[0].Similarity
	first := slices.MaxFunc(found.hits, func(a, b Hit) int { return cmp.Compare(a.Similarity, b.Similarity) }).Similarity
	return kind{
		near: int8(math.Floor(float64(last) * 16)), lead: int8((first - last) * 4),
		size: int8((bits.Len(uint(found.k)) + 1) / 2), filtered: filtered,
	}
}

// sample is what one search measured: the recall at each level, up to the
// first that found everything or the last that costs no more than comparing
// everything.
type sample []float64

// at returns the recall at the level, and whether the search would have
// changed to comparing everything there.
func (s sample) at(level int) (recall float64, gaveUp bool) {
	if level < len(s) {
		return s[level], false
	}
	return 1, s[len(s)-1] < 1
}

// grade is what is known about one kind of searches.
type grade struct {
	samples []sample // at most window
	oldest  int
	level   int
	recall  float64 // at the level, the mean of the samples
	due     int     // so many searches from now one is measured
}

// note takes in a sample and decides anew.
func (g *grade) note(s sample, target float64) {
	if len(g.samples) < window {
		g.samples = append(g.samples, s)
	} else {
		g.samples[g.oldest] = s
		g.oldest = (g.oldest + 1) % window
	}
	before := g.level
	g.decide(target)
	if recall, _ := s.at(before); before < scanning && recall < target {
		g.due = 1 // have the queries changed? The next one is looked at too.
	}
}

// decide chooses the lowest level that reaches the target. It is cautious: the
// mean of a few samples may be too good by chance, so that one standard error
// is taken off.
func (g *grade) decide(target float64) {
	for g.level = range scanning {
		sum, squares, scans := 0.0, 0.0, 0
		for _, s := range g.samples {
			recall, gaveUp := s.at(g.level)
			sum += recall
			squares += recall * recall
			if gaveUp {
				scans++
			}
		}
		n := float64(len(g.samples))
		if 2*scans > len(g.samples) {
			break
		}
		g.recall = sum / n
		variance := max(squares/n-g.recall*g.recall, 0)
		if g.recall-math.Sqrt(variance/n) >= target {
			return
		}
	}
	g.level, g.recall = scanning, 1
}

// quality is what the searches have taught about the graph. It is in memory
// only, and forgotten when the graph has become another one.
type quality struct {
	mu     sync.Mutex
	grades map[kind]*grade
	// The graph that was measured.
	generation int
	built      uint32
	// told is set when it was logged that the graph is of no use.
	told bool
}

// renew forgets everything if the graph has grown by half since. The caller
// holds q.mu.
func (q *quality) renew(v *view) {
	if v.number > q.generation || (v.number == q.generation && v.built > q.built+q.built/2) || q.grades == nil {
		q.grades, q.generation, q.built = make(map[kind]*grade), v.number, v.built
	}
}

// choose returns the level for a search of the kind. It returns false if the
// search is to be measured.
func (q *quality) choose(v *view, of kind) (level int, known bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.renew(v)
	g := q.grades[of]
	if g == nil || len(g.samples) < learning {
		return scanning, false
	}
	if g.due--; g.due <= 0 {
		g.due = interval
		return scanning, false
	}
	return g.level, true
}

// note takes in what a search of the kind has measured. It returns true when
// it is the first one to show that the graph is of no use to a kind.
func (q *quality) note(v *view, of kind, s sample, target float64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.renew(v)
	if v.number < q.generation {
		return false // it was measured in a graph that is gone
	}
	g := q.grades[of]
	if g == nil {
		g = &grade{due: interval}
		q.grades[of] = g
	}
	g.note(s, target)
	if q.told || len(g.samples) < learning || g.level < scanning {
		return false
	}
	q.told = true
	return true
}

// Measured says how the searches of one kind are answered and how much they
// find.
type Measured struct {
	// Similarity is that of the last hit, at least; less than a sixteenth more
	// belongs to the kind.
	Similarity float64
	// Lead is how much more that of the first hit is, at least; less than a
	// quarter more belongs to the kind.
	Lead float64
	// MinK and MaxK are the numbers of hits asked for, both included.
	MinK, MaxK int
	// Filtered is set for searches with SearchOptions.Accept.
	Filtered bool
	// Samples is how many of the last measurements count.
	Samples int
	// Ef is how many candidates are kept in the graph; 0 says that everything
	// is compared, because too little is known yet or the graph is of no use.
	Ef int
	// Recall is the part of the nearest vectors that is found, on average.
	Recall float64
}

// measured lists what is known, the nearest first.
func (q *quality) measured() []Measured {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []Measured
	for of, g := range q.grades {
		m := Measured{
			Similarity: float64(of.near) / 16, Lead: float64(of.lead) / 4, MinK: 1 << (2*of.size - 2), MaxK: 1<<(2*of.size) - 1,
			Filtered: of.filtered, Samples: len(g.samples), Recall: 1,
		}
		if len(g.samples) >= learning && g.level < scanning {
			m.Ef, m.Recall = efAt(g.level, m.MinK), g.recall
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Measured) int {
		filtered := func(m Measured) int {
			if m.Filtered {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(b.Lead, a.Lead), cmp.Compare(a.MinK, b.MinK), filtered(a)-filtered(b))
	})
	return all
}
