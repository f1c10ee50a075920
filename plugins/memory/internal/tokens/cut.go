package tokens

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cut cuts a text by the tokens of cl100k_base; see [Encoding.Cut].
func Cut(text string, limit int) (head string, count int) { return (*Encoding)(nil).Cut(text, limit) }

// Cut returns the longest beginning of the text with at most limit tokens that
// ends at a sensible position, and its number of tokens. It prefers the end of a
// paragraph, a sentence, a line or a word, in this order, if that keeps half of
// the possible length, and avoids cutting fenced code. It never splits a
// character.
func (e *Encoding) Cut(text string, limit int) (head string, count int) {
	if limit <= 0 {
		return "", 0
	}
	end, count, all := e.prefix(text, limit)
	if all {
		return text, count
	}
	for end > 0 {
		head = strings.TrimRightFunc(text[:place(text, end)], unicode.IsSpace)
		if count = e.Count(head); count <= limit {
			return head, count
		}
		end = runeStart(text, end-max(1, end/64)) // rare: one token more than in the whole text
	}
	return "", 0
}

// place returns where to cut at or before end.
func place(text string, end int) int {
	at := Break(text, end)
	fence, open := openFence(text[:at])
	switch {
	case !open:
		return at
	case fence >= end/4:
		return fence
	}
	if line := strings.LastIndexByte(text[:end], '\n'); line >= end/2 {
		return line + 1
	}
	return at
}

// Break returns where to cut a text at or before the byte at end: at the end of
// a paragraph, a sentence, a line or a word in the second half, else between two
// characters.
func Break(text string, end int) int {
	half := end / 2
	if i := strings.LastIndex(text[half:end], "\n\n"); i >= 0 {
		return half + i
	}
	if strings.HasPrefix(text[end:], "\n\n") {
		return end
	}
	if i := lastSentence(text, half, end); i > 0 {
		return i
	}
	if i := strings.LastIndexByte(text[half:end], '\n'); i >= 0 {
		return half + i
	}
	if r, _ := utf8.DecodeRuneInString(text[end:]); unicode.IsSpace(r) {
		return end
	}
	if i := strings.LastIndexFunc(text[half:end], unicode.IsSpace); i >= 0 {
		return half + i
	}
	return runeStart(text, end)
}

// lastSentence returns the end of the last sentence between from and end, or 0.
func lastSentence(text string, from, end int) int {
	for i := end; i > from; {
		r, size := utf8.DecodeLastRuneInString(text[:i])
		switch r {
		case '。', '！', '？':
			return i
		case '.', '!', '?', '…':
			if next, _ := utf8.DecodeRuneInString(text[i:]); unicode.IsSpace(next) {
				return i
			}
		}
		i -= size
	}
	return 0
}

// openFence returns the beginning of the fenced code that the text ends in.
func openFence(text string) (start int, open bool) {
	var fence string
	for at := 0; at < len(text); {
		line, _, _ := strings.Cut(text[at:], "\n")
		mark := fenceMark(line)
		switch {
		case mark == "":
		case fence == "":
			fence, start = mark, at
		case strings.HasPrefix(mark, fence) && strings.TrimSpace(line) == mark:
			fence = ""
		}
		at += len(line) + 1
	}
	return start, fence != ""
}

// fenceMark returns the characters that begin or end fenced code in a line.
func fenceMark(line string) string {
	trimmed := strings.TrimLeft(line, " ")
	if len(line)-len(trimmed) > 3 {
		return ""
	}
	for _, c := range []string{"`", "~"} {
		if rest := strings.TrimLeft(trimmed, c); len(trimmed)-len(rest) >= 3 {
			return trimmed[:len(trimmed)-len(rest)]
		}
	}
	return ""
}
