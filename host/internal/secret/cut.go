package secret

import (
	"regexp"
	"strings"
	"sync"
)

// ellipsis is where somebody has cut a text, with the quote that may stand
// before the dots.
var ellipsis = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("[\"'`]?(?:\\.\\.\\.|\u2026)") })

// withoutCut masks secrets of which a text shows no more than the beginning,
// as messages do with what is too long for them.
func (s *Set) withoutCut(text string) string {
	if !strings.Contains(text, "...") && !strings.Contains(text, "\u2026") {
		return text
	}
	var b strings.Builder
	end := 0
	for _, at := range ellipsis().FindAllStringIndex(text, -1) {
		before := text[end:at[0]]
		if shown := s.shown(before); shown > 0 {
			before = before[:len(before)-shown] + Mask
		}
		b.WriteString(before)
		end = at[0]
	}
	b.WriteString(text[end:])
	return b.String()
}

// shown is how much of a secret stands at the end of a text.
func (s *Set) shown(text string) int {
	longest := 0
	for _, form := range s.masked {
		for n := min(len(form), len(text)); n > max(longest, wholeOnly-1); n-- {
			if text[len(text)-n] == form[0] && strings.HasSuffix(text, form[:n]) {
				longest = n
			}
		}
	}
	return longest
}
