package local

import (
	"time"

	"github.com/the-edge-agent/tea/sdk/x/safenet"
)

// Settings are the settings of the local provider.
type Settings struct {
	AllowPrivate  bool     `json:"allow_private,omitempty" doc:"allow requests to loopback, link-local, private and other addresses that are not public"`
	UserAgent     string   `json:"user_agent,omitempty" maxLength:"500" doc:"the User-Agent header; its first word is the name that robots.txt is searched for; default tea/VERSION"`
	Timeout       float64  `json:"timeout,omitempty" minimum:"0.1" maximum:"3600" doc:"limit in seconds for one page; default 30"`
	MaxBodyBytes  int64    `json:"max_body_bytes,omitempty" minimum:"1" maximum:"268435456" doc:"limit for one response, before and after decompression; default 10485760 (10 MiB)"`
	MaxRedirects  *int     `json:"max_redirects,omitempty" minimum:"0" maximum:"50" doc:"limit for the redirects of one request; default 10"`
	HostDelay     *float64 `json:"host_delay,omitempty" minimum:"0" maximum:"60" doc:"seconds between the starts of two requests to one host; default 0.5"`
	CacheDir      string   `json:"cache_dir,omitempty" format:"path" doc:"directory of the cache; default: tea/web in the user's cache directory"`
	CacheMaxBytes *int64   `json:"cache_max_bytes,omitempty" minimum:"0" doc:"limit for the size of the cache; 0 turns it off; default 67108864 (64 MiB)"`
}

// Guard returns the guard of connections.
func (s Settings) Guard() *safenet.Guard {
	return &safenet.Guard{AllowPrivate: s.AllowPrivate, Remedy: "set settings.web.allow_private: true to allow it"}
}

// Defaults of the settings; the guide names them too.
const (
	defaultTimeout       = 30 * time.Second
	defaultMaxBodyBytes  = 10 << 20
	defaultMaxRedirects  = 10
	defaultHostDelay     = 500 * time.Millisecond
	defaultCacheMaxBytes = 64 << 20
)

// or returns *p, or otherwise if p is nil.
func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// seconds converts a number of seconds.
func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
