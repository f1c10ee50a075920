package server

import (
	"hash/maphash"
	"time"

	"github.com/the-edge-agent/tea/client"
	"github.com/the-edge-agent/tea/host"
)

const (
	// maxSleep is the longest sleep of the scheduler: the clock may be set, and the
	// machine may be suspended.
	maxSleep = 15 * time.Second
	// onTime is the longest delay with which a time does not count as missed while the
	// server is running.
	onTime = time.Minute
	// maxCatchUp is how many missed times catch_up: all runs.
	maxCatchUp = 100
)

// schedule starts the runs of cron, every and at_start.
func (s *server) schedule() {
	for _, t := range s.catalog.triggers(host.TriggerAtStart) {
		_ = s.fire(t, t.event(nil), request{once: true}) // already logged
	}
	today := day(time.Now())
	p := &planner{s: s, seed: maphash.MakeSeed(), base: map[string]time.Time{}, passed: map[string]time.Time{}, since: time.Now(), start: s.startScheduled}
	files := newWatcher(s)
	defer s.brokers.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	before := time.Now()
	refreshed := before
	for {
		select {
		case <-timer.C:
		case <-s.triggersChanged:
			s.warnSharedProblems()
		case <-s.ctx.Done():
			return
		}
		s.recordProgress()
		s.brokers.update()
		s.watches.update()
		now := time.Now()
		if step := clockStep(before, now); step.Abs() > time.Second {
			s.resetTimers()
			p.jump(now, step)
			s.mu.Lock()
			s.led.state.renewKeys(now.Round(0))
			s.mu.Unlock()
		}
		before = now
		if now.Sub(refreshed).Abs() >= refreshInterval {
			refreshed = now
			s.refresh()
		}
		if d := day(now); d != today { // runs may wait for their budgets
			today = d
			s.mu.Lock()
			s.dispatch()
			s.mu.Unlock()
		}
		next := now.Add(maxSleep)
		for _, t := range s.catalog.triggers(host.TriggerCron, host.TriggerEvery) {
			if due := p.run(t, now); due.Before(next) {
				next = due
			}
		}
		if due := files.scan(now); due.Before(next) {
			next = due
		}
		timer.Reset(max(time.Until(next), time.Millisecond))
	}
}

// clockStep returns by how much the clock was set between two readings, or how long the
// machine was suspended.
func clockStep(before, now time.Time) time.Duration {
	return now.Round(0).Sub(before.Round(0)) - now.Sub(before)
}

// planner decides when schedules start runs.
type planner struct {
	s    *server
	seed maphash.Seed
	// start starts the run for a time.
	start func(t *trigger, at time.Time)
	// since is when the server started or the clock was set forward. Earlier times were
	// missed.
	since time.Time
	// base is the time from which a schedule without a usable position counts.
	base map[string]time.Time
	// passed is the last time of a paused schedule that was recorded as skipped.
	passed map[string]time.Time
}

// jump records that the clock has skipped the times before now.
func (p *planner) jump(now time.Time, step time.Duration) {
	if step > onTime {
		p.since = now
	}
}

// run starts the due runs of a schedule, and returns the time of the next one.
func (p *planner) run(t *trigger, now time.Time) time.Time {
	last := p.last(t, now)
	if next := p.paused(t, now); !next.IsZero() {
		return next
	}
	due := t.next(last)
	switch {
	case t.Timer.Every > 0 && now.Sub(due) > t.Timer.Every: // skip intervals in one step
		due = t.passed(last, now)
		if t.Timer.CatchUp == "all" {
			due = later(t.next(last), due.Add(-maxCatchUp*t.Timer.Every))
		}
	case t.Timer.Every == 0 && now.Sub(due) > time.Hour:
		due = t.next(recent(t, last, now))
	}
	var missed []time.Time
	for !due.IsZero() && !due.Add(p.jitter(t, due)).After(now) {
		if missed = append(missed, due); len(missed) > maxCatchUp {
			missed = missed[1:]
		}
		due = t.next(due)
	}
	if len(missed) > 0 {
		p.fire(t, missed, now)
	}
	if due.IsZero() {
		return now.Add(maxSleep)
	}
	return due.Add(p.jitter(t, due))
}

// recent returns a time since which a cron expression has matched at least maxCatchUp
// times, or last if there are fewer. A clock that started in 1970 may skip millions.
func recent(t *trigger, last, now time.Time) time.Time {
	for span := time.Hour; ; span *= 4 {
		from := now.Add(-span)
		if !from.After(last) {
			return last
		}
		at := from
		for n := 0; !at.IsZero() && !at.After(now); n++ {
			if n > maxCatchUp {
				return from
			}
			at = t.next(at)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// last returns the time from which the schedule continues.
func (p *planner) last(t *trigger, now time.Time) time.Time {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	last, ok := p.s.led.state.fired[t.id]
	if ok && !last.After(now) {
		return last
	}
	if !ok { // on first use, times count from now, even while the server is off
		_, _ = p.s.led.add(false, &entry{Fired: &firing{t.id, now}}) // the server ends if it fails
		return now
	}
	base, ok := p.base[t.id] // the clock was set back
	if !ok || base.After(now) {
		base = now
		p.base[t.id] = now
	}
	return base
}

// fire starts the runs for missed times.
func (p *planner) fire(t *trigger, missed []time.Time, now time.Time) {
	latest := missed[len(missed)-1]
	due := latest.Add(p.jitter(t, latest))
	late := now.Sub(due) > onTime || due.Before(p.since)
	switch {
	case t.Timer.CatchUp == "all":
	case t.Timer.CatchUp == "skip" && late:
		p.s.skips.add(t.id, client.Skip{At: latest, Reason: "the time was missed, and catch_up is skip"})
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		_, _ = p.s.led.add(false, &entry{Fired: &firing{t.id, latest}})
		return
	default:
		missed = missed[len(missed)-1:]
	}
	for _, at := range missed {
		p.start(t, at)
	}
	delete(p.base, t.id)
}

// startScheduled starts the run for a time of a schedule, and records the position.
func (s *server) startScheduled(t *trigger, at time.Time) {
	event := t.event(map[string]any{"scheduled_at": at.Format(time.RFC3339)})
	_ = s.fire(t, event, request{once: true, also: []*entry{{Fired: &firing{t.id, at}}}}) // already logged
}

// jitter returns the delay of a time. It is random per server.
func (p *planner) jitter(t *trigger, due time.Time) time.Duration {
	if t.Timer.Jitter <= 0 {
		return 0
	}
	return time.Duration(maphash.String(p.seed, t.id+due.String()) % uint64(t.Timer.Jitter))
}
