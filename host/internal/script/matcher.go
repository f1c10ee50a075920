package script

import "strings"

// stepsPerCheck is the number of steps of a match between checks of the
// deadline.
const stepsPerCheck = 1 << 14

// matcher matches a pattern against a subject. It backtracks as Lua's matcher
// does, but counts its steps and stops when stopped returns true.
type matcher struct {
	*pattern
	subject  string
	captures [maxCaptures]capture
	steps    int
	stopped  func() bool
}

// capture is a part of the subject; end is positionCapture for ().
type capture struct{ start, end int }

const positionCapture = -1

// matchStopped is the panic value of a stopped matcher.
type matchStopped struct{}

func (m *matcher) step(n int) {
	if m.steps += n; m.steps < stepsPerCheck {
		return
	}
	m.steps = 0
	if m.stopped() {
		panic(matchStopped{})
	}
}

// find returns the first match at or after init.
func (m *matcher) find(init int) (start, end int, ok bool) {
	for s := init; s <= len(m.subject); s++ {
		if e := m.match(0, s); e >= 0 {
			return s, e, true
		}
		if m.anchored {
			break
		}
	}
	return 0, 0, false
}

// match matches the items from index at on at s, and returns the end or -1.
func (m *matcher) match(at, s int) int {
	for ; at < len(m.items); at++ {
		m.step(1)
		it := &m.items[at]
		switch it.kind {
		case oneChar:
			if s >= len(m.subject) || !it.set.has(m.subject[s]) {
				return -1
			}
			s++
		case optional:
			if s < len(m.subject) && it.set.has(m.subject[s]) {
				if e := m.match(at+1, s+1); e >= 0 {
					return e
				}
			}
		case greedy:
			return m.greedy(it, at, s)
		case lazy:
			return m.lazy(it, at, s)
		case openGroup, closeGroup, position:
			return m.group(it, at, s)
		case backRef:
			c := m.captures[it.group]
			part := m.subject[c.start:max(c.end, c.start)]
			m.step(len(part) / 16)
			if !strings.HasPrefix(m.subject[s:], part) {
				return -1
			}
			s += len(part)
		case balanced:
			if s = m.balanced(it, s); s < 0 {
				return -1
			}
		case frontier:
			if m.inSet(it, s-1) || !m.inSet(it, s) {
				return -1
			}
		case atEnd:
			if s != len(m.subject) {
				return -1
			}
		}
	}
	return s
}

// inSet treats both ends of the subject as a zero byte.
func (m *matcher) inSet(it *item, s int) bool {
	if s < 0 || s >= len(m.subject) {
		return it.set.has(0)
	}
	return it.set.has(m.subject[s])
}

func (m *matcher) greedy(it *item, at, s int) int {
	n := 0
	for s+n < len(m.subject) && it.set.has(m.subject[s+n]) {
		n++
	}
	m.step(n)
	for ; n >= it.least; n-- {
		if e := m.match(at+1, s+n); e >= 0 {
			return e
		}
	}
	return -1
}

func (m *matcher) lazy(it *item, at, s int) int {
	for {
		if e := m.match(at+1, s); e >= 0 {
			return e
		}
		if s >= len(m.subject) || !it.set.has(m.subject[s]) {
			return -1
		}
		m.step(1)
		s++
	}
}

// group sets a capture and removes it if the rest does not match.
func (m *matcher) group(it *item, at, s int) int {
	c := &m.captures[it.group]
	saved := *c
	switch it.kind {
	case openGroup:
		*c = capture{s, s}
	case closeGroup:
		c.end = s
	default:
		*c = capture{s, positionCapture}
	}
	e := m.match(at+1, s)
	if e < 0 {
		*c = saved
	}
	return e
}

func (m *matcher) balanced(it *item, s int) int {
	if s >= len(m.subject) || m.subject[s] != it.x {
		return -1
	}
	depth := 1
	for i := s + 1; i < len(m.subject); i++ {
		switch m.subject[i] {
		case it.y:
			if depth--; depth == 0 {
				m.step(i - s)
				return i + 1
			}
		case it.x:
			depth++
		}
	}
	m.step(len(m.subject) - s)
	return -1
}
