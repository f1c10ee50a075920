package expr

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// wrapper breaks a line into lines of a width.
type wrapper struct {
	width                   int
	breakLong, breakHyphens bool
}

// wrap returns the lines; an empty line stays one line.
func (w wrapper) wrap(line string) []string {
	chunks := w.chunks(line)
	var out []string
	for len(chunks) > 0 {
		if len(out) > 0 && isBlank(chunks[0]) {
			if chunks = chunks[1:]; len(chunks) == 0 {
				break
			}
		}
		n, size := 0, 0
		for ; n < len(chunks); n++ {
			count, fits := countUpTo(chunks[n], w.width-size)
			if !fits {
				break
			}
			size += count
		}
		taken := chunks[:n:n]
		chunks = chunks[n:]
		if len(chunks) > 0 {
			if _, fits := countUpTo(chunks[0], w.width); !fits {
				var piece string
				if piece, chunks = w.breakWord(chunks, w.width-size, n == 0); piece != "" {
					taken = append(taken, piece)
				}
			}
		}
		if last := len(taken) - 1; last >= 0 && isBlank(taken[last]) {
			taken = taken[:last]
		}
		if len(taken) > 0 {
			out = append(out, strings.Join(taken, ""))
		}
	}
	if len(out) == 0 {
		out = []string{""}
	}
	return out
}

// countUpTo counts the characters of s, and reports whether they are at most n.
func countUpTo(s string, n int) (int, bool) {
	if len(s)/utf8.UTFMax > n {
		return 0, false
	}
	count := utf8.RuneCountInString(s)
	return count, count <= n
}

// breakWord returns the part of a long word that fits; a word that must not be
// broken is returned whole if it is alone on its line.
func (w wrapper) breakWord(chunks []string, space int, alone bool) (string, []string) {
	word := chunks[0]
	if !w.breakLong {
		if alone {
			return word, chunks[1:]
		}
		return "", chunks
	}
	end := 0
	for range space {
		_, size := utf8.DecodeRuneInString(word[end:])
		end += size
	}
	if w.breakHyphens {
		if hyphen := strings.LastIndexByte(word[:end], '-'); hyphen > 0 && strings.Trim(word[:hyphen], "-") != "" {
			end = hyphen + 1
		}
	}
	chunks[0] = word[end:]
	return word[:end], chunks
}

// chunks splits a line into words and white space; a hyphen between letters
// ends a word.
func (w wrapper) chunks(line string) []string {
	var out []string
	start := 0
	runes := []rune(line)
	for i := 1; i <= len(runes); i++ {
		if i == len(runes) || unicode.IsSpace(runes[i]) != unicode.IsSpace(runes[i-1]) || w.breakHyphens && hyphenBefore(runes, i) {
			out = append(out, string(runes[start:i]))
			start = i
		}
	}
	return out
}

func hyphenBefore(runes []rune, i int) bool {
	return runes[i-1] == '-' && i >= 3 && unicode.IsLetter(runes[i-2]) && (unicode.IsLetter(runes[i-3]) || runes[i-3] == '-') &&
		i+1 < len(runes) && unicode.IsLetter(runes[i]) && unicode.IsLetter(runes[i+1])
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }
