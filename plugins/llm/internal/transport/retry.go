package transport

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 30 * time.Second
)

// backoff is how long to wait after the given try: what the server asked for,
// otherwise twice as long each time, with half of it left to chance so that
// many devices do not come back at the same instant.
func backoff(attempt int, failure *tea.Error) time.Duration {
	if failure.RetryAfter > 0 {
		return failure.RetryAfter
	}
	d := maxBackoff
	if attempt < 7 {
		d = min(maxBackoff, firstBackoff<<(attempt-1))
	}
	return d/2 + rand.N(d/2)
}

// retryAfter reads a Retry-After header: seconds (some servers send
// fractions) or an HTTP date. 0 where there is none or it has passed.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return duration(ms / 1000)
	}
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return duration(seconds)
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}

// duration takes what a header says for granted only within a day.
func duration(seconds float64) time.Duration {
	if !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, 24*60*60) * float64(time.Second))
}
