package transport

import (
	"html"
	"mime"
	"regexp"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
)

var (
	pageStart = regexp.MustCompile(`(?i)^\s*<(!doctype html|html)\b`)
	pageTitle = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
)

// titleOf gives what a web page calls itself, "" where it has no title;
// isPage says whether the text is a page at all. A proxy in front of a server
// answers with one, and its markup tells nobody anything.
func titleOf(text string) (title string, isPage bool) {
	if !pageStart.MatchString(text) {
		return "", false
	}
	if found := pageTitle.FindStringSubmatch(text); found != nil {
		title = strings.TrimSpace(html.UnescapeString(found[1]))
	}
	return title, true
}

// NoAnswer says that the server sent something, such as "what is no answer",
// in an answer's place: body, which could not be read because of err. A web
// page is named by its title: it comes from a login, a proxy or a router.
func NoAnswer(body []byte, something string, err error) *tea.Error {
	title, isPage := titleOf(string(body))
	switch {
	case isPage && title != "":
		return tea.Errorf(tea.ConnectionError, "the server sent a web page (%q) instead of an answer; is api_base right?", title)
	case isPage:
		return tea.Errorf(tea.ConnectionError, "the server sent a web page instead of an answer; is api_base right?")
	}
	return tea.Errorf(tea.ConnectionError, "the server sent %s: %w", something, err)
}

// IsPage tells whether the server calls its answer a web page. Servers err in
// that: it explains an answer that makes no sense, and no other.
func (r Reply) IsPage() bool {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return kind == "text/html"
}
