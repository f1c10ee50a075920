package extract

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pdfLine is a line of text in the order of the content stream.
type pdfLine struct {
	parts []linePart
	size  float64 // of the largest font
}

// linePart is the text of a glyph, or a space that separates words.
type linePart struct {
	text       string
	start, end float64 // along the line
	isGap      bool    // a space that is not in the file
}

// text returns the line in reading order. Glyphs of scripts that are written from right
// to left are drawn in visual order.
func (l *pdfLine) text() string {
	isRTL := false
	for _, part := range l.parts {
		isRTL = isRTL || part.text >= "\u0590" && classOf(part.text) == rightToLeft
	}
	if !isRTL || l.isReadingOrder() {
		var b strings.Builder
		for _, part := range l.parts {
			b.WriteString(part.text)
		}
		return b.String()
	}
	return strings.Join(readingOrder(l.seen()), "")
}

// seen returns the glyphs in visual order, from left to right, with spaces where there
// are gaps.
func (l *pdfLine) seen() []string {
	var glyphs []linePart
	for _, part := range l.parts {
		if !part.isGap {
			glyphs = append(glyphs, part)
		}
	}
	sort.SliceStable(glyphs, func(i, j int) bool { return glyphs[i].start < glyphs[j].start })
	var list []string
	for i, part := range glyphs {
		if i > 0 && part.start-glyphs[i-1].end > gapOfSpace*l.size && part.text != " " && list[len(list)-1] != " " {
			list = append(list, " ")
		}
		if part.text != " " || len(list) > 0 && list[len(list)-1] != " " {
			list = append(list, part.text)
		}
	}
	return list
}

// isReadingOrder reports whether the producer has drawn the line in reading order
// instead. Its letters are then in reading order from left to right: letters that only
// end words are at the ends of its words, and the Arabic article is at their beginnings.
func (l *pdfLine) isReadingOrder() bool {
	ends, begins := 0, 0
	for word := range strings.FieldsSeq(strings.Join(l.seen(), "")) {
		word = strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) })
		first, size := utf8.DecodeRuneInString(word)
		last, _ := utf8.DecodeLastRuneInString(word)
		if size == len(word) {
			continue
		}
		if isFinal(last) || strings.HasPrefix(word, "ال") {
			ends++
		}
		if isFinal(first) || strings.HasSuffix(word, "لا") {
			begins++
		}
	}
	return ends > begins
}

// isFinal reports whether a letter of Hebrew or Arabic occurs only at the end of words.
func isFinal(r rune) bool {
	switch r {
	case 'ך', 'ם', 'ן', 'ף', 'ץ', 'ة', 'ى':
		return true
	}
	return false
}

// class is the role of a glyph in the direction of a line.
type class int

const (
	neutral class = iota
	leftToRight
	rightToLeft
	digit
)

func classOf(text string) class {
	r, _ := utf8.DecodeRuneInString(text)
	switch {
	case unicode.IsDigit(r):
		return digit
	case unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko):
		return rightToLeft
	case unicode.IsLetter(r):
		return leftToRight
	}
	return neutral
}

// readingOrder rearranges glyphs from visual order into reading order.
func readingOrder(glyphs []string) []string {
	if isFromRight(glyphs) {
		return fromRight(glyphs)
	}
	// A line from left to right, with words from right to left in it.
	var list []string
	for i := 0; i < len(glyphs); {
		if classOf(glyphs[i]) != rightToLeft {
			list = append(list, glyphs[i])
			i++
			continue
		}
		end := i + 1
		for j := end; j < len(glyphs) && classOf(glyphs[j]) != leftToRight; j++ {
			if classOf(glyphs[j]) == rightToLeft {
				end = j + 1
			}
		}
		list = append(list, fromRight(glyphs[i:end])...)
		i = end
	}
	return list
}

// isFromRight reports whether a line is read from right to left: it begins and ends
// with letters of that direction, or mostly consists of them.
func isFromRight(glyphs []string) bool {
	count := map[class]int{}
	first, last := neutral, neutral
	for _, glyph := range glyphs {
		c := classOf(glyph)
		count[c]++
		if c == rightToLeft || c == leftToRight {
			last = c
			if first == neutral {
				first = c
			}
		}
	}
	if first == last {
		return first == rightToLeft
	}
	return count[rightToLeft] >= count[leftToRight]
}

// fromRight reverses glyphs, except for the words and numbers in them that are read
// from left to right.
func fromRight(glyphs []string) []string {
	list := make([]string, 0, len(glyphs))
	isMirrored := false
	for i := len(glyphs) - 1; i >= 0; i-- {
		if at := strings.Index(brackets, glyphs[i]); at >= 0 {
			isMirrored = at%2 == 1 // the first one read is the closing one
			break
		}
	}
	for end := len(glyphs); end > 0; {
		begin := end - 1
		switch classOf(glyphs[begin]) {
		case leftToRight, digit:
			begin = runBegin(glyphs[:end])
			list = append(list, glyphs[begin:end]...)
		default:
			glyph := glyphs[begin]
			if at := strings.Index(brackets, glyph); at >= 0 && isMirrored {
				glyph = string(brackets[at^1])
			}
			list = append(list, glyph)
		}
		end = begin
	}
	return list
}

// brackets lists pairs, which producers write in visual or in reading order.
const brackets = "()[]{}<>"

// runBegin returns the beginning of the left-to-right run that ends with the last
// glyph: words with the characters between them, or one number.
func runBegin(glyphs []string) int {
	begin := len(glyphs) - 1
	for i := begin - 1; i >= 0; i-- {
		switch classOf(glyphs[i]) {
		case rightToLeft:
			return begin
		case leftToRight:
			begin = i
		case digit:
			if begin == i+1 || begin == i+2 && strings.Contains(".,:/-", glyphs[i+1]) {
				begin = i
			}
		case neutral:
			if classOf(glyphs[begin]) == digit && !strings.Contains(".,:/-", glyphs[i]) && !hasLetterBefore(glyphs[:i]) {
				return begin
			}
		}
	}
	return begin
}

// hasLetterBefore reports whether the last letter of glyphs is read from left to
// right.
func hasLetterBefore(glyphs []string) bool {
	for i := len(glyphs) - 1; i >= 0; i-- {
		switch classOf(glyphs[i]) {
		case leftToRight:
			return true
		case rightToLeft:
			return false
		}
	}
	return false
}
