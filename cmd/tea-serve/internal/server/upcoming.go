package server

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/client"
	"github.com/the-edge-agent/tea/host"
)

const (
	// scheduleSpan is how far the schedule is listed, and maxTimes how many times of a
	// trigger.
	scheduleSpan = 7 * 24 * time.Hour
	maxTimes     = 500
)

// getSchedule lists the times of the next week at which triggers start runs.
func (s *server) getSchedule(w http.ResponseWriter, r *http.Request) error {
	if err := knownQuery(r.URL.Query()); err != nil {
		return err
	}
	now := time.Now()
	list := []client.ScheduledTrigger{}
	for _, t := range s.catalog.triggers(host.TriggerCron, host.TriggerEvery) {
		list = append(list, s.upcoming(t, now))
	}
	slices.SortFunc(list, func(a, b client.ScheduledTrigger) int {
		return cmp.Or(cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Trigger, b.Trigger))
	})
	return reply(w, http.StatusOK, map[string]any{"triggers": list})
}

// upcoming returns the next times of a schedule.
func (s *server) upcoming(t *trigger, now time.Time) client.ScheduledTrigger {
	doc := client.ScheduledTrigger{Workflow: t.workflow, Trigger: t.Name, Times: []time.Time{}, Skipped: s.skips.of(t.id)}
	from := now
	s.mu.Lock()
	if last, ok := s.led.state.fired[t.id]; ok {
		doc.Last, from = &last, t.passed(last, now)
	}
	doc.Paused = s.pausedAt(t)
	s.mu.Unlock()
	if doc.Paused != nil {
		return doc
	}
	for at := t.next(from); !at.IsZero() && at.Before(now.Add(scheduleSpan)); at = t.next(at) {
		if doc.More = len(doc.Times) == maxTimes; doc.More {
			break
		}
		doc.Times = append(doc.Times, at.UTC())
	}
	return doc
}

// postTrigger starts the run of a schedule now. Its next time stays as it is.
func (s *server) postTrigger(w http.ResponseWriter, r *http.Request) error {
	t, err := s.scheduleOf(r)
	if err != nil {
		return err
	}
	req, err := t.request(r.Context(), s, t.event(map[string]any{"scheduled_at": time.Now().Format(time.RFC3339)}))
	if err != nil {
		return err
	}
	a, err := s.accept(req)
	if err != nil {
		return err
	}
	return s.answer(w, r, a, 0)
}
