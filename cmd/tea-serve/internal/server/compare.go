package server

import (
	"errors"
	"net/http"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
)

// getComparison compares a run with another one.
func (s *server) getComparison(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if err := knownQuery(query, "with"); err != nil {
		return err
	}
	a, err := s.side(r, r.PathValue("id"))
	if err != nil {
		return err
	}
	b, err := s.side(r, query.Get("with"))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, runview.Compare(a, b))
}

// side describes a run for a comparison.
func (s *server) side(r *http.Request, id string) (*runview.Side, error) {
	runs, contents, err := s.contents(id)
	if err != nil {
		return nil, err
	}
	if len(contents.Records) == 0 {
		return nil, &statusError{http.StatusNotFound, errors.New("the run has no records yet")}
	}
	entry, err := runs.Entry(id)
	if err != nil {
		return nil, err
	}
	wf, release, err := s.versionOf(contents)
	if err != nil {
		return nil, err
	}
	defer release()
	mask, err := s.svc.Mask(wf)
	if err != nil {
		return nil, err
	}
	return runview.NewSide(entry, contents, func(fn func(line []byte) error) error {
		_, err := s.storedValues(id, fn)
		return err
	}, func(seq uint64) (map[string]any, error) {
		state, err := wf.StateAt(r.Context(), contents, seq)
		masked, _ := mask.Value(state).(map[string]any)
		return masked, err
	})
}
