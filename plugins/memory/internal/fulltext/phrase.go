package fulltext

import "slices"

// start is a document and a position where a phrase can start, the document in
// the upper half: starts are compared as numbers.
type start = uint64

// matchPhrase restricts a view to the documents that contain the phrase. It
// goes term by term, and keeps the starts that every term so far agrees with.
func (s *search) matchPhrase(i int, phrase []phraseTerm) {
	v := &s.views[i]
	var starts []start
	for n, t := range phrase {
		lists := s.lists(i, t.term)
		var next []start
		for _, l := range lists {
			next = s.starts(next, v, l, t.offset)
		}
		if len(lists) > 1 {
			slices.Sort(next)
		}
		if n > 0 {
			next = common(starts, next)
		}
		starts = next
		var wanted bitmap
		for _, at := range starts {
			wanted.set(uint32(at >> 32))
		}
		v.restrict(wanted) // the next term is looked up in these only
	}
}

// common returns what is in both; both ascend. It overwrites a.
func common(a, b []start) []start {
	out, i := a[:0], 0
	for _, at := range a {
		for i < len(b) && b[i] < at {
			i++
		}
		if i < len(b) && b[i] == at {
			out = append(out, at)
		}
	}
	return out
}

// starts appends where the phrase starts if the list's form is at its offset.
func (s *search) starts(out []start, v *view, l list, offset uint32) []start {
	c := s.cells
	c.tmp = decodePostings(c.tmp[:0], l.docs(&c.buf), uint32(len(v.ids)))
	positions := l.positions(&c.pos)
	for _, p := range c.tmp {
		var own []byte
		own, positions = takePositions(positions, p.tf)
		if v.dead.has(p.ord) || !v.accepts(p.ord) {
			continue
		}
		c.places = decodePositions(c.places[:0], own)
		for _, place := range c.places {
			if place >= offset {
				out = append(out, start(p.ord)<<32|start(place-offset))
			}
		}
	}
	return out
}
