package httpactions

import (
	"encoding/json"
	"net"
	"net/url"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// hostList has the allowed hosts; nil allows all.
type hostList struct{ patterns []hostPattern }

// hostPattern is a host, *.host or *, for one port, or for every port if port is
// empty.
type hostPattern struct{ host, port string }

func newHostList(patterns []string) (*hostList, error) {
	if patterns == nil {
		return nil, nil
	}
	list := &hostList{}
	for _, text := range patterns {
		p := hostPattern{host: text}
		if host, port, err := net.SplitHostPort(text); err == nil {
			p = hostPattern{host: host, port: port}
		}
		p.host = normalHost(p.host)
		if strings.Trim(p.port, "0123456789") != "" || p.host == "" || strings.ContainsAny(p.host, "/@ ") || strings.Contains(strings.TrimPrefix(p.host, "*"), "*") ||
			strings.HasPrefix(p.host, "*") && p.host != "*" && !strings.HasPrefix(p.host, "*.") {
			return nil, tea.Errorf(tea.ValidationError, "settings.http.allow_hosts: %q is not a host such as example.com, *.example.com or example.com:8443, without protocol and path", text)
		}
		list.patterns = append(list.patterns, p)
	}
	return list, nil
}

func normalHost(host string) string {
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// check rejects URLs that are not HTTP or whose host is not on the list.
func (l *hostList) check(u *url.URL) error {
	if u.Scheme != "http" && u.Scheme != "https" {
		return tea.Errorf(tea.ValidationError, "url %q must begin with http:// or https://", plainURL(u))
	}
	if u.Hostname() == "" {
		return tea.Errorf(tea.ValidationError, "url %q has no host", plainURL(u))
	}
	if l.allows(u) {
		return nil
	}
	e := tea.Errorf(tea.PermissionDenied, "the host %s is not in settings.http.allow_hosts", u.Host)
	e.Details = map[string]any{"host": u.Host}
	return e
}

func (l *hostList) allows(u *url.URL) bool {
	if l == nil {
		return true
	}
	host, port := normalHost(u.Hostname()), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	for _, p := range l.patterns {
		if p.port != "" && p.port != port {
			continue
		}
		if p.host == "*" || p.host == host || strings.HasPrefix(p.host, "*.") && strings.HasSuffix(host, p.host[1:]) {
			return true
		}
	}
	return false
}

// plainURL returns the URL for messages, without password and query, which can
// contain secrets.
func plainURL(u *url.URL) string {
	short := *u
	short.User, short.RawQuery, short.Fragment = nil, "", ""
	return short.String()
}

// Settings are settings.http of a workflow.
type Settings struct {
	AllowHosts   []string          `json:"allow_hosts,omitempty" doc:"the allowed hosts, also for redirects: example.com, *.example.com (its subdomains), example.com:8443, *. Absent: all; an empty list or null: none"`
	MaxBodyBytes int64             `json:"max_body_bytes,omitempty" default:"10485760" minimum:"1" doc:"the maximum size of a response, after decompression"`
	MaxRedirects int               `json:"max_redirects,omitempty" default:"10" minimum:"0" doc:"the maximum number of redirects"`
	Timeout      float64           `json:"timeout_seconds,omitempty" default:"30" minimum:"0" doc:"timeout of a call that sets none"`
	UserAgent    string            `json:"user_agent,omitempty" doc:"the User-Agent header; default tea and its version"`
	Headers      map[string]string `json:"headers,omitempty" doc:"headers for every call; the call's own take precedence"`
}

// readSettings returns the settings with their defaults, and their host
// patterns.
func readSettings(given tea.Settings, version string) (Settings, *hostList, error) {
	s := Settings{UserAgent: "tea/" + version}
	if err := given.Decode("http", &s); err != nil {
		return s, nil, err
	}
	if _, err := duration(s.Timeout); err != nil {
		return s, nil, tea.Errorf(tea.ValidationError, "settings.http: %s", tea.AsError(err).Message)
	}
	var written map[string]json.RawMessage
	if err := given.Decode("http", &written); err != nil {
		return s, nil, err
	}
	if _, isWritten := written["allow_hosts"]; isWritten && s.AllowHosts == nil {
		s.AllowHosts = []string{} // after its last entry is removed, a list must not allow all
	}
	hosts, err := newHostList(s.AllowHosts)
	return s, hosts, err
}

const maxTimeout = 24 * 3600

func duration(seconds float64) (time.Duration, error) {
	if !(seconds > 0) || seconds > maxTimeout {
		return 0, tea.Errorf(tea.ValidationError, "timeout_seconds must be above 0 and at most %d, got %v", maxTimeout, seconds)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
