package script

import (
	"errors"
	"fmt"
	"strings"
)

const (
	maxCaptures = 32
	// maxBranches bounds the items of a pattern that each need a call of match,
	// and thereby its recursion.
	maxBranches = 200
	// maxPattern bounds a pattern's text, because a compiled character takes many
	// times its size.
	maxPattern = 64 << 10
)

// charSet is a set of bytes.
type charSet [4]uint64

func (s *charSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }
func (s *charSet) add(c byte)      { s[c>>6] |= 1 << (c & 63) }

func (s *charSet) addRange(low, high byte) {
	for c := int(low); c <= int(high); c++ {
		s.add(byte(c))
	}
}

func (s *charSet) union(o charSet) {
	for i := range s {
		s[i] |= o[i]
	}
}

func (s *charSet) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

// itemKind is the kind of a pattern's item.
type itemKind byte

const (
	oneChar    itemKind = iota // one byte of the set
	optional                   // ?
	greedy                     // * and +
	lazy                       // -
	openGroup                  // (
	closeGroup                 // )
	position                   // ()
	backRef                    // %1
	balanced                   // %bxy
	frontier                   // %f[set]
	atEnd                      // $ at the end
)

type item struct {
	kind  itemKind
	set   charSet
	least int  // greedy: the minimum repetitions
	group int  // openGroup, closeGroup, position, backRef
	x, y  byte // balanced
}

// pattern is a compiled Lua pattern. It is immutable.
type pattern struct {
	items    []item
	groups   int
	anchored bool
}

// patternParser parses a Lua pattern.
type patternParser struct {
	text     string
	at       int
	out      pattern
	open     []int // groups not yet closed
	closed   [maxCaptures]bool
	branches int
}

// compilePattern parses a Lua 5.1 pattern. anchors reports whether a leading ^
// is an anchor, which it is not in gmatch.
func compilePattern(text string, anchors bool) (*pattern, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("pattern too long: at most %d bytes are allowed", maxPattern)
	}
	p := &patternParser{text: text}
	if anchors && strings.HasPrefix(text, "^") {
		p.out.anchored = true
		p.at = 1
	}
	for p.at < len(text) {
		it, err := p.item()
		if err != nil {
			return nil, fmt.Errorf("malformed pattern: %w", err)
		}
		p.out.items = append(p.out.items, it)
		if it.kind != oneChar {
			p.branches++
		}
		if p.branches > maxBranches {
			return nil, errors.New("pattern too complex")
		}
	}
	if len(p.open) > 0 {
		return nil, errors.New("malformed pattern: unfinished capture")
	}
	return &p.out, nil
}

func (p *patternParser) item() (item, error) {
	c := p.text[p.at]
	switch {
	case c == '(':
		return p.openGroup()
	case c == ')':
		if len(p.open) == 0 {
			return item{}, errors.New("')' without '('")
		}
		p.at++
		group := p.open[len(p.open)-1]
		p.open = p.open[:len(p.open)-1]
		p.closed[group] = true
		return item{kind: closeGroup, group: group}, nil
	case c == '$' && p.at == len(p.text)-1:
		p.at++
		return item{kind: atEnd}, nil
	case c == '%' && p.at+1 < len(p.text):
		switch next := p.text[p.at+1]; {
		case next == 'b':
			return p.balanced()
		case next == 'f':
			return p.frontier()
		case next >= '0' && next <= '9':
			p.at += 2
			group := int(next - '1')
			if group < 0 || group >= p.out.groups || !p.closed[group] {
				return item{}, fmt.Errorf("invalid capture index %%%c", next)
			}
			return item{kind: backRef, group: group}, nil
		}
	}
	set, err := p.class()
	return p.repeated(set), err
}

func (p *patternParser) openGroup() (item, error) {
	if p.out.groups == maxCaptures {
		return item{}, errors.New("too many captures")
	}
	group := p.out.groups
	p.out.groups++
	if strings.HasPrefix(p.text[p.at:], "()") {
		p.at += 2
		p.closed[group] = true
		return item{kind: position, group: group}, nil
	}
	p.at++
	p.open = append(p.open, group)
	return item{kind: openGroup, group: group}, nil
}

func (p *patternParser) balanced() (item, error) {
	if p.at+3 >= len(p.text) {
		return item{}, errors.New("missing arguments to '%b'")
	}
	x, y := p.text[p.at+2], p.text[p.at+3]
	p.at += 4
	return item{kind: balanced, x: x, y: y}, nil
}

func (p *patternParser) frontier() (item, error) {
	p.at += 2
	if p.at >= len(p.text) || p.text[p.at] != '[' {
		return item{}, errors.New("missing '[' after '%f'")
	}
	set, err := p.class()
	return item{kind: frontier, set: set}, err
}

func (p *patternParser) repeated(set charSet) item {
	if p.at < len(p.text) {
		p.at++
		switch p.text[p.at-1] {
		case '?':
			return item{kind: optional, set: set}
		case '*':
			return item{kind: greedy, set: set}
		case '+':
			return item{kind: greedy, set: set, least: 1}
		case '-':
			return item{kind: lazy, set: set}
		}
		p.at--
	}
	return item{kind: oneChar, set: set}
}

// class parses an item that matches one byte: a letter, %a, . or [set].
func (p *patternParser) class() (set charSet, err error) {
	c := p.text[p.at]
	p.at++
	switch c {
	case '.':
		set.invert()
	case '[':
		return p.bracket()
	case '%':
		return p.escape()
	default:
		set.add(c)
	}
	return set, nil
}

func (p *patternParser) escape() (set charSet, err error) {
	if p.at >= len(p.text) {
		return set, errors.New("ends with '%'")
	}
	p.at++
	return letterClass(p.text[p.at-1]), nil
}

func (p *patternParser) bracket() (set charSet, err error) {
	negated := strings.HasPrefix(p.text[p.at:], "^")
	if negated {
		p.at++
	}
	for first := true; ; first = false {
		if p.at >= len(p.text) {
			return set, errors.New("missing ']'")
		}
		c := p.text[p.at]
		p.at++
		switch {
		case c == ']' && !first:
			if negated {
				set.invert()
			}
			return set, nil
		case c == '%':
			class, err := p.escape()
			if err != nil {
				return set, err
			}
			set.union(class)
		case p.at+1 < len(p.text) && p.text[p.at] == '-' && p.text[p.at+1] != ']':
			set.addRange(c, p.text[p.at+1])
			p.at += 2
		default:
			set.add(c)
		}
	}
}

// letterClass returns the set of %c: a character class, its complement for the
// upper-case letter, else the byte itself.
func letterClass(c byte) (set charSet) {
	switch c | 0x20 {
	case 'a':
		set.addRange('a', 'z')
		set.addRange('A', 'Z')
	case 'c':
		set.addRange(0, 31)
		set.add(127)
	case 'd':
		set.addRange('0', '9')
	case 'l':
		set.addRange('a', 'z')
	case 'p':
		set.addRange('!', '/')
		set.addRange(':', '@')
		set.addRange('[', '`')
		set.addRange('{', '~')
	case 's':
		set.addRange('\t', '\r')
		set.add(' ')
	case 'u':
		set.addRange('A', 'Z')
	case 'w':
		set.addRange('a', 'z')
		set.addRange('A', 'Z')
		set.addRange('0', '9')
	case 'x':
		set.addRange('0', '9')
		set.addRange('a', 'f')
		set.addRange('A', 'F')
	case 'z':
		set.add(0)
	default:
		set.add(c)
		return set
	}
	if c >= 'A' && c <= 'Z' {
		set.invert()
	}
	return set
}
