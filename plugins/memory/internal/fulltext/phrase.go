package fulltext

import "slices"

// begin is a document and a place in it where a phrase may begin, the document
// in the upper half: begins are compared as numbers.
type begin = uint64

// matchPhrase narrows what the view wants to the documents that have the
// phrase. It goes term by term: the places where the phrase may begin are
// those that every term so far agrees with.
func (s *search) matchPhrase(v *scored, number int, phrase []phraseTerm) error {
	lists := make([][]list, len(phrase))
	for i, t := range phrase {
		var err error
		if lists[i], err = s.lists(v, number, t.term); err != nil {
			return err
		}
	}
	ords, err := s.intersect(v, lists)
	if err != nil {
		return err
	}
	begins, next := s.cells.begins[0], s.cells.begins[1]
	for i, t := range phrase {
		next = next[:0]
		for _, l := range lists[i] {
			if len(ords) == 0 {
				break
			}
			if next, err = s.places(next, v, l, t.offset); err != nil {
				return err
			}
		}
		if len(lists[i]) > 1 {
			slices.Sort(next)
		}
		if i == 0 {
			begins, next = next, begins
		} else {
			begins = common(begins, next)
		}
	}
	s.cells.begins = [...][]begin{begins, next}
	for _, ord := range ords {
		v.counts[ord] = 0
	}
	v.wanted, v.filter = make([]uint64, len(v.ids)/64+1), true
	for _, at := range begins {
		ord := uint32(at >> 32)
		v.wanted[ord/64] |= 1 << (ord % 64)
	}
	return nil
}

// common keeps of a what is in b as well; both ascend.
func common(a, b []begin) []begin {
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

// intersect returns the live documents that have every term and that no
// earlier phrase has ruled out. Their counts stay set.
func (s *search) intersect(v *scored, lists [][]list) ([]uint32, error) {
	var seen []uint32
	for i := range lists {
		for _, l := range lists[i] {
			var err error
			if s.cells.tmp, err = v.livePostings(s.cells.tmp[:0], l, &s.cells.buf); err != nil {
				return nil, err
			}
			for _, p := range s.cells.tmp {
				if v.counts[p.ord] != uint32(i) || i == 0 && !v.wants(p.ord) {
					continue
				}
				if i == 0 {
					seen = append(seen, p.ord)
				}
				v.counts[p.ord]++
			}
		}
	}
	all := seen[:0]
	for _, ord := range seen {
		if v.counts[ord] == uint32(len(lists)) {
			all = append(all, ord)
		} else {
			v.counts[ord] = 0
		}
	}
	return all, nil
}

// places appends where the phrase begins if the list's form is at its offset,
// in the documents that have a count.
func (s *search) places(out []begin, v *scored, l list, offset uint32) ([]begin, error) {
	c := s.cells
	var err error
	if c.tmp, err = v.postings(c.tmp[:0], l, &c.buf); err != nil {
		return out, err
	}
	data, err := v.readPositions(l, c.pos)
	if err != nil {
		return out, err
	}
	if !v.growing {
		c.pos = data
	}
	reader := positionReader{data}
	for _, p := range c.tmp {
		taken, err := reader.take(p.tf)
		if err != nil {
			return out, err
		}
		if v.counts[p.ord] == 0 {
			continue
		}
		if c.places, err = decodePositions(c.places[:0], taken); err != nil {
			return out, err
		}
		for _, place := range c.places {
			if place >= offset {
				out = append(out, begin(p.ord)<<32|begin(place-offset))
			}
		}
	}
	return out, nil
}
