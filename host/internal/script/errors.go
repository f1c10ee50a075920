package script

import (
	"context"
	"errors"
	"fmt"

	tea "github.com/the-edge-agent/tea/sdk"
)

// SyntaxError is a syntax error in Lua code, with its position.
type SyntaxError struct {
	File    string
	Line    int
	Column  int // from 1; 0 if unknown
	Message string
	Hint    string // what to write instead; can be empty
}

// Error returns file:line:column: message (hint).
func (e *SyntaxError) Error() string {
	message := e.Message
	if e.Hint != "" {
		message += " (" + e.Hint + ")"
	}
	if e.Column > 0 {
		return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, message)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, message)
}

// Kind is the cause of a failed run.
type Kind string

const (
	// ScriptError is an error in the script, or a call of error().
	ScriptError Kind = "script"
	// ActionError is the failure of an action that the script did not catch. It
	// wraps the *tea.Error.
	ActionError Kind = "action"
	// DeadlineError means that the deadline passed. It wraps
	// context.DeadlineExceeded.
	DeadlineError Kind = "deadline"
	// CanceledError means that the context was canceled. It wraps
	// context.Canceled.
	CanceledError Kind = "canceled"
	// MemoryError means that the heap grew beyond [Options.MemoryBytes].
	MemoryError Kind = "memory"
	// SizeError means that a string or a list would exceed its limit.
	SizeError Kind = "size"
)

// RunError is the failure of a run.
type RunError struct {
	Kind Kind
	// File and Line are the position in the workflow or the module; Line is 0 if
	// unknown.
	File    string
	Line    int
	Message string
	// Traceback has the calls, innermost first; it can be empty.
	Traceback string

	cause error
}

// CodePosition returns the position. Errors that another engine has stored and
// restored have it, too.
func (e *RunError) CodePosition() (file string, line int) { return e.File, e.Line }

// Error returns file:line: message.
func (e *RunError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.File, e.Message)
}

// Unwrap returns the error of the action or of the context, if any.
func (e *RunError) Unwrap() error { return e.cause }

// Type returns the error type of the run for workflows, such as retry_on.
func (e *RunError) Type() tea.ErrorType {
	switch {
	case e.Kind == MemoryError, e.Kind == SizeError:
		return tea.ResourceExhausted
	case e.cause != nil:
		return tea.AsError(e.cause).Type
	}
	return tea.InternalError
}

// stoppedError returns the error of a run whose context ended with err.
func stoppedError(name string, err error) *RunError {
	if errors.Is(err, context.DeadlineExceeded) {
		return &RunError{Kind: DeadlineError, File: name, Message: "the script exceeded its time limit", cause: context.DeadlineExceeded}
	}
	return &RunError{Kind: CanceledError, File: name, Message: "the script was canceled", cause: context.Canceled}
}
