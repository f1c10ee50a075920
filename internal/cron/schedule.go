package cron

import "time"

// Schedule is a cron expression. It is immutable and safe for concurrent use.
type Schedule struct {
	// minutes, hours, days, months and weekdays have a bit for each value.
	minutes, hours, days, months, weekdays uint64
	// anyDay and anyWeekday report that the field begins with *. If one of them does, a
	// day must match both fields; otherwise either is enough.
	anyDay, anyWeekday bool
	// wildcard reports whether the minutes or the hours begin with *.
	wildcard bool
}

const (
	// maxYears is how far away a time can be: 29 February is a Sunday every 28 years,
	// or every 40 years across a year such as 2100, which has no 29 February.
	maxYears = 45
	// window is longer than any difference between the clock before and after a change,
	// and shorter than the time between two changes.
	window = 48 * time.Hour
)

// Next returns the first time after the given one, in its zone.
func (s *Schedule) Next(after time.Time) time.Time {
	if !s.wildcard {
		return reach(s.match(unshown(after)), after.Location())
	}
	for from := after.Add(1); ; {
		shown, until := clock(from), from.Add(window)
		at := from.Add(s.match(ceil(shown)).Sub(shown))
		c, changes := change(from, until)
		switch {
		case changes && !at.Before(c):
			from = c
		case !changes && at.After(until):
			from = later(until, at.Add(-window))
		default:
			return at
		}
	}
}

// clock returns the wall clock time at an instant, as a time in UTC.
func clock(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}

// change returns when the clock changes between two instants. [time.Time.ZoneBounds] is
// not exact in the years in which a zone changes its rule, and at the end of leap years.
func change(from, to time.Time) (time.Time, bool) {
	offset := func(second int64) int {
		_, n := time.Unix(second, 0).In(from.Location()).Zone()
		return n
	}
	low, high := from.Unix(), to.Unix()
	before := offset(low)
	if offset(high) == before {
		return time.Time{}, false
	}
	for high-low > 1 {
		if middle := low + (high-low)/2; offset(middle) == before {
			low = middle
		} else {
			high = middle
		}
	}
	return time.Unix(high, 0).In(from.Location()), true
}

// unshown returns the first whole minute that the clock has not shown before or at an
// instant, even if it was set back.
func unshown(t time.Time) time.Time {
	next := clock(t).Truncate(time.Minute).Add(time.Minute)
	if c, ok := change(t.Add(-window), t); ok {
		return later(next, ceil(clock(c.Add(-1)).Add(1)))
	}
	return next
}

// reach returns the first instant at which the clock of a zone shows a time or a later
// one.
func reach(shown time.Time, zone *time.Location) time.Time {
	from := shown.Add(-window).In(zone)
	at := from.Add(shown.Sub(clock(from)))
	c, ok := change(from, at)
	if !ok {
		return at
	}
	return later(c, c.Add(shown.Sub(clock(c)))) // c if the clock skips the time
}

// ceil rounds a time up to a whole minute.
func ceil(t time.Time) time.Time { return t.Add(time.Minute - 1).Truncate(time.Minute) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// match returns the first time at or after a whole minute that the fields match, or
// zero if there is none.
func (s *Schedule) match(from time.Time) time.Time {
	for year := from.Year(); from.Year() <= year+maxYears; {
		y, m, d := from.Date()
		switch {
		case !has(s.months, int(m)):
			from = time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC)
		case !s.matchDay(from):
			from = time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
		case !has(s.hours, from.Hour()):
			from = from.Truncate(time.Hour).Add(time.Hour)
		case !has(s.minutes, from.Minute()):
			from = from.Add(time.Minute)
		default:
			return from
		}
	}
	return time.Time{}
}

func (s *Schedule) matchDay(t time.Time) bool {
	day, weekday := has(s.days, t.Day()), has(s.weekdays, int(t.Weekday()))
	if s.anyDay || s.anyWeekday {
		return day && weekday
	}
	return day || weekday
}

func has(set uint64, value int) bool { return set&(1<<value) != 0 }
