package server

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"strconv"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// problem is an error in the format of RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// statusError is an error with the status of the response.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

func badRequest(err error) error { return &statusError{http.StatusBadRequest, err} }

// refuse answers a request with an error.
func refuse(w http.ResponseWriter, detail string, status int) {
	text, err := json.Marshal(problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail})
	if err != nil {
		http.Error(w, detail, status)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client is gone
}

// fail answers a request with the status of an error.
func (s *server) fail(w http.ResponseWriter, err error) {
	refuse(w, s.svc.Hide(err.Error()), s.prepare(w, err))
}

// prepare returns the response status for an error. It also sets headers and logs.
func (s *server) prepare(w http.ResponseWriter, err error) int {
	status := statusOf(err)
	switch status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusInsufficientStorage:
		w.Header().Set("Retry-After", "5")
	case http.StatusInternalServerError:
		s.svc.Log.Error("a request failed", "error", s.svc.Hide(err.Error()))
	}
	return status
}

// statusOf returns the response status for an error.
func statusOf(err error) int {
	known := (*statusError)(nil)
	failure := (*tea.Error)(nil)
	switch {
	case errors.As(err, &known):
		return known.status
	case full(err):
		return http.StatusInsufficientStorage
	case errors.Is(err, errStopping), errors.As(err, new(*unwritable)), errors.Is(err, errLedgerClosed):
		return http.StatusServiceUnavailable
	case errors.Is(err, errNoWorkflow), errors.Is(err, errNoRun), errors.Is(err, fs.ErrNotExist), errors.Is(err, checkpoints.ErrNoStep):
		return http.StatusNotFound
	case errors.Is(err, errQueueFull), errors.Is(err, errBudgetSpent):
		return http.StatusTooManyRequests
	case errors.Is(err, errInstalling), errors.Is(err, errSkipped), errors.Is(err, errBusy), errors.Is(err, errEnded), errors.Is(err, errAwaitsAnswer), errors.Is(err, errAnswered), errors.Is(err, errDropped), errors.Is(err, host.ErrWorkflowChanged):
		return http.StatusConflict
	case errors.Is(err, errKeyReused), errors.As(err, new(*flow.InputError)), errors.As(err, new(host.Diagnostics)):
		return http.StatusUnprocessableEntity
	case errors.As(err, &failure) && failure.Type == tea.ValidationError:
		return http.StatusUnprocessableEntity
	}
	return http.StatusInternalServerError
}
