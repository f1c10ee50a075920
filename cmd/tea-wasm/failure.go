//go:build js

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"syscall"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// failure is an error in the form for JavaScript.
type failure struct {
	Type       tea.ErrorType  `json:"type"`
	Message    string         `json:"message"`
	Retryable  bool           `json:"retryable"`
	RetryAfter float64        `json:"retry_after,omitempty"` // seconds
	Source     string         `json:"source,omitempty"`
	Details    map[string]any `json:"details,omitempty"`
	Node       string         `json:"node,omitempty"`
	Path       string         `json:"path,omitempty"`
	// Diagnostics are the mistakes in a workflow.
	Diagnostics host.Diagnostics `json:"diagnostics,omitempty"`
}

func toFailure(err error, mask host.Mask) *failure {
	typed := tea.AsError(err)
	f := &failure{Type: typed.Type, Message: mask.Text(err.Error()), Retryable: typed.Retryable, RetryAfter: typed.RetryAfter.Seconds(), Source: typed.Source}
	if details, ok := mask.Value(typed.Details).(map[string]any); ok {
		f.Details = details
	}
	var node *flow.NodeError
	if errors.As(err, &node) {
		f.Node, f.Path = node.Node, node.Path
	}
	var found *flow.InputError
	var budget *flow.BudgetError
	switch {
	case errors.As(err, &f.Diagnostics), errors.As(err, &found), errors.Is(err, host.ErrInputUnused), errors.Is(err, host.ErrWorkflowChanged), errors.Is(err, host.ErrNothingFailed):
		f.Type = tea.ValidationError
	case errors.As(err, &budget):
		f.Type = tea.BudgetExceeded
	case errors.Is(err, context.Canceled):
		f.Type = tea.Canceled
	case errors.Is(err, fs.ErrNotExist):
		f.Type = tea.NotFound
	case errors.Is(err, syscall.EROFS):
		f.Type = tea.PermissionDenied
	}
	return f
}

// masked is an error with the mask of a run's secrets.
type masked struct {
	error
	mask host.Mask
}

// Unwrap returns the error itself.
func (m *masked) Unwrap() error { return m.error }

// encodeError returns an answer with an error.
func encodeError(err error) []byte {
	m := new(masked)
	errors.As(err, &m)
	text, err := json.Marshal(map[string]any{"error": toFailure(err, m.mask)})
	if err != nil {
		return []byte(`{"error":{"type":"internal_error","message":"the error cannot be encoded"}}`)
	}
	return text
}
