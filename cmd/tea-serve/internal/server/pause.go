package server

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/the-edge-agent/tea/client"
	"github.com/the-edge-agent/tea/host"
)

// pausing is when a schedule was paused; a zero At resumes it.
type pausing struct {
	Trigger string    `json:"trigger"`
	At      time.Time `json:"at"`
}

// maxSkips is how many starts that were skipped are kept per trigger.
const maxSkips = 20

// skips are the latest skipped starts since the server started, by trigger, the
// newest first.
type skips struct {
	mu   sync.Mutex
	list map[string][]client.Skip
}

func (l *skips) add(trigger string, one client.Skip) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.list == nil {
		l.list = map[string][]client.Skip{}
	}
	list := append([]client.Skip{one}, l.list[trigger]...)
	l.list[trigger] = list[:min(len(list), maxSkips)]
}

func (l *skips) of(trigger string) []client.Skip {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list[trigger])
}

// pausedAt returns when a schedule was paused, nil if it was not. The caller holds the
// mutex.
func (s *server) pausedAt(t *trigger) *time.Time {
	if at, ok := s.led.state.paused[t.id]; ok {
		return &at
	}
	return nil
}

// scheduleOf returns the schedule that the path of a request names.
func (s *server) scheduleOf(r *http.Request) (*trigger, error) {
	if err := knownQuery(r.URL.Query()); err != nil {
		return nil, err
	}
	for _, t := range s.catalog.triggers(host.TriggerCron, host.TriggerEvery) {
		if t.workflow == r.PathValue("name") && t.Name == r.PathValue("trigger") {
			return t, nil
		}
	}
	return nil, &statusError{http.StatusNotFound, fmt.Errorf("the workflow %.100q has no schedule %.100q", r.PathValue("name"), r.PathValue("trigger"))}
}

// setPaused returns the handler that pauses or resumes a schedule. The times that passed
// meanwhile are only made up for if the trigger says so by catch_up.
func (s *server) setPaused(pause bool) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		t, err := s.scheduleOf(r)
		if err != nil {
			return err
		}
		now := time.Now()
		s.mu.Lock()
		b, err := s.led.add(true, s.pausing(t, pause, now)...)
		s.mu.Unlock()
		if err == nil {
			err = b.wait()
		}
		if err != nil {
			return err
		}
		s.changed(t.workflow)
		return reply(w, http.StatusOK, s.upcoming(t, now))
	}
}

// pausing returns the entries that pause or resume a schedule. The caller holds the mutex.
func (s *server) pausing(t *trigger, pause bool, now time.Time) []*entry {
	paused := s.pausedAt(t) != nil
	if paused == pause {
		return nil
	}
	if pause {
		return []*entry{{Paused: &pausing{t.id, now}}}
	}
	list := []*entry{{Paused: &pausing{Trigger: t.id}}}
	if last, ok := s.led.state.fired[t.id]; ok && (t.Timer.CatchUp == "" || t.Timer.CatchUp == "skip") {
		list = append(list, &entry{Fired: &firing{t.id, t.passed(last, now)}})
	}
	return list
}

// passed returns the latest time of a schedule up to now, or now itself for a cron
// expression. last is the time of an earlier run.
func (t *trigger) passed(last, now time.Time) time.Time {
	if t.Timer.Every > 0 && !last.After(now) {
		return last.Add(now.Sub(last).Truncate(t.Timer.Every))
	}
	return now
}

// paused records the times of a paused schedule that pass, and returns the next one. It
// returns the zero time if the schedule is not paused.
func (p *planner) paused(t *trigger, now time.Time) time.Time {
	p.s.mu.Lock()
	at, last := p.s.pausedAt(t), p.s.led.state.fired[t.id]
	p.s.mu.Unlock()
	if at == nil {
		delete(p.passed, t.id)
		return time.Time{}
	}
	from, ok := p.passed[t.id]
	if !ok {
		from = t.passed(last, later(*at, p.since))
	}
	due := t.next(from)
	for ; !due.IsZero() && !due.After(now); due = t.next(from) {
		from = due
		p.s.skips.add(t.id, client.Skip{At: due, Reason: "the trigger is paused"})
	}
	p.passed[t.id] = from
	if due.IsZero() {
		return now.Add(maxSleep)
	}
	return due
}
