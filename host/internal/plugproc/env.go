package plugproc

import (
	"slices"
	"strings"
)

// passedOn are the host's variables that every plugin gets. A plugin's keys
// and addresses come by the workflow's settings, never from here.
var passedOn = []string{
	// where things are
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
	// language and time
	"LANG", "LC_ALL", "LC_CTYPE", "TZ",
	// the way to the network
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
	// limits of the Go runtime
	"GOMAXPROCS", "GOMEMLIMIT", "GOGC",
	// when a plugin opens its database
	"DUCKDB_WARMUP",
}

// cleanEnv is a plugin's environment but for what go-plugin adds: the
// variables that are passed on, and extra.
func cleanEnv(host, extra []string) []string {
	env := make([]string, 0, len(passedOn)+len(extra))
	for _, entry := range host {
		if name, _, ok := strings.Cut(entry, "="); ok && slices.Contains(passedOn, name) {
			env = append(env, entry)
		}
	}
	return append(env, extra...)
}
