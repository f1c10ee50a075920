package extract

import (
	"bytes"
	"cmp"
	"context"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Source is the body of a response. URL is its address after redirects.
type Source struct {
	URL         *url.URL
	ContentType string
	Body        []byte
	// Rendered reports whether the page's scripts have run.
	Rendered bool
	// MaxElements is the maximum number of elements that are read; default 320,000.
	MaxElements int
}

// Document is a page. It is not safe for concurrent use.
type Document struct {
	URL      *url.URL
	Metadata page.Metadata
	// NoFollow reports whether the page asks crawlers not to follow its links.
	NoFollow bool
	// Notes describe what was cut or repaired.
	Notes []string

	root  *html.Node // nil if the page is not HTML, and after Content
	base  *url.URL   // for relative links
	plain Content    // the content if the page is not HTML
	pages []string   // of a PDF file

	links        []page.Link
	hasMoreLinks bool
}

// Parse reads a document. The errors are *tea.Error.
func Parse(ctx context.Context, s Source) (*Document, error) {
	kind, _, _ := mime.ParseMediaType(s.ContentType)
	if kind == "" || kind == "application/octet-stream" || kind == "binary/octet-stream" {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(s.Body))
	}
	if bytes.HasPrefix(s.Body, []byte("%PDF-")) {
		kind = "application/pdf"
	}
	d := &Document{URL: s.URL, base: s.URL, Metadata: page.Metadata{ContentType: kind}}
	switch {
	case kind == "text/html" || kind == "application/xhtml+xml" || kind == "" && len(s.Body) == 0:
		return d, d.parseHTML(s, kind == "application/xhtml+xml")
	case kind == "application/pdf":
		return d, d.parsePDF(ctx, s.Body)
	case isText(kind):
		d.parseText(kind, s)
		return d, nil
	}
	e := tea.Errorf(tea.ValidationError, "GET %s: %s has no text that can be read", s.URL, kind)
	e.Source = s.URL.Host
	e.Details = map[string]any{"content_type": kind}
	return nil, e
}

func isText(kind string) bool {
	switch kind {
	case "application/json", "application/xml", "application/javascript", "application/yaml", "application/x-yaml", "application/x-ndjson", "application/sql":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+yaml")
}

// parseText reads a text that is not HTML. It returns Markdown and plain text
// unchanged, and other languages as a code block.
func (d *Document) parseText(kind string, s Source) {
	text := strings.TrimSpace(decodeCharset(s.Body, s.ContentType))
	text = strings.ReplaceAll(text, "\r\n", "\n")
	d.plain = Content{text: text, markdown: text}
	_, language, _ := strings.Cut(kind, "/")
	switch language {
	case "plain", "markdown", "x-markdown":
		return
	}
	if i := strings.LastIndexByte(language, '+'); i >= 0 {
		language = language[i+1:]
	}
	d.plain.markdown = fence(text, strings.TrimPrefix(language, "x-"))
}

// fence returns text as a code block.
func fence(text, language string) string {
	marks := "```"
	for strings.Contains(text, marks) {
		marks += "`"
	}
	return marks + language + "\n" + text + "\n" + marks
}

func (d *Document) parseHTML(s Source, isXML bool) error {
	if len(s.Body) == 0 {
		d.Notes = append(d.Notes, "the response is empty")
	}
	text := decodeCharset(s.Body, s.ContentType)
	if isXML || xhtmlStart.MatchString(text[:min(len(text), declarationBytes)]) {
		text = expandXHTML(text)
	}
	text, notes := limitElements(text, cmp.Or(s.MaxElements, defaultMaxElements))
	d.Notes = append(d.Notes, notes...)
	root, err := html.Parse(strings.NewReader(text))
	if err != nil { // nested too deeply for the parser
		if root, err = html.Parse(strings.NewReader(flatten(text))); err != nil {
			return tea.Errorf(tea.ValidationError, "GET %s: the HTML cannot be read: %w", s.URL, err)
		}
		d.Notes = append(d.Notes, "elements that are nested too deeply were unwrapped")
	}
	openShadowRoots(root)
	d.root = root
	d.setBase()
	d.readMetadata()
	d.readLinks()
	if !s.Rendered && d.needsScripts() {
		d.Notes = append(d.Notes, "the page has almost no text without its scripts; render: true runs them")
	}
	return nil
}

// maxScriptText is the maximum length of the text of a page whose content is assumed
// to come from its scripts.
const maxScriptText = 100

// needsScripts reports whether a page has scripts, but almost no text.
func (d *Document) needsScripts() bool {
	scripts, length := false, 0
	for n := range d.root.Descendants() {
		switch {
		case n.DataAtom == atom.Script:
			scripts = scripts || attr(n, "type") != "application/ld+json"
		case n.Type == html.TextNode && n.Parent.DataAtom != atom.Script && n.Parent.DataAtom != atom.Style && n.Parent.DataAtom != atom.Title && n.Parent.DataAtom != atom.Noscript:
			length += len(strings.TrimSpace(n.Data))
		}
	}
	return scripts && length <= maxScriptText
}

// setBase reads the base element, which must be http or https.
func (d *Document) setBase() {
	element := find(d.root, func(n *html.Node) bool { return n.DataAtom == atom.Base && attr(n, "href") != "" })
	if element == nil {
		return
	}
	if base, err := d.URL.Parse(attr(element, "href")); err == nil && (base.Scheme == "http" || base.Scheme == "https") {
		d.base = base
	}
}

// absolute resolves a link of the page; "" if it is empty or does not lead to a web
// page, a mail address or a telephone number.
func (d *Document) absolute(link string) string {
	if link = strings.TrimSpace(link); link == "" {
		return ""
	}
	u, err := d.base.Parse(link)
	if err != nil {
		return ""
	}
	switch u.Scheme {
	case "http", "https", "mailto", "tel":
		u.User = nil
		return u.String()
	}
	return ""
}

const maxDepth = 200

// flatten removes the tags of elements that are nested deeper than maxDepth, and keeps
// their content.
func flatten(text string) string {
	var out strings.Builder
	var open []string
	dropped := map[string]int{}
	tokens := html.NewTokenizer(strings.NewReader(text))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			return out.String()
		}
		raw := tokens.Raw()
		switch kind {
		case html.StartTagToken:
			tag, _ := tokens.TagName()
			name := string(tag)
			if isVoid(name) {
				break
			}
			if len(open) >= maxDepth {
				dropped[name]++
				continue
			}
			open = append(open, name)
		case html.EndTagToken:
			tag, _ := tokens.TagName()
			name := string(tag)
			if dropped[name] > 0 {
				dropped[name]--
				continue
			}
			for i := len(open) - 1; i >= 0; i-- {
				if open[i] == name {
					open = open[:i]
					break
				}
			}
		}
		out.Write(raw)
	}
}

func isVoid(name string) bool {
	switch name {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr", "p", "li", "option", "dt", "dd":
		return true // the last five end without a tag
	}
	return false
}
