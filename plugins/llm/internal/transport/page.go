package transport

import (
	"html"
	"regexp"
	"strings"
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
