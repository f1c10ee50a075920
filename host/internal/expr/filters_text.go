package expr

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

func textFilters() map[string]filter {
	return map[string]filter{
		"capitalize": {apply: func(a *args) (any, error) { return capitalize(a.text()), nil }},
		"center":     {params: params("width"), apply: centerFilter},
		"format":     {variadic: true, apply: formatFilter},
		"indent":     {params: params("width", "first", "blank"), apply: indentFilter},
		"lower":      {apply: func(a *args) (any, error) { return strings.ToLower(a.text()), nil }},
		"replace":    {params: params("old", "new", "count"), required: 2, apply: replaceFilter},
		"string":     {apply: func(a *args) (any, error) { return a.text(), nil }},
		"title":      {apply: func(a *args) (any, error) { return title(a.text()), nil }},
		"trim": {params: params("chars"), apply: func(a *args) (any, error) {
			return strip(a, strings.TrimFunc, strings.Trim), nil
		}},
		"truncate":  {params: params("length", "killwords", "end", "leeway"), apply: truncateFilter},
		"upper":     {apply: func(a *args) (any, error) { return upper(a.text()), nil }},
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

func centerFilter(a *args) (any, error) { return pad(a.text(), a.int(0, 80), " ", alignCenter) }

type alignment uint8

const (
	alignLeft alignment = iota
	alignRight
	alignCenter
)

// pad fills a string up to a width; if it is centred, an odd space goes to the
// same side as in Python.
func pad(s string, width int, fill string, align alignment) (any, error) {
	missing := width - utf8.RuneCountInString(s)
	if missing <= 0 {
		return s, nil
	}
	padding, err := repeat(fill, int64(missing))
	if err != nil {
		return nil, err
	}
	before := 0
	switch align {
	case alignRight:
		before = missing
	case alignCenter:
		before = missing/2 + (missing & width & 1)
	}
	before *= len(fill)
	return padding[:before] + s + padding[before:], nil
}

func indentFilter(a *args) (any, error) {
	margin, ok := a.any(0, nil).(string)
	if !ok {
		var err error
		if margin, err = repeat(" ", int64(a.int(0, 4))); err != nil {
			return nil, err
		}
	}
	first, blank := a.bool(1, false), a.bool(2, false)
	text := a.text()
	lines := strings.Split(text, "\n")
	if len(lines) > maxText/(len(margin)+1) {
		return nil, ErrTooLong
	}
	for i, line := range lines {
		if i == 0 && first || i > 0 && (blank || line != "") {
			lines[i] = margin + line
		}
	}
	if len(text)+len(lines)*len(margin) > maxText {
		return nil, ErrTooLong
	}
	return strings.Join(lines, "\n"), nil
}

func replaceFilter(a *args) (any, error) {
	s, old, by, count := a.text(), a.str(0, ""), a.str(1, ""), a.int(2, -1)
	return replace(s, old, by, count)
}

func replace(s, old, by string, count int) (any, error) {
	found := strings.Count(s, old)
	if count >= 0 {
		found = min(found, count)
	}
	if len(by) > 0 && found > maxText/len(by) {
		return nil, ErrTooLong
	}
	return strings.Replace(s, old, by, count), nil
}

func truncateFilter(a *args) (any, error) {
	s, size, end, leeway := []rune(a.text()), a.int(0, 255), a.str(2, "..."), a.int(3, 5)
	endSize := utf8.RuneCountInString(end)
	if size < endSize {
		return nil, fmt.Errorf("truncate: the length %d is less than the length of the end %q", size, end)
	}
	if len(s) <= size || len(s)-size <= leeway {
		return string(s), nil
	}
	kept := string(s[:size-endSize])
	if !a.bool(1, false) {
		if i := strings.LastIndexByte(kept, ' '); i >= 0 {
			kept = kept[:i]
		}
	}
	return kept + end, nil
}

func wordcountFilter(a *args) (any, error) {
	words := strings.FieldsFunc(a.text(), func(r rune) bool { return !isWord(r) })
	return int64(len(words)), nil
}

// wordwrapFilter breaks each line at a width, as Python's textwrap does.
func wordwrapFilter(a *args) (any, error) {
	w := wrapper{width: a.int(0, 79), breakLong: a.bool(1, true), breakHyphens: a.bool(3, true)}
	if w.width < 1 {
		return nil, fmt.Errorf("wordwrap needs a width of at least 1")
	}
	newline := a.str(2, "\n")
	text := strings.TrimSuffix(a.text(), "\n")
	if len(text) > maxElements {
		return nil, errManyParts
	}
	var out []string
	size := 0
	for line := range strings.SplitSeq(text, "\n") {
		if err := a.run.tick(); err != nil {
			return nil, err
		}
		for _, wrapped := range w.wrap(line) {
			if size += len(wrapped) + len(newline); size > maxText {
				return nil, ErrTooLong
			}
			out = append(out, wrapped)
		}
	}
	return strings.Join(out, newline), nil
}
