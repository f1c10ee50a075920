package server

import (
	"hash/maphash"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// plan is a schedule whose clock the test sets.
type plan struct {
	*planner
	t       *trigger
	started []string
	looked  time.Time
}

const clock = "02 15:04:05"

// at returns a time on a day of January 2026, such as 01 06:00:00.
func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse("2006-01 "+clock, "2026-01 "+text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// newPlan returns the plan of a trigger at six o'clock, or of an interval.
func newPlan(t *testing.T, c host.TimerConfig) *plan {
	t.Helper()
	l := openTest(t, t.TempDir())
	t.Cleanup(l.close)
	p := &plan{t: &trigger{TriggerConfig: &host.TriggerConfig{Timer: &c}, id: "t"}}
	p.t.next = func(after time.Time) time.Time { return after.Add(c.Every) }
	if c.Every == 0 {
		file := filepath.Join(t.TempDir(), serveFile)
		if err := os.WriteFile(file, []byte(`workflows: {t: {triggers: [{cron: "0 6 * * *", timezone: UTC}]}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		sections, err := host.LoadServe(file)
		if err != nil {
			t.Fatal(err)
		}
		c.Schedule, c.Zone = sections["t"].Triggers[0].Timer.Schedule, sections["t"].Triggers[0].Timer.Zone
		if _, err := p.t.cron(); err != nil {
			t.Fatal(err)
		}
	}
	p.planner = &planner{s: &server{mu: &l.mu, led: l}, seed: maphash.MakeSeed(), base: map[string]time.Time{}, passed: map[string]time.Time{}, start: func(tr *trigger, at time.Time) {
		p.started = append(p.started, at.UTC().Format(clock))
		l.mu.Lock()
		defer l.mu.Unlock()
		if _, err := l.add(false, &entry{Fired: &firing{tr.id, at}}); err != nil {
			t.Error(err)
		}
	}}
	return p
}

func TestMissedTimes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		config host.TimerConfig
		// clock are the times at which the planner looks; the first one is the first
		// start of the server, and others can be a start or the end of a suspension.
		clock []string
		want  []string
	}{
		{"on time", host.TimerConfig{}, []string{"01 12:00:00", "02 05:59:59", "02 06:00:00", "02 06:00:15", "03 06:00:10"}, []string{"02 06:00:00", "03 06:00:00"}},
		{"one after being off", host.TimerConfig{}, []string{"01 12:00:00", "05 12:00:00", "05 12:00:15"}, []string{"05 06:00:00"}},
		{"skip after being off", host.TimerConfig{CatchUp: "skip"}, []string{"01 12:00:00", "05 12:00:00", "06 06:00:00"}, []string{"06 06:00:00"}},
		{"skip the last minute of being off", host.TimerConfig{CatchUp: "skip"}, []string{"01 12:00:00", "start 02 06:00:20", "02 06:00:35", "03 06:00:10"}, []string{"03 06:00:00"}},
		{"skip the last minute of a suspended machine", host.TimerConfig{CatchUp: "skip"}, []string{"01 12:00:00", "wake 02 06:00:20", "03 06:00:10"}, []string{"03 06:00:00"}},
		{"skip intervals after being off", host.TimerConfig{Every: time.Second * 10, CatchUp: "skip"}, []string{"01 12:00:00", "01 12:00:10", "start 01 12:05:03", "01 12:05:09", "01 12:05:10"}, []string{"01 12:00:10", "01 12:05:10"}},
		{"skip is not a little late", host.TimerConfig{CatchUp: "skip"}, []string{"01 12:00:00", "02 06:00:50"}, []string{"02 06:00:00"}},
		{"all after being off", host.TimerConfig{CatchUp: "all"}, []string{"01 12:00:00", "04 12:00:00", "04 12:00:15"}, []string{"02 06:00:00", "03 06:00:00", "04 06:00:00"}},
		{"clock set forward", host.TimerConfig{}, []string{"01 12:00:00", "02 06:00:00", "20 12:00:00", "21 06:00:00"}, []string{"02 06:00:00", "20 06:00:00", "21 06:00:00"}},
		{"clock set back", host.TimerConfig{}, []string{"10 12:00:00", "11 06:00:00", "05 12:00:00", "05 12:00:15", "06 06:00:00", "07 06:00:00"}, []string{"11 06:00:00", "06 06:00:00", "07 06:00:00"}},
		{"clock set back a little", host.TimerConfig{}, []string{"01 12:00:00", "02 06:00:00", "02 05:59:30", "02 06:00:00", "02 06:00:15"}, []string{"02 06:00:00"}},
		{"interval", host.TimerConfig{Every: time.Hour}, []string{"01 12:00:00", "01 12:59:59", "01 13:00:00", "01 14:00:01", "01 14:00:02"}, []string{"01 13:00:00", "01 14:00:00"}},
		{"interval after being off", host.TimerConfig{Every: time.Hour}, []string{"01 12:00:00", "03 12:30:00", "03 12:30:15", "03 13:00:00"}, []string{"03 12:00:00", "03 13:00:00"}},
		{"all of an interval", host.TimerConfig{Every: time.Hour, CatchUp: "all"}, []string{"01 12:00:00", "01 15:30:00"}, []string{"01 13:00:00", "01 14:00:00", "01 15:00:00"}},
		{"paused", host.TimerConfig{}, []string{"01 12:00:00", "pause 01 13:00:00", "02 06:00:00", "03 06:00:00", "resume 03 07:00:00", "04 06:00:00"}, []string{"04 06:00:00"}},
		{"paused with catch_up one", host.TimerConfig{CatchUp: "one"}, []string{"01 12:00:00", "pause 01 13:00:00", "03 06:00:00", "resume 03 07:00:00"}, []string{"03 06:00:00"}},
		{"a paused interval", host.TimerConfig{Every: time.Hour}, []string{"01 12:00:00", "pause 01 12:30:00", "01 13:00:00", "resume 01 14:20:00", "01 14:59:59", "01 15:00:00"}, []string{"01 15:00:00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlan(t, c.config)
			for _, now := range c.clock {
				now, paused := strings.CutPrefix(now, "pause ")
				now, resumed := strings.CutPrefix(now, "resume ")
				if paused || resumed {
					p.s.mu.Lock()
					_, err := p.s.led.add(false, p.s.pausing(p.t, paused, at(t, now))...)
					p.s.mu.Unlock()
					if err != nil {
						t.Fatal(err)
					}
				}
				now, started := strings.CutPrefix(now, "start ")
				now, woke := strings.CutPrefix(now, "wake ")
				if started {
					p.since = at(t, now)
				}
				if woke {
					p.jump(at(t, now), at(t, now).Sub(p.looked))
				}
				p.looked = at(t, now)
				next := p.run(p.t, at(t, now))
				if next.Before(at(t, now)) {
					t.Errorf("at %s: the next time is %s", now, next)
				}
			}
			if diff := cmp.Diff(c.want, p.started); diff != "" {
				t.Errorf("runs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTimesOfAPausedScheduleAreListed(t *testing.T) {
	t.Parallel()
	p := newPlan(t, host.TimerConfig{Every: time.Minute})
	p.run(p.t, at(t, "01 12:00:00"))
	if _, err := p.s.led.add(false, p.s.pausing(p.t, true, at(t, "01 12:00:30"))...); err != nil {
		t.Fatal(err)
	}
	p.run(p.t, at(t, "01 12:02:10"))
	p.run(p.t, at(t, "01 12:03:10"))
	var got []string
	for _, one := range p.s.skips.of("t") {
		got = append(got, one.At.UTC().Format(clock)+" "+one.Reason)
	}
	want := []string{"01 12:03:00 the trigger is paused", "01 12:02:00 the trigger is paused", "01 12:01:00 the trigger is paused"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	p.run(p.t, at(t, "02 12:00:00"))
	if n := len(p.s.skips.of("t")); n != maxSkips {
		t.Errorf("%d skipped starts are kept", n)
	}
}

func TestAllMissedTimesAreBounded(t *testing.T) {
	t.Parallel()
	p := newPlan(t, host.TimerConfig{Every: time.Minute, CatchUp: "all"})
	p.run(p.t, at(t, "01 00:00:00"))
	p.run(p.t, at(t, "20 00:00:30"))
	if len(p.started) != maxCatchUp || p.started[maxCatchUp-1] != "20 00:00:00" {
		t.Errorf("%d runs: %v", len(p.started), p.started)
	}
}

func TestClockThatLeaves1970SkipsMillionsOfTimes(t *testing.T) {
	t.Parallel()
	p := newPlan(t, host.TimerConfig{CatchUp: "all"})
	calls := 0
	p.t.next = func(after time.Time) time.Time {
		calls++
		return after.Truncate(time.Minute).Add(time.Minute)
	}
	p.run(p.t, time.Unix(60, 0))
	p.run(p.t, at(t, "20 00:00:30"))
	if len(p.started) != maxCatchUp || p.started[maxCatchUp-1] != "20 00:00:00" || calls > 10*maxCatchUp {
		t.Errorf("%d runs, the last one at %s, %d calls", len(p.started), p.started[len(p.started)-1], calls)
	}
}

func TestJitterIsBoundedAndConstant(t *testing.T) {
	t.Parallel()
	peertest.Long(t, "it takes seconds")
	delays := map[time.Duration]bool{}
	due := at(t, "02 06:00:00")
	for range 100 { // servers
		p := newPlan(t, host.TimerConfig{Jitter: time.Minute})
		p.run(p.t, at(t, "01 12:00:00"))
		next := p.run(p.t, at(t, "02 05:00:00"))
		delay := next.Sub(due)
		if delays[delay] = true; delay < 0 || delay >= time.Minute {
			t.Fatalf("the delay is %s", delay)
		}
		p.run(p.t, next.Add(-time.Nanosecond))
		if len(p.started) != 0 {
			t.Fatalf("a run before its time: %v", p.started)
		}
		p.run(p.t, next)
		p.run(p.t, next.Add(time.Second))
		if !slices.Equal(p.started, []string{"02 06:00:00"}) {
			t.Fatalf("runs: %v", p.started)
		}
	}
	if len(delays) < 50 {
		t.Errorf("100 servers have only %d delays", len(delays))
	}
}
