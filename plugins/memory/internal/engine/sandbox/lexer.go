package sandbox

import (
	"strings"
	"sync"
)

// IsWord reports whether a byte can be in a name or a keyword.
func IsWord(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
}

// WordEnd returns the end of the word at an offset.
func WordEnd(s string, at int) int {
	for at < len(s) && IsWord(s[at]) {
		at++
	}
	return at
}

// QuoteEnd returns the end of the quoted text at an offset, in which a doubled quote is an escaped quote. If the text
// is not closed, that is the end of s.
func QuoteEnd(s string, at int) (end int, closed bool) {
	quote := s[at]
	for i := at + 1; i < len(s); i++ {
		if s[i] != quote {
			continue
		}
		if i+1 < len(s) && s[i+1] == quote {
			i++
			continue
		}
		return i + 1, true
	}
	return len(s), false
}

// Words returns a function that returns a set of words. The first call builds it, so that it does not delay the start.
func Words(text string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		set := map[string]bool{}
		for w := range strings.FieldsSeq(text) {
			set[w] = true
		}
		return set
	})
}
