package local

import (
	"bytes"
	"context"
	"maps"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	// maxRobotsBytes is the maximum size of a robots.txt; RFC 9309 requires 500 KiB.
	maxRobotsBytes = 512 << 10
	maxCrawlDelay  = 60 * time.Second
	// maxRobotsHosts and maxRobotsRules limit the rules that a crawl keeps for all hosts.
	maxRobotsHosts = 1000
	maxRobotsRules = 200_000
)

// robots are the rules of a host's robots.txt for this reader.
type robots struct {
	plain      map[string]bool // whether paths with a prefix are allowed, for rules as long as their prefix
	lengths    []int           // of the prefixes, longest first
	rules      []robotsRule    // the other rules, in order of precedence
	crawlDelay time.Duration
	sitemaps   []string
	refusal    string // why nothing is allowed
}

type robotsRule struct {
	pathPattern
	allow bool
}

// allows reports whether an address may be read.
func (r *robots) allows(u *url.URL) bool {
	if r.refusal != "" {
		return false
	}
	path := requestPath(u)
	plain := plainQuery(path)
	return r.allowsPath(path) && (plain == path || r.allowsPath(plain))
}

// allowsPath applies the longest rule that matches; of two equally long rules, the one
// that allows. A file may have 40,000 rules and a page 20,000 links, so plain rules are
// looked up.
func (r *robots) allowsPath(path string) bool {
	size, allow := 0, true
	for _, n := range r.lengths {
		if n <= len(path) {
			if found, ok := r.plain[path[:n]]; ok {
				size, allow = n, found
				break
			}
		}
	}
	for _, rule := range r.rules {
		if rule.size < size || rule.size == size && allow {
			break
		}
		if rule.match(path) {
			return rule.allow
		}
	}
	return allow
}

// delay is the wait between two requests that the host requests.
func (r *robots) delay() time.Duration {
	return min(r.crawlDelay, maxCrawlDelay)
}

// readRobots reads the robots.txt of an address's host. As RFC 9309 requires, a missing
// file allows everything, and an unreadable one allows nothing.
func (r *Reader) readRobots(ctx context.Context, u *url.URL) (*robots, error) {
	file := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	resp, err := r.fetch(ctx, file, fetchOptions{delay: r.hostDelay, limit: maxRobotsBytes, cut: true})
	if e := tea.AsError(err); e != nil {
		status, _ := e.Details["status"].(int64)
		switch {
		case status >= 400 && status < 500 && status != 429:
			return new(robots), nil
		case e.Type == tea.PermissionDenied || e.Type == tea.Canceled:
			return nil, e
		}
		return &robots{refusal: e.Message}, nil
	}
	agent, _, _ := strings.Cut(r.userAgent, "/")
	return parseRobots(resp.body, agent), nil
}

// parseRobots parses the rules of a robots.txt for an agent. It ignores invalid lines.
func parseRobots(body []byte, agent string) *robots {
	if end := bytes.LastIndexByte(body, '\n'); len(body) >= maxRobotsBytes && end >= 0 {
		body = body[:end] // the last line was cut off
	}
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	body = bytes.ReplaceAll(body, []byte("\r"), []byte("\n"))
	groups := map[string]*robots{} // by agent
	var current []*robots
	var sitemaps []string
	inRules := false
	for line := range bytes.SplitSeq(body, []byte("\n")) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		key, value, _ := strings.Cut(string(line), ":")
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		switch key {
		case "user-agent":
			if inRules {
				current, inRules = nil, false
			}
			name, _, _ := strings.Cut(strings.ToLower(value), "/")
			if groups[name] == nil {
				groups[name] = &robots{plain: map[string]bool{}}
			}
			current = append(current, groups[name])
		case "sitemap":
			if value != "" {
				sitemaps = append(sitemaps, value)
			}
		case "allow", "disallow", "crawl-delay":
			inRules = inRules || len(current) > 0
			for _, group := range current {
				group.add(key, value)
			}
		}
	}
	group := groupOf(groups, strings.ToLower(agent))
	group.sitemaps = sitemaps
	lengths := map[int]bool{}
	for prefix := range group.plain {
		lengths[len(prefix)] = true
	}
	group.lengths = slices.Sorted(maps.Keys(lengths))
	slices.Reverse(group.lengths)
	sort.SliceStable(group.rules, func(i, j int) bool {
		a, b := group.rules[i], group.rules[j]
		return a.size > b.size || a.size == b.size && a.allow && !b.allow
	})
	return group
}

// groupOf returns the rules for an agent: those of the longest name that is a prefix of
// the agent's name, otherwise those of *.
func groupOf(groups map[string]*robots, agent string) *robots {
	best := ""
	for name := range groups {
		if strings.HasPrefix(agent, name) && len(name) > len(best) {
			best = name
		}
	}
	if best == "" {
		best = "*"
	}
	if groups[best] == nil {
		return new(robots)
	}
	return groups[best]
}

// add adds a line to a group.
func (r *robots) add(key, value string) {
	switch {
	case key == "crawl-delay":
		if n, err := strconv.ParseFloat(value, 64); err == nil && n >= 0 && n <= 1e6 {
			r.crawlDelay = seconds(n)
		}
	case value != "":
		if value[0] != '/' && value[0] != '*' {
			value = "/" + value
		}
		for _, pattern := range queryForms(newPathPattern(value)) {
			if prefix := pattern.parts[0]; len(pattern.parts) == 1 && !pattern.atEnd && pattern.size == len(prefix) {
				r.plain[prefix] = r.plain[prefix] || key == "allow"
			} else {
				r.rules = append(r.rules, robotsRule{pattern, key == "allow"})
			}
		}
	}
}
