package fulltext

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/the-edge-agent/tea/sdk/x/words"
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

var errStopped = errors.New("the merge was abandoned")

func level(size int64) int {
	return (bits.Len64(uint64(size/levelBytes)) - 1 + 3) / 3 // log 8
}

// source is a part whose live documents are written to a segment.
type source struct {
	*part
	dead bitmap   // when the merge began
	ords []uint32 // new numbers of the documents, or gone
	// ascending reports whether ords ascend. The documents of the part in memory are
	// in the order in which they were added.
	ascending bool
}

// gone marks a dead document in ords.
const gone = math.MaxUint32

// mergeSoon merges in the background. The next Flush returns its error.
func (x *Index) mergeSoon() {
	x.merges.Go(func() {
		if err := x.mergeAll(); err != nil && !errors.Is(err, errStopped) {
			x.noteCorruption(err)
			x.writer.Lock()
			x.failed = err
			x.writer.Unlock()
		}
	})
}

func (x *Index) mergeAll() error {
	x.merging.Lock()
	defer x.merging.Unlock()
	for {
		picked, sources := x.pickMerge()
		if picked == nil {
			return nil
		}
		fresh, err := x.writeSegment(sources)
		if err := x.finishMerge(picked, sources, fresh, err); err != nil {
			return err
		}
	}
}

// pickMerge selects and marks the segments to merge next: the lowest full level, otherwise one segment that is mostly
// dead or has outdated stems.
func (x *Index) pickMerge() (picked []*segment, sources []source) {
	x.writer.Lock()
	defer x.writer.Unlock()
	var levels [64][]*segment
	for _, s := range x.segments {
		l := level(s.size)
		levels[l] = append(levels[l], s)
		if s.gone > len(s.ids)/2 || s.outdated(x.lang) {
			picked = []*segment{s}
		}
	}
	for _, crowd := range levels {
		if len(crowd) >= mergeWidth {
			picked = crowd[:min(len(crowd), maxMerge)]
			break
		}
	}
	for _, s := range picked {
		s.merging = true
		sources = append(sources, source{part: &s.part, dead: slices.Clone(s.dead)})
	}
	return picked, sources
}

// finishMerge replaces the merged segments with the new one. The next flush
// writes the manifest.
func (x *Index) finishMerge(picked []*segment, sources []source, fresh *segment, err error) error {
	x.writer.Lock()
	defer x.writer.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range picked {
		s.merging = false
		if !slices.Contains(x.segments, s) { // Reset was called meanwhile
			err = errStopped
		}
	}
	if err != nil {
		x.drop([]*segment{fresh})
		return err
	}
	for _, s := range sources {
		for ord, id := range s.ids {
			if s.part.dead.has(uint32(ord)) && !s.dead.has(uint32(ord)) {
				n, _ := fresh.find(id) // deleted during the merge
				fresh.kill(n)
			}
		}
	}
	x.segments = slices.DeleteFunc(slices.Clone(x.segments), func(s *segment) bool { return slices.Contains(picked, s) })
	if fresh != nil {
		x.segments = append(x.segments, fresh)
	}
	x.drop(picked)
	x.stale = true
	return nil
}

// writeSegment writes the live documents of the sources to a segment and
// opens it. It returns nil if there are none.
func (x *Index) writeSegment(sources []source) (*segment, error) {
	ids, lens, err := renumber(sources)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	name := fmt.Sprintf("%08d.seg", x.next.Add(1))
	named := manifestSegment{Name: name, Format: formatBlocks, Stems: words.StemsVersion}
	err = writeFile(x.disk, name, func(w io.Writer) (err error) {
		named.Tail, named.Sum, err = x.writeParts(newSegmentWriter(w, x.lang, ids, lens), sources)
		return err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write segment %s: %w", name, err), ignoreMissing(x.disk.remove(name)))
	}
	return openSegment(x.disk, named, x.lang)
}

// renumber merges the live documents, ascending by ID, and assigns them new
// numbers.
func renumber(sources []source) (ids []int64, lens []uint32, err error) {
	type place struct {
		id     int64
		source int
		ord    uint32
	}
	var places []place
	for i := range sources {
		s := &sources[i]
		s.ords, s.ascending = make([]uint32, len(s.ids)), slices.IsSorted(s.ids)
		for ord, id := range s.ids {
			s.ords[ord] = gone
			if !s.dead.has(uint32(ord)) {
				places = append(places, place{id, i, uint32(ord)})
			}
		}
	}
	ids, lens = make([]int64, len(places)), make([]uint32, len(places))
	for i, p := range sorted(places, func(a, b *place) int { return cmp.Compare(a.id, b.id) }) {
		if i > 0 && ids[i-1] == p.id {
			return nil, nil, corrupt("the document %d is in two segments", p.id)
		}
		s := sources[p.source]
		ids[i], lens[i], s.ords[p.ord] = p.id, s.lens[p.ord], uint32(i)
	}
	return ids, lens, nil
}

// writeParts writes the lists of the sources, form by form.
func (x *Index) writeParts(out *segmentWriter, sources []source) (tail int64, sum uint32, err error) {
	defer catch(&err)
	parts := make([]*part, len(sources))
	for i, s := range sources {
		parts[i] = s.part
	}
	readers := make([]reader, len(sources))
	for lists := range walk(parts, "") {
		select {
		case <-x.stop:
			return 0, 0, errStopped
		default:
		}
		form := ""
		for i, l := range lists {
			if l.df > 0 {
				form = l.key
				readers[i].open(&sources[i], l)
			}
		}
		for {
			first := -1
			for i := range readers {
				if readers[i].ok && (first < 0 || readers[i].ord < readers[first].ord) {
					first = i
				}
			}
			if first < 0 {
				break
			}
			out.post(readers[first].posting, readers[first].own)
			readers[first].next()
		}
		out.add(form)
	}
	return out.finish()
}

// reader reads the live documents of a list, with their new numbers, which are
// ascending.
type reader struct {
	entry     // the current entry, if ok
	ok        bool
	source    *source
	rest, all []posting
	positions []byte
	mem       scratch
	buf       []byte
	sorted    []*entry // the entries of a source whose numbers do not ascend
}

// entry is a document of a list, with its positions as they are stored.
type entry struct {
	posting
	own []byte
}

// sorted returns pointers to the elements, sorted. Sorting pointers keeps the binary small: all types share the code.
func sorted[T any](all []T, compare func(a, b *T) int) []*T {
	order := make([]*T, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	slices.SortFunc(order, compare)
	return order
}

func (r *reader) open(s *source, l list) {
	r.source = s
	r.mem.reset()
	c := s.cursor(l, &r.mem)
	r.all = c.all(r.all[:0])
	r.rest, r.positions, r.sorted = r.all, l.positions(&r.buf), nil
	if s.ascending {
		r.next()
		return
	}
	var all []entry
	for r.next(); r.ok; r.next() {
		all = append(all, r.entry)
	}
	r.sorted = sorted(all, func(a, b *entry) int { return cmp.Compare(a.ord, b.ord) })
	r.next()
}

func (r *reader) next() {
	if len(r.sorted) > 0 {
		r.entry, r.sorted, r.ok = *r.sorted[0], r.sorted[1:], true
		return
	}
	for r.ok = false; len(r.rest) > 0 && !r.ok; r.rest = r.rest[1:] {
		p := r.rest[0]
		r.own, r.positions = takePositions(r.positions, p.tf)
		if ord := r.source.ords[p.ord]; ord != gone {
			r.posting, r.ok = posting{ord, p.tf}, true
		}
	}
}
