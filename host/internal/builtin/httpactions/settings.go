package httpactions

import (
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Settings are settings.http of a workflow.
type Settings struct {
	AllowHosts   []string          `json:"allow_hosts,omitempty" doc:"the allowed hosts, also for redirects: example.com, *.example.com (its subdomains), example.com:8443, *. Absent: all; an empty list: none"`
	MaxBodyBytes int64             `json:"max_body_bytes,omitempty" default:"10485760" minimum:"1" doc:"the maximum size of a response, after decompression"`
	MaxRedirects int               `json:"max_redirects,omitempty" default:"10" minimum:"0" doc:"the maximum number of redirects"`
	Timeout      float64           `json:"timeout_seconds,omitempty" default:"30" minimum:"0" doc:"timeout of a call that sets none"`
	UserAgent    string            `json:"user_agent,omitempty" doc:"the User-Agent header; default tea and its version"`
	Headers      map[string]string `json:"headers,omitempty" doc:"headers for every call; those of the call take precedence"`
}

// readSettings returns the settings with their defaults, and their host
// patterns.
func readSettings(given tea.Settings, version string) (Settings, *hostList, error) {
	s := Settings{MaxBodyBytes: 10 << 20, MaxRedirects: 10, Timeout: 30, UserAgent: "tea/" + version}
	if err := given.Decode("http", &s); err != nil {
		return s, nil, err
	}
	if s.MaxBodyBytes < 1 || s.MaxRedirects < 0 {
		return s, nil, tea.Errorf(tea.ValidationError, "settings.http: max_body_bytes must be at least 1, max_redirects at least 0")
	}
	if _, err := duration(s.Timeout); err != nil {
		return s, nil, tea.Errorf(tea.ValidationError, "settings.http: %s", tea.AsError(err).Message)
	}
	hosts, err := newHostList(s.AllowHosts)
	return s, hosts, err
}

// maxTimeout is a day.
const maxTimeout = 24 * 3600

func duration(seconds float64) (time.Duration, error) {
	if !(seconds > 0) || seconds > maxTimeout {
		return 0, tea.Errorf(tea.ValidationError, "timeout_seconds must be above 0 and at most %d, got %v", maxTimeout, seconds)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
