package expr

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

func textFilters() map[string]filter {
	return map[string]filter{
		"capitalize": {apply: func(a *args) any { return capitalize(a.text()) }},
		"center":     {params: params("width"), apply: func(a *args) any { return pad(a.text(), a.int(0, 80), " ", alignCenter) }},
		"format":     {variadic: true, apply: formatFilter},
		"indent":     {params: params("width", "first", "blank"), apply: indentFilter},
		"lower":      {apply: func(a *args) any { return strings.ToLower(a.text()) }},
		"replace":    {params: params("old", "new", "count"), required: 2, apply: replaceFilter},
		"string":     {apply: func(a *args) any { return a.text() }},
		"title":      {apply: func(a *args) any { return title(a.text()) }},
		"trim": {params: params("chars"), apply: func(a *args) any {
			return strip(a, strings.TrimFunc, strings.Trim)
		}},
		"truncate":  {params: params("length", "killwords", "end", "leeway"), apply: truncateFilter},
		"upper":     {apply: func(a *args) any { return upper(a.text()) }},
		"wordcount": {apply: wordcountFilter},
		"wordwrap":  {params: params("width", "break_long_words", "wrapstring", "break_on_hyphens"), apply: wordwrapFilter},
	}
}

// strip trims white space, or the characters of the first argument.
func strip(a *args, space func(string, func(rune) bool) string, set func(string, string) string) string {
	if !a.has(0) || isNull(a.list[0]) {
		return space(a.text(), unicode.IsSpace)
	}
	return set(a.text(), a.str(0, ""))
}

// upper is strings.ToUpper, except that ß becomes SS.
func upper(s string) string { return strings.ReplaceAll(strings.ToUpper(s), "ß", "SS") }

func capitalize(s string) string {
	_, size := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:size]) + strings.ToLower(s[size:])
}

// title converts the first letter of each word to upper case, the rest to lower
// case; words end at white space, hyphens and opening brackets.
func title(s string) string {
	start := true
	return strings.Map(func(r rune) rune {
		first := start
		start = unicode.IsSpace(r) || strings.ContainsRune("-({[<", r)
		if first {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, s)
}

// Reversible returns what filters and Lua functions can make of text while preserving
// most of it: changed in case, reversed, or escaped for markup.
func Reversible(text string) []string {
	backwards := []rune(text)
	slices.Reverse(backwards)
	list := []string{
		text, upper(text), strings.ToUpper(text), strings.ToLower(text), capitalize(text), strings.Map(swapCase, text),
		title(text), title("x" + text)[1:], // at the beginning of a word and inside it
		string(backwards),
	}
	for _, plain := range slices.Clone(list) {
		escaped := markupEscaper().Replace(plain)
		list = append(list, escaped, markupEscaper().Replace(escaped))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

type alignment uint8

const (
	alignLeft alignment = iota
	alignRight
	alignCenter
)

// pad fills a string up to a width; if it is centred, an odd space goes to the
// same side as in Python.
func pad(s string, width int, fill string, align alignment) string {
	missing := width - utf8.RuneCountInString(s)
	if missing <= 0 {
		return s
	}
	padding := repeat(fill, int64(missing))
	before := 0
	switch align {
	case alignRight:
		before = missing
	case alignCenter:
		before = missing/2 + (missing & width & 1)
	}
	before *= len(fill)
	return padding[:before] + s + padding[before:]
}

func indentFilter(a *args) any {
	margin, ok := a.any(0, nil).(string)
	if !ok {
		margin = repeat(" ", int64(a.int(0, 4)))
	}
	first, blank := a.bool(1, false), a.bool(2, false)
	text := a.text()
	lines := strings.Split(text, "\n")
	if len(lines) > maxText/(len(margin)+1) {
		panic(failure{err: ErrTooLong})
	}
	for i, line := range lines {
		if i == 0 && first || i > 0 && (blank || line != "") {
			lines[i] = margin + line
		}
	}
	checkText(len(text) + len(lines)*len(margin))
	return strings.Join(lines, "\n")
}

func replaceFilter(a *args) any {
	s, old, by, count := a.text(), a.str(0, ""), a.str(1, ""), a.int(2, -1)
	found := strings.Count(s, old)
	if count >= 0 {
		found = min(found, count)
	}
	if len(by) > 0 && found > maxText/len(by) {
		panic(failure{err: ErrTooLong})
	}
	return strings.Replace(s, old, by, count)
}

func truncateFilter(a *args) any {
	s, size, end, leeway := []rune(a.text()), a.int(0, 255), a.str(2, "..."), a.int(3, 5)
	endSize := utf8.RuneCountInString(end)
	if size < endSize {
		panic(failf("truncate: the length %d is less than the length of the end %q", size, end))
	}
	if len(s) <= size || len(s)-size <= leeway {
		return string(s)
	}
	kept := string(s[:size-endSize])
	if !a.bool(1, false) {
		if i := strings.LastIndexByte(kept, ' '); i >= 0 {
			kept = kept[:i]
		}
	}
	return kept + end
}

func wordcountFilter(a *args) any {
	words := strings.FieldsFunc(a.text(), func(r rune) bool { return !isWord(r) })
	return int64(len(words))
}

// wordwrapFilter breaks each line at a width, as Python's textwrap does.
func wordwrapFilter(a *args) any {
	w := wrapper{width: a.int(0, 79), breakLong: a.bool(1, true), breakHyphens: a.bool(3, true)}
	if w.width < 1 {
		panic(failf("wordwrap needs a width of at least 1"))
	}
	newline := a.str(2, "\n")
	text := strings.TrimSuffix(a.text(), "\n")
	checkParts(len(text))
	var out []string
	size := 0
	for line := range strings.SplitSeq(text, "\n") {
		a.run.tick()
		for _, wrapped := range w.wrap(line) {
			size += len(wrapped) + len(newline)
			checkText(size)
			out = append(out, wrapped)
		}
	}
	return strings.Join(out, newline)
}
