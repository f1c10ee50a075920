package server

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
)

// runFilter selects runs of a list.
type runFilter struct {
	workflow, status, trigger string
	// words must be in lower case.
	words        []string
	since, until time.Time
}

// filterOf returns the filter of a query.
func filterOf(q url.Values) (f runFilter, err error) {
	f = runFilter{workflow: q.Get("workflow"), status: q.Get("status"), trigger: q.Get("trigger"), words: strings.Fields(strings.ToLower(q.Get("q")))}
	if f.status != "" && !slices.Contains(statuses, f.status) {
		return f, badRequest(fmt.Errorf("status: expected %s, got %.40q", strings.Join(statuses, ", "), f.status))
	}
	if f.since, err = timeIn(q, "since"); err == nil {
		f.until, err = timeIn(q, "until")
	}
	return f, err
}

// has reports whether a run is selected, by everything except the time.
func (f *runFilter) has(d runDoc) bool {
	if f.workflow != "" && f.workflow != d.Workflow || f.status != "" && f.status != d.Status || f.trigger != "" && f.trigger != d.Trigger {
		return false
	}
	if len(f.words) == 0 {
		return true
	}
	text := strings.ToLower(d.ID + " " + d.Workflow + " " + d.Trigger + " " + d.Error)
	return !slices.ContainsFunc(f.words, func(word string) bool { return !strings.Contains(text, word) })
}

// getRuns lists runs, the newest first.
func (s *server) getRuns(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	if err := knownQuery(q, "workflow", "status", "trigger", "q", "since", "until", "limit", "after", "known"); err != nil {
		return err
	}
	filter, err := filterOf(q)
	if err != nil {
		return err
	}
	limit, err := numberIn(q, "limit", defaultPage, maxPage)
	if err != nil {
		return err
	}
	known, err := numberIn(q, "known", 0, math.MaxInt64)
	if err != nil {
		return err
	}
	var after place
	if text := q.Get("after"); text != "" {
		if after, err = placeOf(text); err != nil {
			return err
		}
	}
	s.mu.Lock()
	version := s.led.version
	s.mu.Unlock()
	list, err := s.places()
	if err != nil {
		return err
	}
	page := []runDoc{}
	more := false
	for _, p := range list {
		if after.id != "" && newestFirst(p, after) <= 0 || p.at.Before(filter.since) || !filter.until.IsZero() && !p.at.Before(filter.until) {
			continue
		}
		doc, changed := s.listed(p, known)
		if doc.ID == "" || !filter.has(doc) { // it was removed meanwhile
			continue
		}
		if more = int64(len(page)) == limit; more {
			break
		}
		if !changed {
			doc = runDoc{ID: doc.ID, Workflow: doc.Workflow, Status: doc.Status, Unchanged: true}
		} else if doc.Status == string(flow.Waiting) {
			doc.Question = s.questionOf(doc.ID)
		}
		after, page = p, append(page, doc)
	}
	answer := map[string]any{"runs": page, "version": version}
	if more {
		answer["next"] = after.String()
	}
	return reply(w, http.StatusOK, answer)
}

// numberIn returns a parameter that is a number from 1 to most; or if it is absent.
func numberIn(query url.Values, name string, or, most int64) (int64, error) {
	text := query.Get(name)
	if text == "" {
		return or, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, badRequest(fmt.Errorf("%s: expected a number from 1 to %d, got %.40q", name, most, text))
	}
	return n, nil
}

// questionOf returns the first question of a waiting run.
func (s *server) questionOf(id string) string {
	_, contents, err := s.contents(id)
	if err != nil {
		return ""
	}
	pending, err := checkpoints.Pending(contents)
	if err != nil || len(pending) == 0 {
		return ""
	}
	return pending[0].Question // already masked
}

// timeIn returns a parameter that is a time or a day; zero if it is absent.
func timeIn(query url.Values, name string) (time.Time, error) {
	text := query.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		at, err = time.ParseInLocation(time.DateOnly, text, time.Local)
	}
	if err != nil {
		return at, badRequest(fmt.Errorf("%s: expected a day such as 2026-11-28, or a time such as 2026-11-28T06:00:00Z, got %.40q", name, text))
	}
	return at, nil
}

// place is a run in the list, without what the server knows of it. It identifies a
// position even after the run is gone.
type place struct {
	at    time.Time
	id    string
	entry *checkpoints.Entry // nil for a run without a checkpoint
}

// places returns the runs of the directory, including queued ones, the newest first.
func (s *server) places() ([]place, error) {
	entries, err := s.entries()
	if err != nil {
		return nil, err
	}
	owned := map[string]bool{}
	last, own := "", false // most neighbours have the same file
	entries = slices.DeleteFunc(entries, func(e *checkpoints.Entry) bool {
		if e.WorkflowFile != last || last == "" {
			last = e.WorkflowFile
			var known bool
			if own, known = owned[last]; !known {
				own = s.catalog.Owns(last)
				owned[last] = own
			}
		}
		return !own
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]place, 0, len(entries)+len(s.led.state.items))
	listed := make(map[string]bool, len(s.led.state.items)+len(s.led.state.drops))
	for _, e := range entries {
		p := place{e.StartedAt, e.ID, e}
		if it := s.led.state.items[e.ID]; it != nil {
			p.at, listed[e.ID] = it.At, true
		} else if o := s.led.state.over[e.ID]; o != nil {
			p.at = o.At
		}
		if s.led.state.drops[e.ID] != nil {
			listed[e.ID] = true
		}
		list = append(list, p)
	}
	for id, it := range s.led.state.items {
		if !listed[id] {
			listed[id] = true
			list = append(list, place{at: it.At, id: id})
		}
	}
	for id, d := range s.led.state.drops {
		if !listed[id] {
			list = append(list, place{at: d.At, id: id})
		}
	}
	slices.SortFunc(list, newestFirst)
	return list, nil
}

// listed describes a run in a list, and reports whether it may have changed after the
// version known.
func (s *server) listed(p place, known int64) (doc runDoc, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch it, d := s.led.state.items[p.id], s.led.state.drops[p.id]; {
	case p.entry != nil:
		doc = docOf(*p.entry)
	case it != nil:
		doc = runDoc{ID: p.id, Workflow: it.Workflow}
	case d != nil:
		return d.doc(), s.led.touched.since(p.id, known)
	}
	s.complete(&doc)
	return doc, doc.Status == string(flow.Running) || doc.Status == statusQueued || s.led.touched.since(p.id, known)
}

// newestFirst compares runs by the time of acceptance.
func newestFirst(a, b place) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(b.id, a.id)) }

func (p place) String() string { return fmt.Sprintf("%d.%s", p.at.UnixNano(), p.id) }

// placeOf returns a place from its text.
func placeOf(text string) (place, error) {
	at, id, ok := strings.Cut(text, ".")
	nano, err := strconv.ParseInt(at, 10, 64)
	if err != nil || !ok || id == "" {
		return place{}, badRequest(fmt.Errorf("after: expected the next of a page, got %.40q", text))
	}
	return place{at: time.Unix(0, nano), id: id}, nil
}
