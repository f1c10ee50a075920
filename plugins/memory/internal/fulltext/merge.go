package fulltext

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
)

const (
	// mergeWidth is how many segments of about one size are merged. Each level
	// is that many times larger than the one below, so a document is written
	// once per level, and a search meets fewer than mergeWidth segments per
	// level.
	mergeWidth = 8
	levelBytes = 4 << 10
	maxMerge   = 2 * mergeWidth
)

var errStopped = errors.New("the merge was given up")

// level tells which segments are of about one size.
func level(size int64) int {
	return (bits.Len64(uint64(size/levelBytes)) - 1 + 3) / 3 // log 8
}

// pickMerge returns the segments to merge next: those of the lowest crowded
// level, else one that is mostly dead. It marks them.
func (x *Index) pickMerge() []*liveSegment {
	x.mu.Lock()
	defer x.mu.Unlock()
	byLevel := map[int][]*liveSegment{}
	var wasted []*liveSegment
	for _, s := range x.segments {
		byLevel[level(s.size)] = append(byLevel[level(s.size)], s)
		if s.saved.n > len(s.ids)/2 && wasted == nil {
			wasted = []*liveSegment{s}
		}
	}
	picked := wasted
	for l := range 64 {
		if len(byLevel[l]) >= mergeWidth {
			picked = byLevel[l][:min(len(byLevel[l]), maxMerge)]
			break
		}
	}
	for _, s := range picked {
		s.merging = true
	}
	return picked
}

// mergeAll merges until nothing is left to merge.
func (x *Index) mergeAll() error {
	for {
		picked := x.pickMerge()
		if picked == nil {
			return nil
		}
		err := x.merge(picked)
		x.mu.Lock()
		for _, s := range picked {
			s.merging = false
		}
		x.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// merge makes one segment of several.
func (x *Index) merge(picked []*liveSegment) error {
	sources := make([]*mergeSource, 0, len(picked))
	x.mu.RLock()
	for _, s := range picked {
		s.refs.Add(1)
		defer s.release()
		sources = append(sources, &mergeSource{segment: s.segment, dead: s.saved})
	}
	x.mu.RUnlock()
	fresh, err := x.writeSegment(func(w io.Writer) (int, error) {
		return mergeSegments(w, x.lang, sources, x.stop)
	})
	if err != nil {
		return fmt.Errorf("merge segments: %w", err)
	}
	x.commit.Lock()
	defer x.commit.Unlock()
	x.mu.Lock()
	// A flush that failed has frozen a state that is not on disk, and a reset
	// has taken the sources away: both leave nothing to replace.
	stale := x.frozen != nil || x.broken != nil
	for i, s := range picked {
		stale = stale || !slices.Contains(x.segments, s)
		if fresh != nil {
			s.saved.since(sources[i].dead, func(ord uint32) { fresh.saveLater(s.ids[ord]) })
		}
	}
	watermark, keep := x.watermark, replace(x.segments, picked, fresh)
	x.mu.Unlock()
	if stale {
		if fresh != nil {
			x.retire([]*liveSegment{fresh})
		}
		return errStopped
	}
	if err := x.writeManifest(watermark, keep); err != nil {
		x.leave(fresh)
		return err
	}
	x.mu.Lock()
	if fresh != nil {
		for i, s := range picked {
			s.dead.since(sources[i].dead, func(ord uint32) { fresh.killLater(s.ids[ord]) })
		}
	}
	x.segments = keep
	x.mu.Unlock()
	x.retire(picked)
	return nil
}

// gone is the new number of a document that is dead.
const gone = math.MaxUint32

// entry is a posting on its way into a new segment.
type entry struct {
	posting
	positions []byte
}

// mergeSource is a segment that is merged.
type mergeSource struct {
	*segment
	dead   deadSet
	ords   []uint32 // new numbers of the documents, or gone
	cursor *tableCursor
	more   bool
	docs   listWindow
}

// listWindow reads lists that follow each other with few calls.
type listWindow struct {
	buf []byte
	off int64
}

// mergeSegments writes the live documents of the sources as one segment.
func mergeSegments(w io.Writer, lang *language, sources []*mergeSource, stop <-chan struct{}) (docs int, err error) {
	ids, lens, err := renumber(sources)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	out := newSegmentWriter(w, ids, lens)
	for _, s := range sources {
		s.cursor = s.forms.seek("")
		s.more = s.cursor.next()
	}
	var form []byte
	var entries []entry
	for steps := 0; ; steps++ {
		if steps%256 == 0 {
			select {
			case <-stop:
				return 0, errStopped
			default:
			}
		}
		var first *mergeSource
		for _, s := range sources {
			if s.cursor.err != nil {
				return 0, s.cursor.err
			}
			if s.more && (first == nil || string(s.cursor.key) < string(first.cursor.key)) {
				first = s
			}
		}
		if first == nil {
			return len(ids), out.finish()
		}
		form = append(form[:0], first.cursor.key...)
		entries = entries[:0]
		for _, s := range sources {
			if !s.more || string(s.cursor.key) != string(form) {
				continue
			}
			if entries, err = s.entries(entries); err != nil {
				return 0, err
			}
			s.more = s.cursor.next()
		}
		if err := out.addAll(string(form), lang.keys(string(form)), entries); err != nil {
			return 0, err
		}
	}
}

// addAll adds a form with its entries in any order.
func (s *segmentWriter) addAll(form string, found keys, entries []entry) error {
	byOrd := func(a, b entry) int { return cmp.Compare(a.ord, b.ord) }
	if !slices.IsSortedFunc(entries, byOrd) {
		slices.SortFunc(entries, byOrd)
	}
	for _, e := range entries {
		s.add(e.posting, e.positions)
	}
	return s.end(form, found)
}

// renumber gives the live documents of all sources their new numbers, in the
// order of their IDs.
func renumber(sources []*mergeSource) (ids []int64, lens []uint32, err error) {
	type place struct {
		id     int64
		source int
		ord    uint32
	}
	var places []place
	for i, s := range sources {
		s.ords = make([]uint32, len(s.ids))
		for ord, id := range s.ids {
			s.ords[ord] = gone
			if !s.dead.has(uint32(ord)) {
				places = append(places, place{id, i, uint32(ord)})
			}
		}
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.id, b.id) })
	ids, lens = make([]int64, len(places)), make([]uint32, len(places))
	for i, p := range places {
		if i > 0 && places[i-1].id == p.id {
			return nil, nil, corrupt("the document %d is in two segments", p.id)
		}
		s := sources[p.source]
		ids[i], lens[i], s.ords[p.ord] = p.id, s.lens[p.ord], uint32(i)
	}
	return ids, lens, nil
}

// entries appends the live documents of the form under the cursor.
func (s *mergeSource) entries(out []entry) ([]entry, error) {
	l, err := s.listOf("", s.cursor.value)
	if err != nil {
		return nil, err
	}
	data, err := s.docs.read(s.segment, l.offset, l.docsLen+l.posLen+2*crcBytes)
	if err != nil {
		return nil, err
	}
	docs, ok1 := checked(data[:l.docsLen+crcBytes], s.trust)
	pos, ok2 := checked(data[l.docsLen+crcBytes:], s.trust)
	if !ok1 || !ok2 {
		return nil, corrupt("segment %s has broken bytes at %d", s.name, l.offset)
	}
	postings, whole, err := decodePostings(nil, docs, uint32(len(s.ids)))
	if err != nil || !whole || len(postings) != l.df {
		return nil, errors.Join(err, corrupt("segment %s has a broken list", s.name))
	}
	return appendEntries(out, postings, pos, s.ords)
}

// appendEntries pairs postings with their positions and gives the documents
// their new numbers.
func appendEntries(out []entry, postings []posting, pos []byte, ords []uint32) ([]entry, error) {
	reader := positionReader{pos}
	for _, p := range postings {
		positions, err := reader.take(p.tf)
		if err != nil {
			return nil, err
		}
		if ord := ords[p.ord]; ord != gone {
			out = append(out, entry{posting{ord, p.tf}, positions})
		}
	}
	return out, nil
}

// read returns bytes that stay as they are: entries of several lists are held
// at a time.
func (w *listWindow) read(s *segment, offset int64, size int) ([]byte, error) {
	const ahead = 128 << 10
	if offset < w.off || offset+int64(size) > w.off+int64(len(w.buf)) {
		w.buf = make([]byte, min(max(int64(size), ahead), s.lists-offset))
		w.off = offset
		if _, err := s.file.ReadAt(w.buf, offset); err != nil {
			return nil, readError(err)
		}
	}
	from := int(offset - w.off)
	return w.buf[from : from+size : from+size], nil
}

// writeMem writes the documents of a frozen part that were live then.
func writeMem(w io.Writer, m *memPart) (docs int, err error) {
	type place struct {
		id  int64
		ord uint32
	}
	var places []place
	for ord, id := range m.ids {
		if !m.saved.has(uint32(ord)) {
			places = append(places, place{id, uint32(ord)})
		}
	}
	if len(places) == 0 {
		return 0, nil
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.id, b.id) })
	ids, lens := make([]int64, len(places)), make([]uint32, len(places))
	ords := slices.Repeat([]uint32{gone}, len(m.ids))
	for i, p := range places {
		ids[i], lens[i], ords[p.ord] = p.id, m.lens[p.ord], uint32(i)
	}
	out := newSegmentWriter(w, ids, lens)
	fresh := slices.Clone(m.fresh)
	slices.SortFunc(fresh, byForm)
	terms := mergeTerms(m.sorted, fresh)
	var postings []posting
	var entries []entry
	for _, t := range terms {
		if postings, _, err = decodePostings(postings[:0], t.docs, uint32(len(m.ids))); err != nil {
			return 0, err
		}
		if entries, err = appendEntries(entries[:0], postings, t.pos, ords); err != nil {
			return 0, err
		}
		if err := out.addAll(t.form, t.keys, entries); err != nil {
			return 0, err
		}
	}
	return len(ids), out.finish()
}
