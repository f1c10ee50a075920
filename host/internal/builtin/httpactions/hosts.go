package httpactions

import (
	"net"
	"net/url"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
)

// hostList has the allowed hosts; nil allows all.
type hostList struct{ patterns []hostPattern }

// hostPattern is a host, *.host or *, for one port, or for all if port is
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

// plainURL returns the URL for messages: without password and query, which can
// contain secrets.
func plainURL(u *url.URL) string {
	short := *u
	short.User, short.RawQuery, short.Fragment = nil, "", ""
	return short.String()
}
