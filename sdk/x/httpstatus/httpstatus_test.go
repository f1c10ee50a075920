package httpstatus

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"7": 7 * time.Second, "0.25": 250 * time.Millisecond, " 3 ": 3 * time.Second, "0": 0, "-5": 0, "": 0, "soon": 0, "NaN": 0,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second, "Sun, 01 Mar 2026 11:00:00 GMT": 0, "1e300": 365 * 24 * time.Hour,
	} {
		if got := RetryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if got := RetryAfter(http.Header{"Retry-After-Ms": {"20"}, "Retry-After": {"1"}}, now); got != 20*time.Millisecond {
		t.Errorf("milliseconds: got %s", got)
	}
}
