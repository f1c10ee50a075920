package notify

import (
	"testing"
	"time"
)

func TestQuietHours(t *testing.T) {
	t.Parallel()
	night := Quiet{From: "22:00", To: "06:30", Timezone: "Europe/Berlin"}
	noon := Quiet{From: "12:00", To: "13:00", Timezone: "America/New_York", Passes: "high"}
	early := Quiet{From: "23:00", To: "02:30", Timezone: "America/New_York"}
	earlier := Quiet{From: "23:00", To: "01:30", Timezone: "America/New_York"}
	for _, c := range []struct {
		quiet         Quiet
		now, priority string
		until         string
	}{
		{night, "2026-06-01T19:59:59Z", "", ""},
		{night, "2026-06-01T20:00:00Z", "", "2026-06-02T04:30:00Z"},
		{night, "2026-06-02T04:29:59Z", "high", "2026-06-02T04:30:00Z"},
		{night, "2026-06-02T04:30:00Z", "", ""},
		{night, "2026-06-02T00:00:00Z", "urgent", ""},
		{night, "2026-12-31T22:00:00Z", "", "2027-01-01T05:30:00Z"},
		{night, "2026-10-24T21:00:00Z", "", "2026-10-25T05:30:00Z"},   // clocks go back that night
		{early, "2026-03-08T06:45:00Z", "", "2026-03-08T07:00:00Z"},   // clocks go forward from 2:00 to 3:00
		{earlier, "2026-11-01T06:10:00Z", "", "2026-11-01T06:30:00Z"}, // the second 1:10
		{noon, "2026-06-01T16:30:00Z", "default", "2026-06-01T17:00:00Z"},
		{noon, "2026-06-01T16:30:00Z", "high", ""},
		{noon, "2026-06-01T17:00:00Z", "min", ""},
	} {
		q, err := c.quiet.parse()
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if end := q.until(now, c.priority); !end.IsZero() {
			got = end.UTC().Format(time.RFC3339)
		}
		if got != c.until {
			t.Errorf("%v at %s with priority %q: quiet until %q, want %q", c.quiet, c.now, c.priority, got, c.until)
		}
	}
}
