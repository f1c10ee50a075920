package local_test

import (
	"fmt"
	"html"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// linkTo serves a robots.txt and a first page with one link.
func linkTo(robots, link string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/robots.txt":
			fmt.Fprint(w, robots)
		case "/sitemap.xml":
			http.NotFound(w, r)
		default:
			fmt.Fprintf(w, `<title>%s</title><p>x</p><a href="%s">a</a>`, html.EscapeString(r.RequestURI), html.EscapeString(link))
		}
	})
}

// A rule applies in whatever way its characters and those of the address are
// encoded; the examples of RFC 9309, sections 2.2.2 and 2.2.3, are among them.
func TestRobotsRuleInAnotherEncoding(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, link string
		applies    bool
	}{
		{"/foo/bar?baz=quz", "/foo/bar?baz=quz", true},
		{"/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", true},
		{"/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https://foo.bar", true},
		{"/foo/bar/\u30c4", "/foo/bar/%E3%83%84", true},
		{"/foo/bar/%e3%83%84", "/foo/bar/\u30c4", true},
		{"/foo/bar/%62%61%7A", "/foo/bar/baz", true},
		{"/foo/bar/baz", "/foo/bar/%62%61%7A", true},
		{"/~user", "/%7Euser/x", true},
		{"/%7euser", "/~user/x", true},
		{"/a|b", "/a%7Cb", true},
		{"/s?q=\u00e9", "/s?q=%c3%a9", true},
		{"/a%2Fb", "/a/b", false},
		{"/a%2fb", "/a%2Fb", true},
		{"/path/file-with-a-%2A.html", "/path/file-with-a-*.html", true},
		{"/path/file-with-a-%2A.html", "/path/file-with-a-x.html", false},
		{"/path/foo-%24", "/path/foo-$", true},
		{"/path/foo-%24", "/path/foo-", false},
		{"/*/print", "/go?u=/print", true},
		{"/*%2Fprint", "/go?u=%2Fprint", true},
		{"/fish*.php", "/catfish/fish.php", false},
		{"/fish*.php", "/fishheads/catfish.php?parameters", true},
		{"/*.php$", "/a.php", true},
		{"/*.php$", "/a.php?x=1", false},
		{"/a*b*c$", "/a-b-b-c", true},
		{"/a*b*c$", "/a-c-b", false},
	} {
		site := serve(t, linkTo("User-agent: *\nDisallow: "+c.rule, c.link))
		result, err := crawl(t, open(t, nil), new(teatest.Host), page.CrawlParams{URL: site.URL})
		if err != nil {
			t.Fatal(err)
		}
		if applies := result.Skipped["robots"] > 0; applies != c.applies || applies != (len(result.Pages) == 1) {
			t.Errorf("rule %q, link %q: applies %v, want %v (skipped %v, %d pages)", c.rule, c.link, applies, c.applies, result.Skipped, len(result.Pages))
		}
	}
}

// The longest rule applies, and of equal ones the one that allows.
func TestRobotsPrecedence(t *testing.T) {
	t.Parallel()
	for robots, read := range map[string]bool{
		"User-agent: *\nDisallow: /\nAllow: /p":                                      true,
		"User-agent: *\nAllow: /p\nDisallow: /page":                                  false,
		"User-agent: *\nDisallow: /p%61ge\nAllow: /page":                             true,
		"User-agent: *\nDisallow: /page\nAllow: /pag*":                               true,
		"User-agent: *\nAllow: /page\nDisallow: /pag*":                               true,
		"User-agent: *\nAllow: /page\nDisallow: /page*":                              false,
		"User-agent: *\nAllow: /*.htm\nDisallow: /page.html":                         false,
		"User-agent: *\nDisallow: /*.htm\nAllow: /page.html":                         true,
		"User-agent: tea/1.0\nDisallow: /page":                                       false,
		"User-agent: tea\nAllow: /\nUser-agent: *\nDisallow: /page":                  true,
		"User-agent: tea\nCrawl-delay: 0\n\nUser-agent: tea\nDisallow: /page":        false,
		"User-agent: teapot\nDisallow: /page":                                        true,
		"User-agent: *\nSitemap: /s\nDisallow: /page\n\nUser-agent: x\nDisallow: /b": false,
	} {
		site := serve(t, linkTo(robots, "/page.html"))
		result, err := crawl(t, open(t, nil), new(teatest.Host), page.CrawlParams{URL: site.URL + "/p"})
		if err != nil {
			if read {
				t.Errorf("%q: %v", robots, err)
			}
			continue
		}
		if got := len(result.Pages) == 2; got != read {
			t.Errorf("%q: the page was read: %v, want %v", robots, got, read)
		}
	}
}

// The length of a rule is the number of its octets (RFC 9309, section 2.2.2): * and $
// count, percent-encodings of unreserved characters are decoded, octets beyond ASCII are
// encoded, and other characters count as they are written. Where another parser
// decides differently, the comment says so.
func TestRobotsLengthOfARule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rules, link string
		read        bool
	}{
		{"Disallow: /a.b.c*\nAllow: /a.b.c.", "/a.b.c.d", true}, // an escaped expression has more octets for each dot
		{"Disallow: /*.b.c\nAllow: /a.b.c", "/a.b.c.d", true},
		{"Disallow: /*.b.c.\nAllow: /a.b.c", "/a.b.c.d", false},
		{"Allow: /page$\nDisallow: /page", "/page", true},
		{"Disallow: /page$\nAllow: /page", "/page", false},
		{"Disallow: /a$b*\nAllow: /a$bcd", "/a$bcd", true},
		{"Allow: /a$b\nDisallow: /a*bcd", "/a$bcd", false},   // protego: allowed
		{"Allow: /a|c\nDisallow: /a*cde", "/a%7Ccde", false}, // protego: allowed
		{"Allow: /a%7Cc\nDisallow: /a*cde", "/a%7Ccde", true},
		{"Disallow: /p%61g\nAllow: /page", "/page", true},
		{"Disallow: /\u30c4\nAllow: /*/abcdef", "/%E3%83%84/abcdef", false},
		{"Disallow: /\u30c4\nAllow: /*/abcdefg", "/%E3%83%84/abcdefg", true},
		{"Disallow: /a?u=%2F\nAllow: /a?u=*/", "/a?u=/", false},
	} {
		site := serve(t, linkTo("User-agent: *\n"+c.rules, c.link))
		result, err := crawl(t, open(t, nil), new(teatest.Host), page.CrawlParams{URL: site.URL})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(result.Pages) == 2; got != c.read {
			t.Errorf("%q: %s was read: %v, want %v", c.rules, c.link, got, c.read)
		}
	}
}

// Patterns of a call match addresses in whatever way both are encoded, and a
// page with two spellings of its address is read once.
func TestCrawlPatternInAnotherEncoding(t *testing.T) {
	t.Parallel()
	site := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `<p>%s</p><a href="/m%%c3%%bcnchen/a">a</a><a href="/m%%C3%%BCnchen/%%61">a</a><a href="/other">o</a>`, html.EscapeString(r.RequestURI))
	}))
	result, err := crawl(t, open(t, nil), new(teatest.Host), page.CrawlParams{URL: site.URL, Include: []string{"/münchen/*"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/", "/m%c3%bcnchen/a"}, paths(result, site)); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}
