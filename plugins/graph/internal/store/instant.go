package store

import (
	"fmt"
	"time"
)

// ParseInstant reads a time or a date. It returns absent for "".
func ParseInstant(text string, absent int64) (int64, error) {
	if text == "" {
		return absent, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UnixMicro(), nil
		}
	}
	return 0, fmt.Errorf("%q is not a time such as 2026-01-31T12:00:00Z, nor a date such as 2026-01-31", text)
}

// FormatInstant writes a time; "" for [Always] and [Forever].
func FormatInstant(us int64) string {
	if us == Always || us == Forever {
		return ""
	}
	return time.UnixMicro(us).UTC().Format(time.RFC3339Nano)
}
