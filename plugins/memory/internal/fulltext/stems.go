package fulltext

import (
	"bytes"
	"container/heap"
	"slices"
	"strings"
)

// stems collects the stem entries of a dictionary. They arrive in the order of their forms. To bound memory, all but
// the last ones are kept in sorted runs, encoded as in a block.
type stems struct {
	last   []list
	runs   []*stemRun
	buffer []byte
}

// stemsPerRun bounds the entries that are not yet encoded.
const stemsPerRun = 1 << 14

func (s *stems) add(l list) {
	if s.last = append(s.last, l); len(s.last) == stemsPerRun {
		s.endRun()
	}
}

func (s *stems) endRun() {
	data := s.buffer[:0]
	before := ""
	for _, l := range sorted(s.last, func(a, b *list) int { return strings.Compare(a.key, b.key) }) {
		data = appendEntry(data, sharedBytes(before, l.key), *l)
		before = l.key
	}
	s.runs = append(s.runs, &stemRun{rest: bytes.Clone(data)})
	s.last, s.buffer = s.last[:0], data
}

// each calls use with all entries in the order of their keys. It can be called once.
func (s *stems) each(use func(list)) {
	s.endRun()
	merged := stemHeap(slices.DeleteFunc(s.runs, func(r *stemRun) bool { return !r.next() }))
	heap.Init(&merged)
	for len(merged) > 0 {
		first := merged[0]
		first.key = string(first.bytes)
		use(first.list)
		if first.next() {
			heap.Fix(&merged, 0)
		} else {
			heap.Pop(&merged)
		}
	}
}

// stemRun reads a run. bytes has the key of the current entry.
type stemRun struct {
	list
	bytes, rest []byte
}

func (r *stemRun) next() bool {
	if len(r.rest) == 0 {
		return false
	}
	r.bytes, r.list, r.rest = readEntry(r.bytes, r.rest, formatBlocks)
	return true
}

// stemHeap has the run with the smallest key first.
type stemHeap []*stemRun

func (h stemHeap) Len() int           { return len(h) }
func (h stemHeap) Less(i, j int) bool { return bytes.Compare(h[i].bytes, h[j].bytes) < 0 }
func (h stemHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *stemHeap) Push(x any)        { *h = append(*h, x.(*stemRun)) } //nolint:forcetypeassert // only stemRuns are pushed

func (h *stemHeap) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	*h = (*h)[:last]
	return r
}
