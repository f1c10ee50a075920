// Package clock tells the time for what expires.
package clock

import (
	"encoding/json"
	"fmt"
	"time"
)

// Clock reads the wall clock once and goes on with the monotonic one: a wall
// clock that is set while the process runs neither expires nor revives
// anything. It is safe for concurrent use.
type Clock struct {
	wall  time.Time
	since func() time.Duration
}

// New starts a clock at the wall clock's time.
func New() *Clock {
	start := time.Now()
	return &Clock{wall: start.Round(0).UTC(), since: func() time.Duration { return time.Since(start) }}
}

// Fixed is a clock for tests: it stands at start plus what elapsed gives.
func Fixed(start time.Time, elapsed func() time.Duration) *Clock {
	return &Clock{wall: start.Round(0).UTC(), since: elapsed}
}

// Now is the time in UTC.
func (c *Clock) Now() time.Time { return c.wall.Add(c.since()) }

// Micro is Now in microseconds since 1970, as the databases keep it.
func (c *Clock) Micro() int64 { return c.Now().UnixMicro() }

// FromMicro is the instant of a database's microseconds; 0 is the zero time.
func FromMicro(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// layout writes microseconds always, so that the order of texts is the order
// of instants.
const layout = "2006-01-02T15:04:05.000000Z"

// Text is an instant as documents keep it: RFC 3339 in UTC, "" for the zero
// time. What the layout cannot hold becomes its first or last year.
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

// Instant is a time in the JSON of a document, in the form of [Text].
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

// FromText is the instant of a Text; "" is the zero time.
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
