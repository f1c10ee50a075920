package graph

import (
	"time"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/graph/internal/store"
)

// toInstant reads a time or a date. "" is absent.
func toInstant(what, text string, absent int64) (int64, error) {
	if text == "" {
		return absent, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UnixMicro(), nil
		}
	}
	return 0, tea.Errorf(tea.ValidationError, "%s: %q is not a time such as 2026-01-31T12:00:00Z, nor a date such as 2026-01-31", what, text)
}

// fromInstant writes a time; "" for one without a bound.
func fromInstant(us int64) string {
	if us == store.Always || us == store.Forever {
		return ""
	}
	return time.UnixMicro(us).UTC().Format(time.RFC3339Nano)
}
