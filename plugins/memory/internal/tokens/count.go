package tokens

import (
	"unicode/utf8"
)

const (
	// segment is the number of bytes that the tokenizer gets at a time: for some
	// texts its time grows faster than their length.
	segment = 4096
	// blanks is the same for white space, where the time grows fastest.
	blanks = 512
)

// Count returns the number of tokens of cl100k_base; see [Encoding.Count].
func Count(text string) int { return (*Encoding)(nil).Count(text) }

// Count returns the number of tokens. The names of special tokens count as text.
// A text without a break within 4 KB is counted in parts, with an error of at
// most about a token for each. It takes about 0.3 µs per byte and is safe for
// concurrent use.
func (e *Encoding) Count(text string) int {
	total := 0
	for text != "" {
		end := segmentEnd(text)
		total += e.countSegment(text[:end])
		text = text[end:]
	}
	return total
}

// segmentEnd returns the end of the first segment of the text. If possible, it is
// a position where the tokenizer always ends a token, so the counts of the
// segments add up to the count of the text.
func segmentEnd(text string) int {
	if len(text) <= blanks {
		return len(text)
	}
	safe, run := 0, 0
	for i := range min(len(text), segment) {
		if isSafe(text, i) {
			safe = i
		}
		if !isBlank(text[i]) {
			run = 0
			continue
		}
		if run++; run == blanks {
			return i + 1
		}
	}
	if len(text) <= segment {
		return len(text)
	}
	if safe > 0 {
		return safe
	}
	return runeStart(text, segment)
}

// isSafe reports whether a token always ends before byte i: after the last of a
// run of line breaks (and slashes, in o200k_base), or before the space between two words.
func isSafe(text string, i int) bool {
	if i == 0 || i+1 >= len(text) {
		return false
	}
	before, here := text[i-1], text[i]
	switch {
	case before == '\n':
		return !isBlank(here) && here != '/' && here < utf8.RuneSelf
	case here == ' ':
		return isASCIILetter(before) && isASCIILetter(text[i+1])
	}
	return false
}

func isBlank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

func isASCIILetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// runeStart returns the beginning of the rune at offset i, or i if the text is
// not UTF-8 there.
func runeStart(text string, i int) int {
	if i >= len(text) {
		return len(text)
	}
	for back := i; back >= 0 && back > i-utf8.UTFMax; back-- {
		if utf8.RuneStart(text[back]) {
			return back
		}
	}
	return i
}

// prefix returns the length of the longest beginning of the text with about
// limit tokens; all reports whether that is the whole text.
func (e *Encoding) prefix(text string, limit int) (end, count int, all bool) {
	for end < len(text) {
		next := end + segmentEnd(text[end:])
		n := e.countSegment(text[end:next])
		if count+n > limit {
			return end + e.tokensEnd(text[end:next], limit-count), count, false
		}
		end, count = next, count+n
	}
	return end, count, true
}
