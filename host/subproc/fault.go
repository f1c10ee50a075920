package subproc

import (
	"errors"
	"fmt"

	tea "github.com/the-edge-agent/tea/sdk"
)

// fault is the cause of an error that is the plugin's fault, as opposed to an error
// that an action returns. The command line has an exit code for it.
type fault struct{ error }

// PluginFault marks the error as the plugin's fault.
func (fault) PluginFault() {}

// Unwrap returns the error.
func (f fault) Unwrap() error { return f.error }

// faultError returns an error that is a plugin's fault.
func faultError(name string, t tea.ErrorType, format string, args ...any) *tea.Error {
	e := tea.Errorf(t, "%w", fault{fmt.Errorf(format, args...)})
	e.Source = name
	return e
}

// actionFault marks errors of actions that are the plugin's fault but arrive like any
// others: a panic, and a result that is too large or has no JSON form.
func actionFault(err error) error {
	var e *tea.Error
	if !errors.As(err, &e) || e.Details["panic"] == nil && e.Details["invalid_result"] == nil {
		return err
	}
	marked := tea.Errorf(e.Type, "%w", fault{errors.New(e.Message)})
	marked.Retryable, marked.RetryAfter, marked.Source, marked.Details = e.Retryable, e.RetryAfter, e.Source, e.Details
	return marked
}

// startError returns the error of a plugin that did not start.
func startError(name string, t tea.ErrorType, format string, args ...any) *tea.Error {
	format, args = "plugin %s did not start: "+format, append([]any{name}, args...)
	if t != tea.Canceled {
		return faultError(name, t, format, args...)
	}
	e := tea.Errorf(t, format, args...)
	e.Source = name
	return e
}
