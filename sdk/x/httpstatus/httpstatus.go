// Package httpstatus classifies the HTTP status of a failed request.
package httpstatus

import (
	"strconv"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// The statuses that are not classified by their class. Package net/http, which has names for
// them, takes up a third of a program for browsers.
const (
	unauthorized      = 401
	forbidden         = 403
	notFound          = 404
	proxyAuthRequired = 407
	requestTimeout    = 408
	gone              = 410
	tooEarly          = 425
	tooManyRequests   = 429
	legalReasons      = 451
	gatewayTimeout    = 504
)

// ErrorType returns the error type of a status and whether it is retryable.
func ErrorType(status int) (kind tea.ErrorType, retryable bool) {
	switch status {
	case unauthorized, forbidden, proxyAuthRequired, legalReasons:
		return tea.PermissionDenied, false
	case notFound, gone:
		return tea.NotFound, false
	case requestTimeout, gatewayTimeout:
		return tea.Timeout, true
	case tooManyRequests:
		return tea.RateLimited, true
	case tooEarly:
		return tea.ConnectionError, true
	}
	if status >= 500 {
		return tea.ConnectionError, true
	}
	return tea.ValidationError, false
}

// Header is an [net/http.Header], or the headers of another client.
type Header interface{ Get(name string) string }

// RetryAfter parses the Retry-After header: seconds (some servers send
// fractions) or a date; 0 if it is absent, invalid or in the past. Some servers
// send milliseconds in Retry-After-Ms.
func RetryAfter(header Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		return duration(ms / 1000)
	}
	text := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return duration(seconds)
	}
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} {
		if at, err := time.Parse(layout, text); err == nil {
			return max(at.Sub(now), 0)
		}
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
