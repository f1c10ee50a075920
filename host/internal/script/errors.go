package script

import (
	"context"
	"errors"
	"fmt"
)

// SyntaxError says that a text is no Lua, and where.
type SyntaxError struct {
	File    string
	Line    int
	Column  int // from 1; 0 where unknown
	Message string
}

// Error is file:line:column: message.
func (e *SyntaxError) Error() string {
	if e.Column > 0 {
		return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// Kind says what ended a run.
type Kind string

const (
	// ScriptError is a mistake of the script, or its call of error().
	ScriptError Kind = "script"
	// ActionError is the failure of an action that the script called and did
	// not catch. The *tea.Error is inside: use errors.As.
	ActionError Kind = "action"
	// DeadlineError means that the time was up. It is a
	// context.DeadlineExceeded for errors.Is.
	DeadlineError Kind = "deadline"
	// CanceledError means that the context was canceled. It is a
	// context.Canceled for errors.Is.
	CanceledError Kind = "canceled"
	// MemoryError means that the heap grew beyond [Options.MemoryBytes].
	MemoryError Kind = "memory"
)

// RunError is the failure of a run.
type RunError struct {
	Kind Kind
	// File and Line are where it happened, in the workflow's or the module's
	// own numbers; Line is 0 where unknown.
	File    string
	Line    int
	Message string
	// Traceback lists the calls that led there, innermost first; it may be empty.
	Traceback string

	cause error
}

// Error is file:line: message.
func (e *RunError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.File, e.Message)
}

// Unwrap gives the action's error, or the context's where the run was stopped.
func (e *RunError) Unwrap() error { return e.cause }

// stoppedError is the error of a run whose context ended with err.
func stoppedError(name string, err error) *RunError {
	if errors.Is(err, context.DeadlineExceeded) {
		return &RunError{Kind: DeadlineError, File: name, Message: "the script ran longer than it may", cause: context.DeadlineExceeded}
	}
	return &RunError{Kind: CanceledError, File: name, Message: "the script was canceled", cause: context.Canceled}
}
