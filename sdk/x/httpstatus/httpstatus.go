// Package httpstatus classifies the HTTP status of a failed request.
package httpstatus

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// ErrorType returns the error type of a status and whether it is retryable.
func ErrorType(status int) (kind tea.ErrorType, retryable bool) {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusUnavailableForLegalReasons:
		return tea.PermissionDenied, false
	case http.StatusNotFound, http.StatusGone:
		return tea.NotFound, false
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return tea.Timeout, true
	case http.StatusTooManyRequests:
		return tea.RateLimited, true
	case http.StatusTooEarly:
		return tea.ConnectionError, true
	}
	if status >= 500 {
		return tea.ConnectionError, true
	}
	return tea.ValidationError, false
}

// RetryAfter parses the Retry-After header: seconds (some servers send
// fractions) or a date; 0 if it is absent, invalid or in the past. Some servers
// send milliseconds in Retry-After-Ms.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		return duration(ms / 1000)
	}
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return duration(seconds)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// duration converts the seconds of a header, at most a year.
func duration(seconds float64) time.Duration {
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, 365*24*60*60) * float64(time.Second))
}
