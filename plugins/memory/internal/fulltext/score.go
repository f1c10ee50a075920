package fulltext

import "math/bits"

// The documents of a part are scored in windows. In each window, the scores of the clauses with high bounds
// are added up first; the other clauses are only looked up in documents that can still be among the best (MaxScore).
// Blocks and whole windows whose bounds are too low are not decoded (block-max). Without a limit each document is scored.
//
// A score is the sum of the clauses' scores in the order of the query, however it is found. Bounds are computed by the same
// operations, each of which is monotonic, so a sum of bounds in the same order is never below the score. In another
// order it can be, by less than slack.

const (
	windowDocs = 4096
	slack      = 1 + 1e-12
	wideLists  = 5 // a clause with at least this many lists is bounded by its weight only, and not looked up
	lookupCost = 8 // a lookup takes the time of adding this many postings
)

// window has the scores and counts of the documents in a window.
type window struct {
	scores [windowDocs]float64 // 0 outside of a window
	counts [windowDocs]uint32  // 0 outside of a term
	seen   windowBits
	term   windowBits
}

type windowBits [windowDocs / 64]uint64

// clause is a term of the query in one view.
type clause struct {
	cursors []cursor
	weight  float64 // times k1+1
	bound   float64 // of its scores in the current window
	later   bool    // it is only looked up
}

// scorer scores the documents of a view.
type scorer struct {
	*search
	*view
	*window
	clauses   []clause
	lookup    []*clause // the clauses that are only looked up in the current window, by descending bound
	wide      bool      // a clause has too many lists, so none is looked up
	slope     float64
	low, high uint32 // the current window
}

const flat = k1 * (1 - b)

// score is the score of a clause in a document.
func score(weight float64, tf, length uint32, slope float64) float64 {
	n := float64(tf)
	return weight * n / (n + flat + slope*float64(length))
}

func (s *scorer) run() {
	docs := uint32(len(s.ids))
	for low, ok := s.nextAccepted(0); ok && low < docs; low, ok = s.nextAccepted(s.high) {
		s.checkContext()
		s.low = low - low%windowDocs
		s.high = min(s.low+windowDocs, docs)
		if s.plan() {
			for i := range s.clauses {
				if c := &s.clauses[i]; !c.later {
					s.addScores(c)
				}
			}
			s.finish()
		}
	}
}

// plan computes the bounds of the window and selects the clauses to look up. It returns false if no document of the
// window can be among the best.
func (s *scorer) plan() bool {
	total := 0.0
	for i := range s.clauses {
		c := &s.clauses[i]
		c.bound, c.later = s.clauseBound(c), false
		total += c.bound
	}
	s.lookup = s.lookup[:0]
	if !s.full() {
		return total > 0
	}
	if !s.competes(total) {
		return false
	}
	rest := 0.0
	for len(s.clauses) > 1 && !s.wide {
		var least *clause
		for i := range s.clauses {
			if c := &s.clauses[i]; !c.later && (least == nil || c.bound < least.bound) {
				least = c
			}
		}
		if rest += least.bound; rest*slack >= s.worst().Score {
			break
		}
		if least.later = true; least.bound > 0 {
			s.lookup = append(s.lookup, least)
		}
	}
	return true
}

// competes reports whether a document of the window with at most this score can be among the best. If the scores are
// equal, the smaller ID decides.
func (s *scorer) competes(bound float64) bool {
	worst := s.worst()
	return bound > worst.Score || bound == worst.Score && (!s.ordered || s.ids[s.low] < worst.ID)
}

func (s *scorer) clauseBound(c *clause) float64 {
	if len(c.cursors) >= wideLists {
		s.wide = true
		return c.weight
	}
	sum := 0.0
	for i := range c.cursors {
		cur := &c.cursors[i]
		bound := 0.0
		for block := cur.find(s.low); block < len(cur.blocks) && cur.first(block) < s.high; block++ {
			bound = max(bound, s.blockBound(c, cur, block))
		}
		sum += bound
	}
	if len(c.cursors) > 1 {
		return min(c.weight, sum*slack)
	}
	return sum
}

// blockBound is the best score of a form in the documents of a block.
func (s *scorer) blockBound(c *clause, cur *cursor, block int) float64 {
	b := &cur.blocks[block]
	if b.bound > 0 {
		return b.bound
	}
	if cur.directory == nil {
		b.bound = c.weight
		return b.bound
	}
	pairs, rest := takeNumber(cur.directory[b.impacts:])
	var length, tf uint32
	for range pairs {
		var l, n uint32
		l, rest = takeNumber(rest)
		n, rest = takeNumber(rest)
		length, tf = length+l, tf+n
		b.bound = max(b.bound, score(c.weight, tf, length, s.slope))
	}
	return b.bound
}

// addScores adds the scores of a clause to those of the window.
func (s *scorer) addScores(c *clause) {
	if len(c.cursors) != 1 {
		s.addUnion(c)
		return
	}
	others := 0.0
	if s.full() {
		for i := range s.clauses {
			if o := &s.clauses[i]; o != c {
				others += o.bound
			}
		}
		if others > 0 {
			others *= slack
		}
	}
	cur := &c.cursors[0]
	for block := cur.find(s.low); block < len(cur.blocks) && cur.first(block) < s.high; block++ {
		if s.full() && !s.competes(others+s.blockBound(c, cur, block)) {
			continue
		}
		cur.load(block)
		for _, p := range cur.postings[cur.index(s.low):] {
			if p.ord >= s.high {
				break
			}
			i := p.ord - s.low
			s.seen[i/64] |= 1 << (i % 64)
			s.scores[i] += score(c.weight, p.tf, s.lens[p.ord], s.slope)
		}
	}
}

// addUnion is addScores for a clause of several lists.
func (s *scorer) addUnion(c *clause) {
	for n := range c.cursors {
		cur := &c.cursors[n]
		for block := cur.find(s.low); block < len(cur.blocks) && cur.first(block) < s.high; block++ {
			cur.load(block)
			for _, p := range cur.postings[cur.index(s.low):] {
				if p.ord >= s.high {
					break
				}
				i := p.ord - s.low
				s.term[i/64] |= 1 << (i % 64)
				s.counts[i] += p.tf
			}
		}
	}
	for w, set := range s.term {
		s.seen[w] |= set
		for ; set != 0; set &= set - 1 {
			i := w*64 + bits.TrailingZeros64(set)
			s.scores[i] += score(c.weight, s.counts[i], s.lens[int(s.low)+i], s.slope)
			s.counts[i] = 0
		}
	}
	s.term = windowBits{}
}

// finish looks up the remaining clauses in the documents of the window that have a score, and takes the best.
func (s *scorer) finish() {
	rest := 0.0
	for _, c := range s.lookup {
		rest += c.bound
	}
	for n := len(s.lookup) - 1; n >= 0; n-- {
		c := s.lookup[n]
		left := s.prune(rest)
		rest -= c.bound
		if left > c.blocksBetween(s.low, s.high)*blockDocs/lookupCost {
			s.addScores(c)
		} else if left > 0 {
			s.lookUp(c, rest)
		}
	}
	for w, set := range s.seen {
		for ; set != 0; set &= set - 1 {
			i := w*64 + bits.TrailingZeros64(set)
			sum, ord := s.scores[i], s.low+uint32(i)
			s.scores[i] = 0
			if s.full() && sum*slack < s.worst().Score || s.dead.has(ord) || !s.accepts(ord) {
				continue
			}
			if len(s.lookup) > 0 {
				sum = s.sum(ord)
			}
			s.take(Hit{ID: s.ids[ord], Score: sum})
		}
	}
	s.seen = windowBits{}
}

// prune removes the documents of the window that cannot be among the best with this additional score, and returns how
// many are left.
func (s *scorer) prune(rest float64) (left int) {
	least := s.worst().Score/slack - rest
	for w, set := range s.seen {
		for ; set != 0; set &= set - 1 {
			if i := w*64 + bits.TrailingZeros64(set); s.scores[i]*slack < least {
				s.seen[w] &^= set & -set
				s.scores[i] = 0
			} else {
				left++
			}
		}
	}
	return left
}

// lookUp adds the scores of a clause in the documents of the window, except where a bound is too low. rest is the bound
// of the clauses that follow.
func (s *scorer) lookUp(c *clause, rest float64) {
	least := s.worst().Score/slack - rest
	for w, set := range s.seen {
		for ; set != 0; set &= set - 1 {
			i := w*64 + bits.TrailingZeros64(set)
			ord := s.low + uint32(i)
			if len(c.cursors) == 1 {
				cur := &c.cursors[0]
				if block := cur.find(ord); block == len(cur.blocks) || (s.scores[i]+s.blockBound(c, cur, block))*slack < least {
					continue // without this score the document is not among the best
				}
			}
			if tf := c.tf(ord); tf > 0 {
				s.scores[i] += score(c.weight, tf, s.lens[ord], s.slope)
			}
		}
	}
}

// sum returns the score of a document.
func (s *scorer) sum(ord uint32) (sum float64) {
	for i := range s.clauses {
		c := &s.clauses[i]
		if c.bound == 0 {
			continue
		}
		if tf := c.tf(ord); tf > 0 {
			sum += score(c.weight, tf, s.lens[ord], s.slope)
		}
	}
	return sum
}

// blocksBetween returns the number of blocks that can have documents from low to below high.
func (c *clause) blocksBetween(low, high uint32) (n int) {
	for i := range c.cursors {
		n += c.cursors[i].find(high) - c.cursors[i].find(low)
	}
	return n
}

// tf returns the count of the term in a document.
func (c *clause) tf(ord uint32) (tf uint32) {
	for i := range c.cursors {
		tf += c.cursors[i].tf(ord)
	}
	return tf
}

// full reports whether as many hits as wanted were found, so that others must be better than the worst of them.
func (s *search) full() bool { return s.limit > 0 && len(s.found) == s.limit }

// worst is the worst hit. It requires full.
func (s *search) worst() Hit { return flip(s.found[0]) }

// flip returns a hit that sorts the other way round.
func flip(h Hit) Hit { return Hit{ID: ^h.ID, Score: -h.Score} }

// take adds a hit, unless it is not among the best.
func (s *search) take(h Hit) {
	switch {
	case s.limit == 0:
		s.found = append(s.found, h)
	case !s.full():
		if s.found = append(s.found, flip(h)); s.full() {
			buildHeap(s.found)
		}
	case h.before(s.worst()):
		s.found[0] = flip(h)
		sink(s.found, 0)
	}
}

// hits returns the hits that were taken, unordered.
func (s *search) hits() []Hit {
	if s.limit > 0 {
		for i, h := range s.found {
			s.found[i] = flip(h)
		}
	}
	return s.found
}
