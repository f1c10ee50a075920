package local

import (
	"net/url"
	"path"
	"sort"
	"strings"

	"github.com/the-edge-agent/tea/plugins/web/internal/page"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/safenet"
)

const (
	// maxFrontier bounds the number of addresses that a crawl remembers, and
	// maxFrontierBytes their size.
	maxFrontier      = 100_000
	maxFrontierBytes = 8 << 20
	// maxCrawlURL, maxSameSegment and maxQueries keep a crawl out of sites that generate
	// endless links.
	maxCrawlURL    = 2000
	maxSameSegment = 3
	maxQueries     = 100
)

// Reasons why a link is not followed; the keys of CrawlResult.Skipped.
const (
	skipDepth     = "max_depth"
	skipHost      = "other_host"
	skipPattern   = "pattern"
	skipRobots    = "robots"
	skipDuplicate = "duplicate"
	skipTrap      = "trap"
	skipFile      = "not_a_page"
	skipFull      = "too_many"
	skipLimit     = "limit"
	skipNoFollow  = "nofollow"
)

// target is a page to read.
type target struct {
	URL   string `json:"url"`
	Depth int    `json:"depth"`
}

// frontier decides which links of a site are read, in the order in which they were
// found.
type frontier struct {
	host             string // "" before the first page was read, and if all hosts are allowed
	maxDepth         int
	include, exclude []pathPattern
	queue            []target
	seen             map[string]bool
	bytes            int // of the addresses in seen
	queries          map[string]int
}

func newFrontier(p page.CrawlParams) (*frontier, error) {
	f := &frontier{maxDepth: or(p.MaxDepth, 3), seen: map[string]bool{}, queries: map[string]int{}}
	var err error
	if f.include, err = patterns(p.Include); err != nil {
		return nil, err
	}
	f.exclude, err = patterns(p.Exclude)
	return f, err
}

// patterns parses patterns of paths, or of addresses if they begin with http.
func patterns(texts []string) ([]pathPattern, error) {
	var list []pathPattern
	for _, text := range texts {
		if !strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "*") && !strings.HasPrefix(text, "http") {
			return nil, tea.Errorf(tea.ValidationError, "the pattern %q does not begin with /, * or http; write /%s", text, text)
		}
		list = append(list, newPathPattern(text))
	}
	return list, nil
}

func matchAny(list []pathPattern, u *url.URL) bool {
	path := requestPath(u)
	for _, pattern := range list {
		if pattern.match(path) || pattern.match(origin(u)+path) {
			return true
		}
	}
	return false
}

// key identifies a page. It ignores the order of query parameters, tracking parameters,
// and the encoding of characters.
func key(u *url.URL) string {
	if u.RawQuery == "" {
		return origin(u) + requestPath(u)
	}
	var parts []string
	for _, part := range strings.Split(u.RawQuery, "&") {
		if name, _, _ := strings.Cut(part, "="); part != "" && !strings.HasPrefix(name, "utm_") && name != "gclid" && name != "fbclid" {
			parts = append(parts, part)
		}
	}
	sort.Strings(parts)
	k := *u
	k.RawQuery = strings.Join(parts, "&")
	return origin(&k) + requestPath(&k)
}

// admit decides on a link at a depth. It returns the address to read, or the reason why
// it is not read; "" if it is already known.
func (f *frontier) admit(link string, depth int) (u *url.URL, reason string) {
	u, err := safenet.ParseURL(link)
	switch {
	case err != nil:
		return nil, skipFile
	case f.seen[key(u)]:
		return nil, ""
	}
	if reason = f.refuse(u); reason != "" {
		return nil, reason
	}
	switch {
	case depth > f.maxDepth:
		return nil, skipDepth
	case u.RawQuery != "" && f.queries[u.Host+u.Path] >= maxQueries:
		return nil, skipTrap
	case len(f.seen) >= maxFrontier || f.bytes >= maxFrontierBytes:
		return nil, skipFull
	}
	return u, ""
}

// remember records that an address was found.
func (f *frontier) remember(u *url.URL) {
	f.seen[key(u)] = true
	f.bytes += len(u.String())
	if u.RawQuery != "" {
		f.queries[u.Host+u.Path]++
	}
}

// refuse returns the reason why an address is not read; "" if it is.
func (f *frontier) refuse(u *url.URL) string {
	switch {
	case f.host != "" && u.Host != f.host:
		return skipHost
	case len(f.include) > 0 && !matchAny(f.include, u) || matchAny(f.exclude, u):
		return skipPattern
	case isFile(u.Path):
		return skipFile
	case isTrap(u):
		return skipTrap
	}
	return ""
}

// isFile reports whether a path has the extension of a file without text.
func isFile(p string) bool {
	switch strings.ToLower(path.Ext(p)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".svg", ".ico", ".bmp", ".tif", ".tiff", ".mp3", ".mp4", ".webm", ".ogg", ".wav", ".avi", ".mov", ".mkv",
		".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".exe", ".dmg", ".iso", ".deb", ".rpm", ".apk", ".jar", ".whl", ".css", ".js", ".mjs", ".map",
		".woff", ".woff2", ".ttf", ".otf", ".eot", ".doc", ".docx", ".xls", ".xlsx", ".ppt", ".pptx", ".epub", ".bin":
		return true
	}
	return false
}

// isTrap reports whether an address is very long or repeats a part of its path, as on
// sites whose pages link to themselves relatively.
func isTrap(u *url.URL) bool {
	if len(u.String()) > maxCrawlURL {
		return true
	}
	count := map[string]int{}
	for _, segment := range strings.Split(u.Path, "/") {
		if segment == "" {
			continue
		}
		if count[segment]++; count[segment] > maxSameSegment {
			return true
		}
	}
	return false
}
