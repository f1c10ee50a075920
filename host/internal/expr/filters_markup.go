package expr

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

func markupFilters() map[string]filter {
	escape := func(a *args) any { return escapeMarkup(a.text()) }
	return map[string]filter{
		"escape":      {apply: escape},
		"forceescape": {apply: escape},
		"safe":        {apply: func(a *args) any { return a.in }},
		"striptags":   {apply: striptagsFilter},
		"urlencode":   {apply: urlencodeFilter},
		"urlize": {
			params: params("trim_url_limit", "nofollow", "target", "rel"),
			apply:  urlizeFilter,
		},
		"xmlattr": {params: params("autospace"), apply: xmlattrFilter},
	}
}

var markupEscaper = sync.OnceValue(func() *strings.Replacer {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")
})

func escapeMarkup(s string) string {
	s = markupEscaper().Replace(s)
	checkText(len(s))
	return s
}

var markupPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)<!--.*?-->|<[^>]*>`) })

func striptagsFilter(a *args) any {
	s := markupPattern().ReplaceAllString(a.text(), "")
	return html.UnescapeString(strings.Join(strings.Fields(s), " "))
}

// urlencodeFilter encodes a text, except "/", or the query of an object or a
// list of pairs.
func urlencodeFilter(a *args) any {
	switch plainValue(a.in).(type) {
	case map[string]any, []any:
	default:
		s := strings.ReplaceAll(url.QueryEscape(a.text()), "+", "%20")
		return strings.ReplaceAll(s, "%2F", "/")
	}
	entries := pairs(a.in)
	query := make([]string, len(entries))
	for i, e := range entries {
		v := textOf(e.value)
		query[i] = url.QueryEscape(e.key) + "=" + url.QueryEscape(v)
	}
	return strings.Join(query, "&")
}

func xmlattrFilter(a *args) any {
	entries := pairs(a.in)
	var out []string
	for _, e := range entries {
		if isNull(e.value) {
			continue
		}
		if strings.ContainsAny(e.key, " \t\r\n\f/>=") {
			panic(failf("%q is not a valid attribute name", e.key))
		}
		out = append(out, escapeMarkup(e.key)+`="`+escapeMarkup(textOf(e.value))+`"`)
	}
	result := strings.Join(out, " ")
	if result != "" && a.bool(0, true) {
		result = " " + result
	}
	return result
}

var (
	wordPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\s+|\S+`) })
	urlPattern  = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(https?://|www\.)(([\w%-]+\.)+)?([a-z]{2,63}|xn--[\w%]{2,59}|([\w%-]{2,63}\.)+(com|net|int|edu|gov|org|info|mil)|(\d{1,3}\.){3}\d{1,3}|localhost)(:\d{1,5})?([/?#]\S*)?$|^([\w%-]{2,63}\.)+(com|net|int|edu|gov|org|info|mil)(:\d{1,5})?([/?#]\S*)?$`)
	})
	mailPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\S+@\w[\w.-]*\.\w+$`) })
)

// urlizeFilter converts addresses to links.
func urlizeFilter(a *args) any {
	limit := a.int(0, -1)
	rel := "noopener"
	if a.bool(1, false) {
		rel = "nofollow noopener"
	}
	if extra := a.str(3, ""); extra != "" {
		rel = extra + " " + rel
	}
	attributes := ` rel="` + escapeMarkup(rel) + `"`
	if target := a.str(2, ""); target != "" {
		attributes += ` target="` + escapeMarkup(target) + `"`
	}
	text := escapeMarkup(a.text())
	checkParts(len(text))
	var b strings.Builder
	for _, word := range wordPattern().FindAllString(text, -1) {
		a.run.tick()
		b.WriteString(linked(word, limit, attributes))
		checkText(b.Len())
	}
	return b.String()
}

// linked converts a word to a link if it is an address between punctuation.
func linked(word string, limit int, attributes string) string {
	middle := strings.TrimLeft(word, "(<")
	middle = strings.TrimPrefix(middle, "&lt;")
	head := word[:len(word)-len(middle)]
	middle = strings.TrimRight(middle, ").,>\n")
	middle = strings.TrimSuffix(middle, "&gt;")
	tail := word[len(head)+len(middle):]
	if n := strings.Count(middle, "(") - strings.Count(middle, ")"); n > 0 && n <= len(tail) && strings.Trim(tail[:n], ")") == "" {
		middle, tail = middle+tail[:n], tail[n:]
	}
	href := middle
	switch {
	case urlPattern().MatchString(middle):
		if !strings.HasPrefix(middle, "http://") && !strings.HasPrefix(middle, "https://") {
			href = "https://" + middle
		}
	case strings.HasPrefix(middle, "mailto:") && mailPattern().MatchString(middle[7:]):
		return head + `<a href="` + middle + `">` + middle[7:] + "</a>" + tail
	case mailPattern().MatchString(middle) && !strings.HasPrefix(middle, "www.") && !strings.Contains(middle, ":"):
		return head + `<a href="mailto:` + middle + `">` + middle + "</a>" + tail
	default:
		return word
	}
	shown := middle
	if limit >= 0 && utf8.RuneCountInString(shown) > limit {
		shown = string([]rune(shown)[:limit]) + "..."
	}
	return head + `<a href="` + href + `"` + attributes + ">" + shown + "</a>" + tail
}
