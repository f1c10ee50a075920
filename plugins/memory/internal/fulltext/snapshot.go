package fulltext

// source reads the lists of a part.
type source interface {
	wordLists(word keys, lang *language) ([]list, error)
	prefixLists(prefix, after string, n int) ([]list, error)
	readDocs(l list, buf []byte) ([]byte, error)
	readPositions(l list, buf []byte) ([]byte, error)
}

// view is a part as it was at one moment. Lists of the part in memory may have
// grown since; documents beyond ids are not of this view.
type view struct {
	source
	growing bool // the part in memory: a list may be longer than its view
	ids     []int64
	lens    []uint32
	dead    deadSet
}

// snapshot is the index as it was at one moment.
type snapshot struct {
	views    []view
	segments []*segment
	docs     int
	tokens   int64
}

// snapshot takes one; the caller closes it.
func (x *Index) snapshot() (*snapshot, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.closed {
		return nil, ErrClosed
	}
	if x.broken != nil {
		return nil, x.broken
	}
	s := &snapshot{docs: x.docs, tokens: x.tokens, views: make([]view, 0, len(x.segments)+2)}
	for _, seg := range x.segments {
		seg.refs.Add(1)
		s.segments = append(s.segments, seg.segment)
		s.views = append(s.views, view{source: seg.segment, ids: seg.ids, lens: seg.lens, dead: seg.dead})
	}
	for _, m := range []*memPart{x.frozen, x.mem} {
		if m != nil && len(m.ids) > 0 {
			s.views = append(s.views, view{source: m, growing: true, ids: m.ids, lens: m.lens, dead: m.dead})
		}
	}
	return s, nil
}

func (s *snapshot) close() {
	for _, seg := range s.segments {
		seg.release()
	}
}

// livePostings appends a list's postings of live documents.
func (v *view) livePostings(out []posting, l list, buf *[]byte) ([]posting, error) {
	from := len(out)
	out, err := v.postings(out, l, buf)
	if err != nil || v.dead.n == 0 {
		return out, err
	}
	live := out[:from]
	for _, p := range out[from:] {
		if !v.dead.has(p.ord) {
			live = append(live, p)
		}
	}
	return live, nil
}

// postings appends a list's postings, those of dead documents too.
func (v *view) postings(out []posting, l list, buf *[]byte) ([]posting, error) {
	data, err := v.readDocs(l, *buf)
	if err != nil {
		return out, err
	}
	if !v.growing {
		*buf = data
	}
	from := len(out)
	out, whole, err := decodePostings(out, data, uint32(len(v.ids)))
	if err == nil && !v.growing && (!whole || len(out)-from != l.df) {
		err = corrupt("a list is not as long as its entry says")
	}
	return out, err
}

// hasLive tells whether a list has a live document.
func (v *view) hasLive(l list, tmp *[]posting, buf *[]byte) (bool, error) {
	if !v.growing && v.dead.n < l.df {
		return true, nil
	}
	var err error
	*tmp, err = v.livePostings((*tmp)[:0], l, buf)
	return len(*tmp) > 0, err
}
