package expr

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// texts is a list of strings in the value model.
func texts(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// checkParts fails if a text would have more than n parts, too many for a list.
func checkParts(n int) {
	if n >= maxElements {
		panic(failf("the text has more than %d parts", maxElements))
	}
}

func splitlinesMethod(a *args) any {
	s := a.text()
	checkParts(strings.Count(s, "\n") + strings.Count(s, "\r"))
	if a.bool(0, false) {
		return texts(linesWithEnds(s))
	}
	return texts(splitLines(s))
}

// linesWithEnds splits a text after each line break.
func linesWithEnds(s string) []string {
	var lines []string
	for s != "" {
		end := strings.IndexAny(s, "\r\n") + 1
		if end == 0 {
			end = len(s)
		}
		if strings.HasPrefix(s[end-1:], "\r\n") {
			end++
		}
		lines = append(lines, s[:end])
		s = s[end:]
	}
	return lines
}

// partition returns the text before the separator, the separator and the text
// after it. Without a separator, the whole text is the part that is searched
// last.
func partition(a *args, index func(s, part string) int) any {
	s, separator := a.text(), a.str(0, "")
	if separator == "" {
		panic(failf("partition() needs a separator that is not empty"))
	}
	i := index(s, separator)
	if i >= 0 {
		return []any{s[:i], separator, s[i+len(separator):]}
	}
	if strings.HasPrefix(a.what, "r") {
		return []any{"", "", s}
	}
	return []any{s, "", ""}
}

// mustFind is find, except that a missing part is an error.
func mustFind(a *args, name string, index func(s, part string) int) any {
	i := find(a, index)
	if i == int64(-1) {
		panic(failf("%s(): the part is not in the text", name).hinted("find() returns -1 instead"))
	}
	return i
}

func swapCase(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}

func splitLines(s string) []string {
	lines := linesWithEnds(s)
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, "\r\n")
	}
	return lines
}

func splitMethod(a *args) any {
	s, limit := a.text(), a.int(1, -1)
	if limit >= maxElements {
		limit = -1
	}
	if !a.has(0) || isNull(a.list[0]) {
		return splitFields(s, limit)
	}
	separator := a.str(0, "")
	if separator == "" {
		panic(failf("split() needs a separator that is not empty"))
	}
	checkParts(strings.Count(s, separator))
	if limit < 0 {
		return texts(strings.Split(s, separator))
	}
	return texts(strings.SplitN(s, separator, limit+1))
}

// splitFields splits at white space, at most limit times unless negative.
func splitFields(s string, limit int) any {
	s = strings.TrimSpace(s)
	out := []any{}
	rest := 0 // start of the part after the last field
	for field := range strings.FieldsSeq(s) {
		start := rest + strings.Index(s[rest:], field)
		if len(out) == limit {
			return append(out, s[start:])
		}
		checkParts(len(out))
		out = append(out, field)
		rest = start + len(field)
	}
	return out
}

func rsplitMethod(a *args) any {
	limit := a.int(1, -1)
	if limit < 0 {
		return splitMethod(a)
	}
	s, separator := a.text(), a.str(0, " ")
	if separator == "" {
		panic(failf("rsplit() needs a separator that is not empty"))
	}
	checkParts(strings.Count(s, separator))
	parts := strings.Split(s, separator)
	if head := len(parts) - limit; head > 1 {
		parts = append([]string{strings.Join(parts[:head], separator)}, parts[head:]...)
	}
	return texts(parts)
}

func joinMethod(a *args) any {
	inner := *a
	inner.in = a.list[0]
	inner.list = []any{a.text(), missing{}}
	return joinFilter(&inner)
}

// affix tests for one prefix or suffix, or for one of a list.
func affix(a *args, has func(s, affix string) bool) any {
	candidates := []any{a.list[0]}
	if list, ok := a.list[0].([]any); ok {
		candidates = list
	}
	for _, c := range candidates {
		s, ok := c.(string)
		if ok && has(a.text(), s) {
			return true
		}
	}
	return false
}

// find returns the index of a part in characters, or -1.
func find(a *args, index func(s, part string) int) any {
	s := a.text()
	i := index(s, a.str(0, ""))
	if i > 0 {
		i = utf8.RuneCountInString(s[:i])
	}
	return int64(i)
}

func padMethod(align alignment) func(a *args) any {
	return func(a *args) any {
		fill := a.str(1, " ")
		if utf8.RuneCountInString(fill) != 1 {
			panic(failf("the fill must be one character"))
		}
		return pad(a.text(), a.int(0, 0), fill, align)
	}
}

func zfillMethod(a *args) any {
	s, width := a.text(), a.int(0, 0)
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	return sign + pad(s, width-len(sign), "0", alignRight)
}
