package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/sdk/value"
)

// changesDoc is the change of a run's state by a record, for clients.
type changesDoc struct {
	Step uint64    `json:"step"`
	Kind string    `json:"kind"`
	Path string    `json:"path,omitempty"`
	Time time.Time `json:"time"`
	// Before is absent for the first record.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after"`
}

// getChanges answers with the state of a run before and after a record: the last
// one, or the one that the parameter at names by number or by the path of a node.
func (s *server) getChanges(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if err := knownQuery(query, "at"); err != nil {
		return err
	}
	runs, contents, err := s.contents(r.PathValue("id"))
	if err != nil {
		return err
	}
	step := uint64(len(contents.Records))
	if at := query.Get("at"); at != "" {
		if step, err = runs.Step(contents.Header.RunID, at); err != nil {
			return err
		}
	}
	if step < 1 || step > uint64(len(contents.Records)) { // the run may have continued since
		return &statusError{http.StatusNotFound, errors.New("the run has no records yet")}
	}
	wf, release, err := s.versionOf(contents)
	if err != nil {
		return err
	}
	defer release()
	mask, err := s.svc.Mask(wf)
	if err != nil {
		return err
	}
	rec := contents.Records[step-1]
	doc := changesDoc{Step: step, Kind: rec.Kind, Path: mask.Text(rec.Path), Time: rec.Time.UTC()}
	at := func(step uint64) (json.RawMessage, error) { return stateAfter(r, wf, contents, mask, step) }
	if doc.After, err = at(step); err != nil {
		return err
	}
	if step > 1 {
		if doc.Before, err = at(step - 1); err != nil {
			return err
		}
	}
	return reply(w, http.StatusOK, doc)
}

// getNode returns the last execution of a node. The parameter at is the name of the node
// or the path of the execution.
func (s *server) getNode(w http.ResponseWriter, r *http.Request) error {
	query, id := r.URL.Query(), r.PathValue("id")
	if err := knownQuery(query, "at"); err != nil {
		return err
	}
	if _, _, err := s.entry(id); err != nil {
		return err
	}
	n, err := runview.FindNode(query.Get("at"), func(fn func(line []byte) error) error {
		last, err := s.storedValues(id, fn)
		if err != nil {
			return err
		}
		s.mu.Lock()
		lv := s.live[id]
		s.mu.Unlock()
		if lv == nil {
			return nil
		}
		events, _, _ := lv.hub.after(last)
		return eachOf(events, fn)
	})
	if err == nil && n == nil {
		err = &statusError{http.StatusNotFound, fmt.Errorf("the run has no events for node %.100q", query.Get("at"))}
	}
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, n)
}

// storedValues calls fn with the events on disk, values included, and returns the number of
// the last one.
func (s *server) storedValues(id string, fn func(line []byte) error) (last int64, err error) {
	runs, err := s.openRuns()
	if err != nil {
		return 0, err
	}
	events, err := runs.OpenEvents(id, 0)
	if err != nil {
		return 0, err
	}
	events.Values = true
	err = events.Next(func(seq int64, line []byte) error {
		last = max(last, seq)
		return fn(line)
	})
	return last, err
}

// stateAfter returns the state of a run after a record, with masked secrets.
func stateAfter(r *http.Request, wf *host.Workflow, contents *checkpoints.Contents, mask host.Mask, step uint64) (json.RawMessage, error) {
	state, err := wf.StateAt(r.Context(), contents, step)
	if err != nil {
		return nil, err
	}
	return value.Encode(mask.Value(state))
}
