package extract

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/the-edge-agent/tea/sdk/value"
)

const (
	maxMetaText  = 2000
	maxJSONLD    = 1 << 20
	maxJSONDepth = 20
)

// pageFacts holds the metadata of a page by source.
type pageFacts struct {
	meta      map[string]string // of meta elements, by lower-case name or property
	title, h1 string
	canonical string
	language  string
	times     []string // of time elements
	linked    map[string]string
}

// readMetadata sets the metadata of an HTML page from the first source with a value:
// declarations for link previews and search engines are better than the title element,
// which often includes the name of the site.
func (d *Document) readMetadata() {
	f := &pageFacts{meta: map[string]string{}, linked: map[string]string{}}
	elements(d.root, f.read)
	m := &d.Metadata
	m.Title = clean(cmp.Or(f.meta["og:title"], f.linked["headline"], f.title, f.meta["twitter:title"], f.h1))
	m.Description = clean(cmp.Or(f.meta["description"], f.meta["og:description"], f.linked["description"], f.meta["twitter:description"], f.meta["dc.description"]))
	m.Language = language(cmp.Or(f.language, f.meta["content-language"], f.meta["og:locale"], f.meta["dc.language"], f.linked["inLanguage"]))
	m.Canonical = d.absolute(cmp.Or(f.canonical, f.meta["og:url"]))
	m.Image = d.absolute(cmp.Or(f.meta["og:image"], f.meta["twitter:image"], f.linked["image"]))
	m.SiteName = clean(cmp.Or(f.meta["og:site_name"], f.meta["application-name"], f.linked["publisher"]))
	m.Author = clean(cmp.Or(f.meta["author"], f.linked["author"], notAddress(f.meta["article:author"]), f.meta["dc.creator"], f.meta["citation_author"]))
	m.Published = firstDate(f.meta["article:published_time"], f.linked["datePublished"], f.meta["datepublished"], f.meta["citation_publication_date"],
		f.meta["dc.date"], f.meta["dcterms.created"], f.meta["dc.date.issued"], f.meta["date"], f.meta["pubdate"], f.meta["publish-date"], first(f.times), f.linked["dateCreated"])
	m.Modified = firstDate(f.meta["article:modified_time"], f.meta["og:updated_time"], f.linked["dateModified"], f.meta["datemodified"], f.meta["dcterms.modified"], f.meta["last-modified"])
	d.NoFollow = NoFollow(f.meta["robots"]) || NoFollow(f.meta["tea"])
}

func (f *pageFacts) read(n *html.Node) {
	switch n.DataAtom {
	case atom.Html:
		f.language = cmp.Or(attr(n, "lang"), attr(n, "xml:lang"))
	case atom.Title:
		if f.title == "" && n.Namespace == "" {
			f.title = textOf(n)
		}
	case atom.H1:
		if f.h1 == "" {
			f.h1 = inlineText(n)
		}
	case atom.Meta:
		name := strings.ToLower(strings.TrimSpace(cmp.Or(attr(n, "property"), attr(n, "name"), attr(n, "http-equiv"), attr(n, "itemprop"))))
		if content := strings.TrimSpace(attr(n, "content")); content != "" && f.meta[name] == "" {
			f.meta[name] = content
		}
	case atom.Link:
		if f.canonical == "" && strings.EqualFold(strings.TrimSpace(attr(n, "rel")), "canonical") {
			f.canonical = attr(n, "href")
		}
	case atom.Time:
		if at := attr(n, "datetime"); at != "" && (hasAttr(n, "pubdate") || strings.Contains(strings.ToLower(attr(n, "itemprop")+attr(n, "class")), "publi") || inArticle(n)) {
			f.times = append(f.times, at)
		}
	case atom.Script:
		if strings.EqualFold(strings.TrimSpace(attr(n, "type")), "application/ld+json") && n.FirstChild != nil && len(n.FirstChild.Data) <= maxJSONLD {
			var v any
			if json.Unmarshal([]byte(n.FirstChild.Data), &v) == nil {
				f.readLinked(v, 0)
			}
		}
	}
}

func inArticle(n *html.Node) bool {
	for p := n.Parent; p != nil; p = p.Parent {
		if p.DataAtom == atom.Article || p.DataAtom == atom.Header {
			return true
		}
	}
	return false
}

// readLinked reads a JSON-LD value: the first object with a headline or a date
// describes the page.
func (f *pageFacts) readLinked(v any, depth int) {
	if depth > maxJSONDepth {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			f.readLinked(item, depth+1)
		}
	case map[string]any:
		f.readLinked(v["@graph"], depth+1)
		if v["headline"] == nil && v["datePublished"] == nil {
			return
		}
		for _, key := range []string{"headline", "description", "inLanguage", "image", "publisher", "author", "datePublished", "dateModified", "dateCreated"} {
			if text := linkedText(v[key]); text != "" && f.linked[key] == "" {
				f.linked[key] = text
			}
		}
	}
}

// linkedText returns the text of a member: a string, its name or its address.
func linkedText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		if len(v) > 0 {
			if _, isList := v[0].([]any); !isList {
				return linkedText(v[0])
			}
		}
	case map[string]any:
		for _, key := range []string{"name", "url", "@value"} {
			if text, ok := v[key].(string); ok {
				return text
			}
		}
	}
	return ""
}

// NoFollow reports whether the content of a robots directive asks crawlers not
// to follow links.
func NoFollow(directive string) bool {
	for _, word := range strings.FieldsFunc(strings.ToLower(directive), func(r rune) bool { return r == ',' || r == ' ' || r == ':' }) {
		if word == "nofollow" || word == "none" {
			return true
		}
	}
	return false
}

// clean returns a text of the metadata on one line and of a limited length.
func clean(text string) string {
	text = strings.Join(strings.Fields(html.UnescapeString(text)), " ")
	if len(text) > maxMetaText {
		return text[:value.WholeRunes(text[:maxMetaText])] + "..."
	}
	return text
}

var languageTag = regexp.MustCompile(`^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*$`)

// language returns a language tag; "" if the text is not one.
func language(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), ",")
	if !languageTag.MatchString(text) {
		return ""
	}
	return strings.ReplaceAll(text, "_", "-")
}

func notAddress(text string) string {
	if strings.Contains(text, "://") {
		return ""
	}
	return text
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// dateLayouts have a zone, timeLayouts do not.
var (
	dateLayouts = []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05 -0700", time.RFC1123Z, time.RFC1123, time.RFC850, "Mon, 2 Jan 2006 15:04:05 MST"}
	timeLayouts = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.ANSIC}
)

var dayLayouts = []string{"2006-01-02", "2006/01/02", "2006.01.02", "20060102", "January 2, 2006", "Jan 2, 2006", "2 January 2006", "2 Jan 2006", "02.01.2006"}

// firstDate returns the first text that is a date, as RFC 3339 (without a zone if the
// text has none) or YYYY-MM-DD.
func firstDate(texts ...string) string {
	for _, text := range texts {
		text = strings.TrimSpace(text)
		for _, kind := range []struct {
			layouts []string
			format  string
		}{{dateLayouts, time.RFC3339}, {timeLayouts, "2006-01-02T15:04:05"}, {dayLayouts, time.DateOnly}} {
			for _, layout := range kind.layouts {
				if t, err := time.Parse(layout, text); err == nil {
					return t.Format(kind.format)
				}
			}
		}
	}
	return ""
}
