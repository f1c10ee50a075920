package cron

import (
	"archive/zip"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

const minute = "2006-01-02 15:04 -0700"

func mustParse(t *testing.T, text string) *Schedule {
	t.Helper()
	s, _, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, ok := database(t)[name]
	if !ok {
		t.Fatalf("the database has no zone %s", name)
	}
	return z
}

// database returns all zones of the database of the Go distribution.
func database(t *testing.T) map[string]*time.Location {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(out)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	zones := map[string]*time.Location{}
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if zones[f.Name], err = time.LoadLocationFromTZData(f.Name, data); err != nil {
			t.Fatal(err)
		}
	}
	return zones
}

func TestTimesAroundChangesOfTheClock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, zone, cron, after string
		want                    []string
	}{
		{"a fixed time in the gap runs directly after it", "Europe/Berlin", "30 2 * * *", "2026-03-28 02:00 +0100", []string{"2026-03-28 02:30 +0100", "2026-03-29 03:00 +0200", "2026-03-30 02:30 +0200"}},
		{"two fixed times in the gap run once", "Europe/Berlin", "10,50 2 29 3 *", "2026-03-28 02:00 +0100", []string{"2026-03-29 03:00 +0200", "2027-03-29 02:10 +0200"}},
		{"a fixed time in the gap and one at its end run once", "Europe/Berlin", "0 2,3 * * *", "2026-03-28 12:00 +0100", []string{"2026-03-29 03:00 +0200", "2026-03-30 02:00 +0200"}},
		{"a fixed time in the repeated hour runs once", "Europe/Berlin", "30 2 * * *", "2026-10-24 12:00 +0200", []string{"2026-10-25 02:30 +0200", "2026-10-26 02:30 +0100"}},
		{"a position in the repeated hour", "Europe/Berlin", "30 2 * * *", "2026-10-25 02:10 +0100", []string{"2026-10-26 02:30 +0100"}},
		{"the hours of an interval that are repeated", "Europe/Berlin", "0 */1 * * *", "2026-10-25 01:30 +0200", []string{"2026-10-25 02:00 +0200", "2026-10-25 02:00 +0100", "2026-10-25 03:00 +0100"}},
		{"minutes of the gap", "Europe/Berlin", "*/30 * * * *", "2026-03-29 01:30 +0100", []string{"2026-03-29 03:00 +0200", "2026-03-29 03:30 +0200"}},
		{"every midnight of Cairo", "Africa/Cairo", "0 0 * * *", "2026-04-23 12:00 +0200", []string{"2026-04-24 01:00 +0300", "2026-04-25 00:00 +0300"}},
		{"the week of Cairo", "Africa/Cairo", "0 0 * * 5", "2026-04-23 12:00 +0200", []string{"2026-04-24 01:00 +0300", "2026-05-01 00:00 +0300"}},
		{"the year of Santiago", "America/Santiago", "30 0 6 9 *", "2026-09-05 12:00 -0400", []string{"2026-09-06 01:00 -0300", "2027-09-06 00:30 -0300"}},
		{"midnight of Cairo, repeated", "Africa/Cairo", "30 23 * * *", "2026-10-29 12:00 +0300", []string{"2026-10-29 23:30 +0300", "2026-10-30 23:30 +0200"}},
		{"the half hour of Lord Howe", "Australia/Lord_Howe", "15 2 * * *", "2026-10-03 12:00 +1030", []string{"2026-10-04 02:30 +1100", "2026-10-05 02:15 +1100"}},
		{"the half hour of Lord Howe, repeated", "Australia/Lord_Howe", "45 1 * * *", "2026-04-04 12:00 +1100", []string{"2026-04-05 01:45 +1100", "2026-04-06 01:45 +1030"}},
		{"the day that Samoa skipped", "Pacific/Apia", "0 12 * * *", "2011-12-29 13:00 -1000", []string{"2011-12-31 00:00 +1400", "2011-12-31 12:00 +1400"}},
		{"days of the month that Samoa skipped", "Pacific/Apia", "0 12 30 * *", "2011-12-01 13:00 -1000", []string{"2011-12-31 00:00 +1400", "2012-01-30 12:00 +1400"}},
		{"the hours of the day that Samoa skipped", "Pacific/Apia", "0 * * * *", "2011-12-29 22:30 -1000", []string{"2011-12-29 23:00 -1000", "2011-12-31 00:00 +1400", "2011-12-31 01:00 +1400"}},
		{"29 February or a Thursday", "UTC", "5 5 29 2 4", "2026-02-20 00:00 +0000", []string{"2026-02-26 05:05 +0000", "2027-02-04 05:05 +0000"}},
		{"the 13th or a Friday", "UTC", "0 0 13 * 5", "2026-01-08 00:00 +0000", []string{"2026-01-09 00:00 +0000", "2026-01-13 00:00 +0000", "2026-01-16 00:00 +0000"}},
		{"every other day that is a Friday", "UTC", "0 0 */2 * 5", "2026-01-01 00:00 +0000", []string{"2026-01-09 00:00 +0000", "2026-01-23 00:00 +0000"}},
		{"29 February around 2100", "UTC", "0 0 29 2 *", "2096-03-01 00:00 +0000", []string{"2104-02-29 00:00 +0000"}},
		{"Sunday as 7, over the end of the week", "UTC", "0 0 * * 6-7", "2026-01-01 00:00 +0000", []string{"2026-01-03 00:00 +0000", "2026-01-04 00:00 +0000", "2026-01-10 00:00 +0000"}},
		{"over the end of the week", "UTC", "0 0 * * FRI-mon/3", "2026-01-01 00:00 +0000", []string{"2026-01-02 00:00 +0000", "2026-01-05 00:00 +0000"}},
		{"over midnight", "UTC", "0 22-2/2 1 1 *", "2026-01-01 00:00 +0000", []string{"2026-01-01 02:00 +0000", "2026-01-01 22:00 +0000", "2027-01-01 00:00 +0000"}},
		{"a shortcut", "UTC", "@Weekly", "2026-01-01 00:00 +0000", []string{"2026-01-04 00:00 +0000"}},
		{"between minutes", "UTC", "* * * * *", "2026-01-01 00:00 +0000", []string{"2026-01-01 00:01 +0000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, z := mustParse(t, c.cron), zone(t, c.zone)
			at, err := time.Parse(minute, c.after)
			if err != nil {
				t.Fatal(err)
			}
			at = at.In(z)
			var got []string
			for range c.want {
				at = s.Next(at)
				got = append(got, at.Format(minute))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("times (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExpressionsThatAreWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cron, problem, hint string }{
		{"61 * * * *", `minute: "61" is not between 0 and 59`, "0 6 * * 1-5"},
		{"* 24 * * *", `hour: "24" is not between 0 and 23`, ""},
		{"* * 0 * *", `day of month: "0" is not between 1 and 31`, ""},
		{"* * * 13 *", `month: "13" is not between 1 and 12`, ""},
		{"* * * * 8", `day of week: "8" is not between 0 and 7`, ""},
		{"* * * * maybe", `day of week: "maybe" is not between 0 and 7`, ""},
		{"*/0 * * * *", `the step "0" is not between 1 and 59`, ""},
		{"*/x * * * *", `the step "x" is not between`, ""},
		{"1,,2 * * * *", `minute: "" is not between`, ""},
		{"-1 * * * *", `minute: "" is not between`, ""},
		{"+1 * * * *", `minute: "+1" is not between`, ""},
		{"* * L * *", `day of month: "L" is not between`, ""},
		{"*5 * * * *", `minute: "*5" is not between`, ""},
		{"", "it has 0 fields, not 5", ""},
		{"0 6 * *", "it has 4 fields, not 5", ""},
		{"0 0 6 * * *", "it has 6 fields, not 5", "seconds and years are not supported"},
		{"@every 5m", "is not a cron expression", "write every: 5m"},
		{"@reboot", "is not a cron expression", "write at_start: true"},
		{"@dayly", "is not a cron expression", "@daily"},
		{"CRON_TZ=Europe/Berlin 0 6 * * *", "the time zone is a key", `write cron: "0 6 * * *", timezone: Europe/Berlin`},
		{"0 0 30 2 *", "never matches", "use a day that exists in the month"},
		{"0 0 31 4,6,9,11 *", "never matches", ""},
	} {
		_, hint, err := Parse(c.cron)
		if err == nil || !strings.Contains(err.Error(), c.problem) || !strings.Contains(hint, c.hint) {
			t.Errorf("%q: %v, hint %q; want %q, hint %q", c.cron, err, hint, c.problem, c.hint)
		}
	}
}

// slow is an expression whose times are found minute by minute.
type slow struct {
	text   string
	sets   [5]map[int]bool
	stars  [5]bool
	fixed  bool
	either bool
}

func newSlow(t *testing.T, text string) *slow {
	t.Helper()
	s := &slow{text: text}
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i, word := range strings.Fields(text) {
		s.sets[i], s.stars[i] = map[int]bool{}, word[0] == '*'
		for _, part := range strings.Split(word, ",") {
			values, step, _ := strings.Cut(part, "/")
			from, to, by := 0, 59, 1
			if step != "" {
				by = number(step)
			}
			if values != "*" {
				first, last, isRange := strings.Cut(values, "-")
				from, to = number(first), number(first)
				if isRange {
					to = number(last)
				}
			} else if i == 2 || i == 3 {
				from = 1
			}
			for n := from; n <= to; n += by {
				s.sets[i][n] = true
			}
		}
	}
	s.fixed, s.either = !s.stars[0] && !s.stars[1], !s.stars[2] && !s.stars[4]
	return s
}

func (s *slow) match(shown time.Time) bool {
	day, weekday := s.sets[2][shown.Day()], s.sets[4][int(shown.Weekday())]
	return s.sets[0][shown.Minute()] && s.sets[1][shown.Hour()] && s.sets[3][int(shown.Month())] && (day && weekday || s.either && (day || weekday))
}

// times looks at the clock each minute from one instant to another: a fixed time runs in
// the minute in which the clock has first reached or passed it, any other one whenever the
// clock shows it.
func (s *slow) times(from, to time.Time) (list []time.Time) {
	reached := shows(from)
	for at := from.Add(time.Minute); at.Before(to); at = at.Add(time.Minute) {
		shown := shows(at)
		due := !s.fixed && s.match(shown)
		for ; s.fixed && reached.Before(shown); reached = reached.Add(time.Minute) {
			due = due || s.match(reached.Add(time.Minute))
		}
		if due {
			list = append(list, at)
		}
	}
	return list
}

// shows returns what a clock shows, as a time in UTC.
func shows(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// changes returns the instants at which the clock of a zone changes, and an identity of
// what it shows from 2020 to 2037.
func changes(z *time.Location) (list []time.Time, identity string) {
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).In(z)
	_, offset := at.Zone()
	identity = fmt.Sprint(offset, " ")
	for step := 12 * time.Hour; at.Year() < 2038; at = at.Add(step) {
		if _, after := at.Add(step).Zone(); after == offset {
			continue
		}
		for end := at.Add(time.Minute); ; end = end.Add(time.Minute) {
			if _, after := end.Zone(); after != offset {
				offset = after
				list = append(list, end)
				identity += fmt.Sprint(end.Unix(), after, " ")
				break
			}
		}
	}
	return list, identity
}

func TestEveryChangeOfEveryZone(t *testing.T) {
	t.Parallel()
	zones := database(t)
	if len(zones) < 500 {
		t.Fatalf("the database has %d zones", len(zones))
	}
	seen, compared := map[string]bool{}, 0
	for name, z := range zones {
		list, identity := changes(z)
		if seen[identity] {
			continue
		}
		seen[identity] = true
		for i, change := range list {
			if (testing.Short() || peertest.RaceDetector) && i > 4 {
				break
			}
			compareAround(t, name, change)
			compared++
		}
	}
	t.Logf("%d changes of %d zones with different clocks", compared, len(seen))
}

// compareAround compares the times around a change with the slow ones.
func compareAround(t *testing.T, name string, change time.Time) {
	t.Helper()
	from, to := change.Add(-90*time.Minute), change.Add(150*time.Minute)
	before, after := shows(change.Add(-time.Minute)), shows(change)
	for _, text := range []string{
		"*/15 * * * *", "0 * * * *", "30 */2 * * *", "0,30 0-23 * * *", "7-59/10 0,1,2,3,23 * * *",
		fixed(before.Add(time.Minute)), fixed(before.Add(16 * time.Minute)), fixed(after), fixed(after.Add(-time.Minute)), fixed(after.Add(20 * time.Minute)),
		fmt.Sprintf("*/10 %d * * *", after.Hour()),
		fmt.Sprintf("%d %d %d * *", before.Minute(), before.Hour(), before.Day()),
		fmt.Sprintf("30 0 %d * %d", after.Day(), before.Weekday()),
	} {
		want := newSlow(t, text).times(from, to)
		s := mustParse(t, text)
		for at := from; len(want) > 0; at = at.Add(5 * time.Minute) {
			for len(want) > 0 && !want[0].After(at) {
				want = want[1:]
			}
			if len(want) > 0 && !s.Next(at).Equal(want[0]) {
				t.Errorf("%s: %q after %s: %s, want %s", name, text, at, s.Next(at), want[0])
				break
			}
		}
		if got := s.Next(to.Add(-time.Minute)); got.Before(to) {
			t.Errorf("%s: %q: %s is not a time after %s", name, text, got, to)
		}
	}
}

// fixed returns the expression for what a clock shows, each day.
func fixed(shown time.Time) string { return fmt.Sprintf("%d %d * * *", shown.Minute(), shown.Hour()) }
