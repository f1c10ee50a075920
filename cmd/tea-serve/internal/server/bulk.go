package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/the-edge-agent/tea/host/flow"
)

// bulkDoc is the outcome for one of several runs.
type bulkDoc struct {
	ID     string `json:"id"`
	Status string `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
}

// bulk returns the handler of a request that changes several runs. A failure of one does
// not prevent the change of others.
func (s *server) bulk(do func(ctx context.Context, id string) (status string, err error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		body, _, err := readObject(r, "ids")
		if err != nil {
			return err
		}
		ids, _ := body["ids"].([]any)
		if len(ids) < 1 || len(ids) > maxPage {
			return badRequest(fmt.Errorf("ids: expected a list of 1 to %d ids", maxPage))
		}
		list := []bulkDoc{}
		for _, v := range ids {
			id, ok := v.(string)
			if !ok {
				return badRequest(errors.New("ids: expected strings"))
			}
			list = append(list, bulkDoc{ID: id})
		}
		for i := range list {
			doc := &list[i]
			if doc.Status, err = do(r.Context(), doc.ID); err != nil {
				doc.Error = s.svc.Hide(err.Error())
			}
		}
		return reply(w, http.StatusOK, map[string]any{"runs": list})
	}
}

// retryOne retries a run.
func (s *server) retryOne(_ context.Context, id string) (string, error) {
	if _, err := s.retry(id); err != nil {
		return "", err
	}
	return s.statusOf(id), nil
}

// errUndeletable reports a run that is not deleted because it can continue by itself.
var errUndeletable = &statusError{http.StatusConflict, errors.New("the run is running, queued, parked or waiting; cancel it before deleting it")}

// deleteOne removes a run that has ended, its events and what the server knows of it.
func (s *server) deleteOne(_ context.Context, id string) (string, error) {
	runs, found, err := s.entry(id)
	s.mu.Lock()
	it, dropped := s.led.state.items[id], s.led.state.drops[id]
	if it != nil || err == nil && (found.Status == flow.Waiting || found.Status == flow.Running) {
		s.mu.Unlock()
		return "", errUndeletable
	}
	if err != nil && (dropped == nil || !errors.Is(err, errNoRun)) {
		s.mu.Unlock()
		return "", err
	}
	b, addErr := s.led.add(true, &entry{Gone: id})
	if err == nil {
		s.line(found.Workflow).removeEnded(id)
		if err = runs.Remove(id); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	s.mu.Unlock()
	s.index.update(id)
	if err = errors.Join(addErr, err); err == nil {
		err = b.wait()
	}
	return "deleted", err
}
