package server

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
)

// maxInbox limits the waiting runs whose questions are listed.
const maxInbox = 200

// runQuestion is a pending question of a run, as clients see it.
type runQuestion struct {
	Run      string `json:"run_id"`
	Workflow string `json:"workflow"`
	Pending  any    `json:"pending"`
	deadline time.Time
}

// getQuestions lists the questions of all waiting runs, the earliest deadline first.
func (s *server) getQuestions(w http.ResponseWriter, r *http.Request) error {
	if err := knownQuery(r.URL.Query()); err != nil {
		return err
	}
	ids := s.waitingRuns()
	list := []runQuestion{}
	for _, id := range ids[:min(len(ids), maxInbox)] {
		_, contents, err := s.contents(id)
		if err != nil {
			continue // it was removed or is damaged
		}
		pending, err := checkpoints.Pending(contents)
		if err != nil {
			continue
		}
		for _, i := range pending {
			list = append(list, runQuestion{id, contents.Header.Workflow, runview.Describe(host.Mask{}, i), i.Deadline}) // already masked
		}
	}
	slices.SortStableFunc(list, func(a, b runQuestion) int {
		if a.deadline.IsZero() != b.deadline.IsZero() {
			if a.deadline.IsZero() {
				return 1
			}
			return -1
		}
		return cmp.Or(a.deadline.Compare(b.deadline), cmp.Compare(a.Run, b.Run))
	})
	return reply(w, http.StatusOK, map[string]any{"questions": list, "total": len(ids)})
}

// waitingRuns returns the ids of the runs that wait, sorted.
func (s *server) waitingRuns() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, it := range s.led.state.items {
		if it.Waiting && s.live[id] == nil {
			ids = append(ids, id)
		}
	}
	for _, ln := range s.lines {
		for id := range ln.waiting {
			if s.led.state.items[id] == nil && s.live[id] == nil {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// changeWait is how long awaitChange waits.
const changeWait = 25 * time.Second

// awaitChange answers when a run has changed, or after changeWait.
func (s *server) awaitChange(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if err := knownQuery(query, "after"); err != nil {
		return err
	}
	after, err := strconv.ParseInt(cmp.Or(query.Get("after"), "0"), 10, 64)
	if err != nil {
		return badRequest(fmt.Errorf("after: expected the version from an earlier response, got %.40q", query.Get("after")))
	}
	s.mu.Lock()
	if s.led.changed == nil {
		s.led.changed = make(chan struct{})
	}
	version, changed := s.led.version, s.led.changed
	s.mu.Unlock()
	if version == after {
		timer := time.NewTimer(changeWait)
		defer timer.Stop()
		select {
		case <-changed:
			version++ // at least
		case <-timer.C:
		case <-r.Context().Done():
		case <-s.ctx.Done():
		}
	}
	return reply(w, http.StatusOK, map[string]any{"version": version, "waiting": len(s.waitingRuns()), "role": roleNames[s.access.servedRole(r)]})
}
