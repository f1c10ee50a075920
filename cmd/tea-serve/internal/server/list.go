package server

import (
	"cmp"
	"container/heap"
	"fmt"
	"iter"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
)

// maxInput is the number of bytes of a queued run's input that are searched.
const maxInput = 300

// filterOf returns the filter of a query, without the trigger.
func filterOf(q url.Values) (f runview.Filter, err error) {
	f = runview.Filter{Workflow: q.Get("workflow"), Status: q.Get("status"), Search: q.Get("q")}
	if f.Status != "" && !slices.Contains(statuses, f.Status) {
		return f, badRequest(fmt.Errorf("status: expected %s, got %.40q", strings.Join(statuses, ", "), f.Status))
	}
	if f.Since, err = runview.ParseTime(q.Get("since")); err != nil {
		return f, badRequest(fmt.Errorf("since: %w", err))
	}
	if f.Until, err = runview.ParseTime(q.Get("until")); err != nil {
		return f, badRequest(fmt.Errorf("until: %w", err))
	}
	return f, nil
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
	trigger := q.Get("trigger")
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
		if after, err = parsePlace(text); err != nil {
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
	for p := range list {
		if after.id != "" && newestFirst(p, after) <= 0 || !filter.In(p.at) {
			continue
		}
		doc, changed := s.listed(p, known)
		if doc.ID == "" || trigger != "" && trigger != doc.Trigger || !filter.Has(doc.Workflow, doc.Status, doc.ID, doc.Workflow, doc.Trigger, doc.Error, doc.input) { // an empty id: it was removed meanwhile
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

// place is a run in the list, without what the server knows of it. It identifies a
// position even after the run is gone.
type place struct {
	at    time.Time
	id    string
	entry *checkpoints.Entry // nil for a run without a checkpoint
}

// places returns the runs of the directory, including queued ones, the newest first. The
// sequence is lazy: it examines older runs only when the caller asks for them.
func (s *server) places() (iter.Seq[place], error) {
	entries, err := s.entries()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	var pending newest
	for id, it := range s.led.state.items {
		pending = append(pending, place{at: it.At, id: id})
	}
	for id, d := range s.led.state.drops {
		pending = append(pending, place{at: d.At, id: id})
	}
	s.mu.Unlock()
	heap.Init(&pending)
	own := s.owner()
	listed := map[string]bool{} // runs of the ledger that were found
	return func(yield func(place) bool) {
		for {
			// A run is accepted before it starts, so entries that started before pending[0] come
			// after it.
			for len(entries) > 0 && (len(pending) == 0 || newestFirst(place{at: entries[0].StartedAt, id: entries[0].ID}, pending[0]) <= 0) {
				if p, known := s.placeOf(entries[0]); own(p.entry.WorkflowFile) && !listed[p.id] {
					if known {
						listed[p.id] = true
					}
					heap.Push(&pending, p)
				}
				entries = entries[1:]
			}
			if len(pending) == 0 {
				return
			}
			p, _ := heap.Pop(&pending).(place)
			if p.entry == nil && listed[p.id] {
				continue
			}
			if p.entry == nil {
				listed[p.id] = true
			}
			if !yield(p) {
				return
			}
		}
	}, nil
}

// newest is a heap of places, the newest first.
type newest []place

func (h newest) Len() int           { return len(h) }
func (h newest) Less(i, j int) bool { return newestFirst(h[i], h[j]) < 0 }
func (h newest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements [heap.Interface].
func (h *newest) Push(p any) { *h = append(*h, p.(place)) } //nolint:forcetypeassert // only places

// Pop implements [heap.Interface].
func (h *newest) Pop() any {
	last := len(*h) - 1
	p := (*h)[last]
	*h = (*h)[:last]
	return p
}

// owner returns a function that reports whether a workflow file belongs to the directory.
func (s *server) owner() func(file string) bool {
	owned := map[string]bool{}
	last, own := "", false // consecutive runs mostly have the same file
	return func(file string) bool {
		if file == last && last != "" {
			return own
		}
		last = file
		var known bool
		if own, known = owned[last]; !known {
			own = s.catalog.Owns(last)
			owned[last] = own
		}
		return own
	}
}

// placeOf returns the place of a run with a checkpoint. known reports whether the ledger
// also lists it among the runs that have not ended or were dropped. If a clock that was set
// back makes the start earlier than the acceptance, the place has the start.
func (s *server) placeOf(e *checkpoints.Entry) (p place, known bool) {
	p = place{e.StartedAt, e.ID, e}
	s.mu.Lock()
	defer s.mu.Unlock()
	it, o := s.led.state.items[e.ID], s.led.state.over[e.ID]
	if it != nil && it.At.Before(p.at) {
		p.at = it.At
	} else if it == nil && o != nil && o.At.Before(p.at) {
		p.at = o.At
	}
	return p, it != nil || s.led.state.drops[e.ID] != nil
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
		doc = runDoc{ID: p.id, Workflow: it.Workflow, input: string(it.Input[:min(len(it.Input), maxInput)])}
	case d != nil:
		return d.doc(), s.led.touched.since(p.id, known)
	}
	s.complete(&doc)
	return doc, doc.Status == string(flow.Running) || doc.Status == statusQueued || s.led.touched.since(p.id, known)
}

// newestFirst compares runs by the time of acceptance.
func newestFirst(a, b place) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(b.id, a.id)) }

func (p place) String() string { return fmt.Sprintf("%d.%s", p.at.UnixNano(), p.id) }

// parsePlace is the inverse of [place.String].
func parsePlace(text string) (place, error) {
	at, id, ok := strings.Cut(text, ".")
	nano, err := strconv.ParseInt(at, 10, 64)
	if err != nil || !ok || id == "" {
		return place{}, badRequest(fmt.Errorf("after: expected the next of a page, got %.40q", text))
	}
	return place{at: time.Unix(0, nano), id: id}, nil
}
