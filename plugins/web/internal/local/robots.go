package local

import (
	"bufio"
	"bytes"
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/temoto/robotstxt"

	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	// maxRobotsBytes is the part of a robots.txt that is read; RFC 9309 requires
	// 500 KiB.
	maxRobotsBytes = 512 << 10
	maxCrawlDelay  = 60 * time.Second
	maxRobotsHosts = 1000
)

// robots are the rules of a host's robots.txt for this reader.
type robots struct {
	group    *robotstxt.Group
	sitemaps []string
	refusal  string // why nothing is allowed
}

// allows reports whether an address can be read.
func (r *robots) allows(u *url.URL) bool {
	if r.refusal != "" {
		return false
	}
	path := u.EscapedPath()
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return r.group.Test(path)
}

// delay is the wait between two requests that the host asks for.
func (r *robots) delay() time.Duration {
	if r.group == nil {
		return 0
	}
	return min(r.group.CrawlDelay, maxCrawlDelay)
}

// readRobots reads the robots.txt of an address's host. A file that does not
// exist allows everything; one that cannot be read allows nothing, as RFC 9309
// requires.
func (r *Reader) readRobots(ctx context.Context, u *url.URL) (*robots, error) {
	file := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	resp, err := r.fetch(ctx, file, fetchOptions{delay: r.hostDelay, limit: maxRobotsBytes, cut: true})
	if e := tea.AsError(err); e != nil {
		status, _ := e.Details["status"].(int64)
		switch {
		case status >= 400 && status < 500 && status != 429:
			return &robots{group: new(robotstxt.Group)}, nil
		case e.Type == tea.PermissionDenied || e.Type == tea.Canceled:
			return nil, e
		}
		return &robots{refusal: e.Message}, nil
	}
	agent, _, _ := strings.Cut(r.userAgent, "/")
	data, err := robotstxt.FromBytes(validRobots(resp.body))
	if err != nil {
		return &robots{refusal: "it is not valid: " + err.Error()}, nil
	}
	return &robots{group: data.FindGroup(agent), sitemaps: data.Sitemaps}, nil
}

// validRobots returns the lines of a robots.txt that the parser reads, in an
// order for it: it refuses a file with a broken line, which RFC 9309 says to
// ignore, and of an allow and a disallow line of equal length it applies the
// first, where the RFC says the one that allows.
func validRobots(body []byte) []byte {
	if end := bytes.LastIndexByte(body, '\n'); len(body) >= maxRobotsBytes && end >= 0 {
		body = body[:end] // the last line was cut off
	}
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	body = bytes.ReplaceAll(body, []byte("\r"), []byte("\n"))
	var out, sitemaps strings.Builder
	var rest strings.Builder // what follows the allow lines of a group
	inRules, hasAgent := false, false
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, maxRobotsBytes+1) // a long line must not hide those after it
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		key, text, _ := strings.Cut(line, ":")
		key, text = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(text)
		line = key + ": " + text + "\n"
		switch {
		case key == "user-agent":
			if inRules {
				out.WriteString(rest.String())
				rest.Reset()
			}
			inRules, hasAgent = false, true
			out.WriteString(line)
		case key == "sitemap" && text != "":
			sitemaps.WriteString(line)
		case !hasAgent:
		case key == "allow":
			inRules = true
			out.WriteString(line)
		case key == "disallow" || key == "crawl-delay" && isDelay(text):
			inRules = true
			rest.WriteString(line)
		}
	}
	return []byte(out.String() + rest.String() + sitemaps.String())
}

func isDelay(text string) bool {
	n, err := strconv.ParseFloat(text, 64)
	return err == nil && n >= 0 && n <= 1e6
}
