package cron

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// field is one of the five fields of an expression.
type field struct {
	name string
	// max is the largest number that can be written, last the largest value. They
	// differ for Sunday, which is both 0 and 7.
	min, last, max int
	// names has the names of the values, starting with min.
	names []string
}

var fields = []field{
	{"minute", 0, 59, 59, nil},
	{"hour", 0, 23, 23, nil},
	{"day of month", 1, 31, 31, nil},
	{"month", 1, 12, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of week", 0, 6, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

var shortcuts = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

const usage = "write minute, hour, day of month, month and day of week: 0 6 * * 1-5"

// Parse parses an expression: five fields, or a shortcut such as @daily. On error, hint
// suggests what to write instead.
func Parse(text string) (s *Schedule, hint string, err error) {
	text = strings.TrimSpace(text)
	expanded := text
	if strings.HasPrefix(text, "@") {
		if expanded = shortcuts[strings.ToLower(text)]; expanded == "" {
			return nil, shortcutHint(text), fmt.Errorf("%q is not a cron expression", text)
		}
	}
	if strings.Contains(text, "TZ=") {
		name, rest, _ := strings.Cut(text[strings.Index(text, "TZ=")+len("TZ="):], " ")
		return nil, "write cron: \"" + strings.TrimSpace(rest) + "\", timezone: " + name, errors.New("the time zone is a key of its trigger")
	}
	words := strings.Fields(expanded)
	if len(words) != len(fields) {
		hint = usage
		if len(words) == len(fields)+1 {
			hint += "; seconds and years are not supported"
		}
		return nil, hint, fmt.Errorf("%q is not a cron expression: it has %d fields, not %d", text, len(words), len(fields))
	}
	var sets [5]uint64
	for i, word := range words {
		if sets[i], err = fields[i].parse(word); err != nil {
			return nil, usage, fmt.Errorf("%q is not a cron expression: %s: %w", text, fields[i].name, err)
		}
	}
	s = &Schedule{
		minutes: sets[0], hours: sets[1], days: sets[2], months: sets[3], weekdays: sets[4],
		anyDay: anything(words[2]), anyWeekday: anything(words[4]), wildcard: anything(words[0]) || anything(words[1]),
	}
	if s.match(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, "use a day that exists in the month", fmt.Errorf("%q never matches", text)
	}
	return s, "", nil
}

func shortcutHint(text string) string {
	name, rest, _ := strings.Cut(text, " ")
	switch strings.ToLower(name) {
	case "@every":
		return "write every: " + strings.TrimSpace(rest)
	case "@reboot":
		return "write at_start: true"
	}
	return "use @yearly, @monthly, @weekly, @daily, @hourly or five fields: 0 6 * * 1-5"
}

func anything(word string) bool { return word[0] == '*' || word[0] == '?' }

// parse returns the values of a list such as 1,10-20/5.
func (f *field) parse(text string) (set uint64, err error) {
	for _, part := range strings.Split(text, ",") {
		values, step, stepped := strings.Cut(part, "/")
		low, high, err := f.bounds(values, stepped)
		if err != nil {
			return 0, err
		}
		by := 1
		if stepped {
			if by, err = strconv.Atoi(step); err != nil || by < 1 || by > f.max {
				return 0, fmt.Errorf("the step %q is not between 1 and %d", step, f.max)
			}
		}
		size := f.last - f.min + 1
		if high < low { // such as FRI-MON or 22-2
			high += size
		}
		for v := low; v <= high; v += by {
			set |= 1 << (f.min + (v-f.min)%size)
		}
	}
	return set, nil
}

// bounds returns the first and the last value of *, of a single value or of a range.
func (f *field) bounds(text string, stepped bool) (low, high int, err error) {
	if text == "*" || text == "?" {
		return f.min, f.last, nil
	}
	first, last, isRange := strings.Cut(text, "-")
	if low, err = f.value(first); err != nil {
		return 0, 0, err
	}
	switch high = low; {
	case isRange:
		high, err = f.value(last)
	case stepped:
		high = f.last
	}
	return low, high, err
}

func (f *field) value(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.min + i, nil
		}
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || int(n) < f.min || int(n) > f.max {
		return 0, fmt.Errorf("%q is not between %d and %d", text, f.min, f.max)
	}
	return int(n), nil
}
