// Package httpstatus classifies the HTTP status of a failed request.
package httpstatus

import (
	"net/http"
	"strconv"
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

// RetryAfter parses the Retry-After header: seconds or a date; 0 if it is
// absent, invalid or in the past.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(max(seconds, 0)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
