package tokens

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

const (
	// segment is how many bytes the tokenizer gets at a time: its time grows
	// faster than the length on some texts.
	segment = 4096
	// blanks is the same for white space, where it grows fastest.
	blanks = 512
)

var encoding = sync.OnceValue(codec.NewCl100kBase)

// Count gives the number of tokens. The names of special tokens count as the
// text that they are. A text that has no break within 4 KB is counted in
// parts, which may be off by a token for each of them; it takes about 0.3 µs
// for a byte, whatever the bytes are. It is safe for concurrent use.
func Count(text string) int {
	total := 0
	for text != "" {
		end := segmentEnd(text)
		total += countSegment(text[:end])
		text = text[end:]
	}
	return total
}

func countSegment(text string) int {
	n, err := encoding().Count(text)
	if err != nil {
		return len(text) // no token is shorter than a byte
	}
	return n
}

// segmentEnd is where the first segment of the text ends. Where it can it is
// a place at which the tokenizer ends a token in any case, so that the
// segments' counts add up to the count of the whole.
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

// isSafe says whether a token ends before byte i whatever is around: after the
// last of some line breaks, or before the space between two words.
func isSafe(text string, i int) bool {
	if i == 0 || i+1 >= len(text) {
		return false
	}
	before, here := text[i-1], text[i]
	switch {
	case before == '\n':
		return !isBlank(here) && here < utf8.RuneSelf
	case here == ' ':
		return isASCIILetter(before) && isASCIILetter(text[i+1])
	}
	return false
}

func isBlank(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

func isASCIILetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// runeStart is the beginning of the rune at offset i, or i where the text is
// no UTF-8 there.
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

// prefix is the longest beginning of the text, in bytes, that certainly is
// about limit tokens; all is true where that is the whole text.
func prefix(text string, limit int) (end, count int, all bool) {
	for end < len(text) {
		next := end + segmentEnd(text[end:])
		n := countSegment(text[end:next])
		if count+n > limit {
			return end + tokensEnd(text[end:next], limit-count), count, false
		}
		end, count = next, count+n
	}
	return end, count, true
}

// tokensEnd is where the first n tokens of a segment end.
func tokensEnd(text string, n int) int {
	_, parts, err := encoding().Encode(text)
	if err != nil {
		return runeStart(text, min(n, len(text)))
	}
	end := len(strings.Join(parts[:min(n, len(parts))], ""))
	return runeStart(text, end) // what is no UTF-8 is longer in the tokens than in the text
}
