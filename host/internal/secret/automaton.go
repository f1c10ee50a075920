package secret

import "strings"

// automaton finds all patterns in a text in one pass (Aho-Corasick). It is
// immutable once built.
type automaton struct {
	root  [256]int32
	nodes []node
	// pairs has a bit for each pair of characters at the start of a pattern, to
	// skip most of a text.
	pairs [1 << 11]uint32
}

// node is a prefix of patterns. Links are indexes; 0 is the root, the empty
// prefix.
type node struct {
	child, sibling int32
	// fail is the longest proper suffix that is a prefix too.
	fail int32
	// found is the longest suffix that is a whole pattern; 0 = none.
	found int32
	depth int32
	// shortest is the length of the shortest pattern with this prefix.
	shortest int32
	// owner is the secret of the first such pattern.
	owner int32
	char  byte
}

// newAutomaton returns an automaton with capacity for patterns of size bytes.
func newAutomaton(size int) *automaton { return &automaton{nodes: make([]node, 1, size)} }

// add adds a pattern of at least two characters.
func (a *automaton) add(pattern string, owner int32) {
	pair := int(pattern[0])<<8 | int(pattern[1])
	a.pairs[pair>>5] |= 1 << (pair & 31)
	at := int32(0)
	for i := range len(pattern) {
		next := a.next(at, pattern[i])
		if next == 0 {
			next = int32(len(a.nodes))
			n := node{depth: a.nodes[at].depth + 1, shortest: int32(len(pattern)), owner: owner, char: pattern[i]}
			if at == 0 {
				a.root[n.char] = next
			} else {
				n.sibling = a.nodes[at].child
				a.nodes[at].child = next
			}
			a.nodes = append(a.nodes, n)
		}
		at = next
		a.nodes[at].shortest = min(a.nodes[at].shortest, int32(len(pattern)))
	}
	a.nodes[at].found = at
}

// next returns the prefix that is one character longer; 0 = there is none.
func (a *automaton) next(at int32, char byte) int32 {
	if at == 0 {
		return a.root[char]
	}
	for n := a.nodes[at].child; n != 0; n = a.nodes[n].sibling {
		if a.nodes[n].char == char {
			return n
		}
	}
	return 0
}

// link sets the suffix links, after all patterns are added.
func (a *automaton) link() {
	queue := make([]int32, 0, len(a.nodes))
	for _, n := range a.root {
		if n != 0 {
			queue = append(queue, n)
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for n := a.nodes[at].child; n != 0; n = a.nodes[n].sibling {
			fail := a.nodes[at].fail
			for fail != 0 && a.next(fail, a.nodes[n].char) == 0 {
				fail = a.nodes[fail].fail
			}
			fail = a.next(fail, a.nodes[n].char)
			a.nodes[n].fail = fail
			if a.nodes[n].found == 0 {
				a.nodes[n].found = a.nodes[fail].found
			}
			queue = append(queue, n)
		}
	}
}

// region is a part of a text that contains the secret of the owner.
type region struct {
	start, end int
	owner      int32
}

const (
	// minShown is the length at which the beginning of a secret is masked at the
	// end of a truncated text, minPrefix elsewhere; in each case at least half of
	// the secret, except before an ellipsis.
	minShown  = 4
	minPrefix = 12
)

// ending is how a text ends.
type ending int

const (
	complete ending = iota
	cutOff          // truncated
	toBeContinued
)

// scan returns the regions in order and without overlaps, and the position after
// which the text may be the beginning of a secret.
func scan[T string | []byte](a *automaton, text T, end ending) (regions []region, rest int) {
	at := int32(0)
	for i := range len(text) {
		c := text[i]
		if at == 0 {
			if i+1 < len(text) {
				if pair := int(c)<<8 | int(text[i+1]); a.pairs[pair>>5]&(1<<(pair&31)) == 0 {
					continue
				}
			}
			at = a.root[c]
			continue
		}
		if a.nodes[at].depth >= minShown && isEllipsis(text, i) {
			regions = cover(regions, region{i - int(a.nodes[at].depth), i, a.nodes[at].owner})
		}
		next := a.next(at, c)
		for next == 0 && at != 0 {
			regions = a.prefix(regions, at, i, minPrefix)
			at = a.nodes[at].fail
			next = a.next(at, c)
		}
		at = next
		if found := a.nodes[at].found; found != 0 {
			regions = cover(regions, region{i + 1 - int(a.nodes[found].depth), i + 1, a.nodes[found].owner})
		}
	}
	for at != 0 && a.nodes[at].child == 0 { // no pattern continues
		at = a.nodes[at].fail
	}
	rest = len(text) - int(a.nodes[at].depth)
	least := minPrefix
	if end == cutOff {
		least = minShown
	}
	for ; at != 0 && end != toBeContinued; at = a.nodes[at].fail {
		regions = a.prefix(regions, at, len(text), least)
	}
	return regions, rest
}

// prefix covers the beginning of a secret that ends before end, if it is long
// enough.
func (a *automaton) prefix(regions []region, at int32, end, least int) []region {
	n := &a.nodes[at]
	if int(n.depth) >= least && 2*n.depth >= n.shortest {
		return cover(regions, region{end - int(n.depth), end, n.owner})
	}
	return regions
}

// cover adds a region, and merges the regions that it overlaps.
func cover(regions []region, r region) []region {
	for len(regions) > 0 {
		last := regions[len(regions)-1]
		if last.end <= r.start {
			break
		}
		if last.start <= r.start && last.end >= r.end {
			return regions
		}
		if last.start < r.start {
			r.start, r.owner = last.start, last.owner
		}
		r.end = max(r.end, last.end)
		regions = regions[:len(regions)-1]
	}
	return append(regions, r)
}

// isEllipsis reports whether a text is truncated at i: three dots, optionally
// after a quote.
func isEllipsis[T string | []byte](text T, i int) bool {
	switch text[i] {
	case '"', '\'', '`':
		i++
	case '.', 0xe2:
	default:
		return false
	}
	tail := string(text[i:min(i+3, len(text))])
	return tail == "..." || strings.HasPrefix(tail, "\u2026")
}
