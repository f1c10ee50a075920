// Package clock is the clock for expiry times.
package clock

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Clock reads the wall clock once and then follows the monotonic clock: setting
// the wall clock while the process runs has no effect on expiry. It is safe for
// concurrent use.
type Clock struct {
	wall  time.Time
	since func() time.Duration
}

// New starts a clock at the wall clock's time.
func New() *Clock {
	start := time.Now()
	return &Clock{wall: start.Round(0).UTC(), since: func() time.Duration { return time.Since(start) }}
}

// Fixed returns a clock for tests, whose time is start plus elapsed.
func Fixed(start time.Time, elapsed func() time.Duration) *Clock {
	return &Clock{wall: start.Round(0).UTC(), since: elapsed}
}

// Now returns the time in UTC.
func (c *Clock) Now() time.Time { return c.wall.Add(c.since()) }

// Micro returns Now in microseconds since 1970, the form of the databases.
func (c *Clock) Micro() int64 { return c.Now().UnixMicro() }

// FromMicro returns the time for microseconds since 1970; 0 is the zero time.
func FromMicro(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// layout always has microseconds, so that texts sort by time.
const layout = "2006-01-02T15:04:05.000000Z"

// Text returns a time in the form of documents: RFC 3339 in UTC, "" for the zero
// time. Times outside of the layout's years become its first or last year.
func Text(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	t = t.UTC()
	switch {
	case t.Year() < 1:
		t = time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC)
	case t.Year() > 9999:
		t = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	}
	return t.Format(layout)
}

// Instant is a time in the JSON of a document, written by [Text].
type Instant struct{ time.Time }

// MarshalJSON writes the instant.
func (i Instant) MarshalJSON() ([]byte, error) { return json.Marshal(Text(i.Time)) }

// UnmarshalJSON reads an instant of any form of RFC 3339.
func (i *Instant) UnmarshalJSON(data []byte) error {
	var text string
	err := json.Unmarshal(data, &text)
	if err == nil {
		i.Time, err = FromText(text)
	}
	return err
}

// forms are the layouts that [Parse] accepts.
var forms = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", time.DateOnly}

// Parse reads an instant in RFC 3339. A space may separate date and time, the default zone is UTC, and the default time
// midnight. It is truncated to microseconds. Years outside of 1 to 9999 are not accepted.
func Parse(s string) (time.Time, bool) {
	for _, form := range forms {
		if t, err := time.Parse(form, s); err == nil {
			t = t.UTC().Truncate(time.Microsecond)
			return t, t.Year() >= 1 && t.Year() <= 9999
		}
	}
	return time.Time{}, false
}

// Collation is the name of Compare in SQLite.
const Collation = "tea_instant"

// Compare orders texts in any form that [Parse] accepts by time. Other texts are
// ordered by their bytes, among the texts of instants.
func Compare(a, b string) int { return strings.Compare(canonical(a), canonical(b)) }

func canonical(s string) string {
	if len(s) < len(time.DateOnly) || len(s) == len(layout) && s[len(s)-1] == 'Z' && s[len("2006-01-02")] == 'T' {
		return s
	}
	if t, ok := Parse(s); ok {
		return t.Format(layout)
	}
	return s
}

// FromText parses a Text; "" is the zero time.
func FromText(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("read an instant: %w", err)
	}
	return t.UTC(), nil
}
