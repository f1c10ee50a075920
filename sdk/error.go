package tea

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"syscall"
	"time"
)

// ErrorType is the kind of failure of an [Error]; workflows match on it
// (retry_on, error_type).
type ErrorType string

// The types of failure. Other types are allowed and treated like
// internal_error.
const (
	ValidationError   ErrorType = "validation_error"
	NotFound          ErrorType = "not_found"
	PermissionDenied  ErrorType = "permission_denied"
	DependencyMissing ErrorType = "dependency_missing"
	Timeout           ErrorType = "timeout"
	CircuitOpen       ErrorType = "circuit_open"
	ConnectionError   ErrorType = "connection_error"
	QueryError        ErrorType = "query_error"
	RateLimited       ErrorType = "rate_limited"
	// ResourceExhausted means that the disk is full, or that a limit of memory
	// or size was reached.
	ResourceExhausted ErrorType = "resource_exhausted"
	PluginCrashed     ErrorType = "plugin_crashed"
	Canceled          ErrorType = "canceled"
	BudgetExceeded    ErrorType = "budget_exceeded"
	InternalError     ErrorType = "internal_error"
	// UnknownOutcome means that a call whose effect must happen at most once may have had
	// it, for example because its process died. Only the host returns it.
	UnknownOutcome ErrorType = "unknown_outcome"
)

// Error is the failure of an action. An Error must not be changed after it was
// returned.
type Error struct {
	Type    ErrorType
	Message string
	// Retryable means that the same call may succeed later. Other calls are
	// retried only if the workflow names the type in retry_on.
	Retryable bool
	// RetryAfter is the minimum wait before the next attempt; 0 if unknown.
	RetryAfter time.Duration
	// Source is the origin of the error, such as the name of a plugin or the
	// host of a URL.
	Source string
	// Details are additional fields for the workflow, such as an HTTP status.
	Details map[string]any

	cause error
}

// notSent is the member of Details that NotSent sets.
const notSent = "not_sent"

// NotSent returns a copy of an error of a call that certainly had no effect, because the
// request never left this machine. The host can then repeat a call of an action that is
// marked with [Once].
func (e *Error) NotSent() *Error {
	marked := *e
	marked.Details = maps.Clone(e.Details)
	if marked.Details == nil {
		marked.Details = map[string]any{}
	}
	marked.Details[notSent] = true
	return &marked
}

// The members of Details that At sets.
const (
	paramOfCode = "param"
	lineOfCode  = "line"
)

// At returns a copy of an error in code that is a parameter of the call: name is the
// parameter, line the line of the code from 1. The host puts the position in the workflow
// file before the message, if the code is written there.
func (e *Error) At(name string, line int) *Error {
	located := *e
	located.Details = maps.Clone(e.Details)
	if located.Details == nil {
		located.Details = map[string]any{}
	}
	located.Details[paramOfCode], located.Details[lineOfCode] = name, int64(line)
	return &located
}

// CodeLine returns what [Error.At] has set; "" and 0 if it has set nothing.
func (e *Error) CodeLine() (name string, line int) {
	name, _ = e.Details[paramOfCode].(string)
	at, _ := e.Details[lineOfCode].(int64)
	return name, int(at)
}

// Error returns the message after the type.
func (e *Error) Error() string {
	if e.Source != "" {
		return fmt.Sprintf("%s: %s (%s)", e.Type, e.Message, e.Source)
	}
	return fmt.Sprintf("%s: %s", e.Type, e.Message)
}

// Unwrap returns the underlying Go error, if there is one in this process.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.cause
}

// failed reports whether err is a failure. An error that contains a nil [*Error]
// is not: the author who returned it meant success.
func failed(err error) bool {
	v := reflect.ValueOf(err)
	return err != nil && (v.Type() != reflect.TypeFor[*Error]() || !v.IsNil())
}

// Errorf returns an error. Types that are usually transient (timeout,
// connection_error, rate_limited, plugin_crashed) are retryable; set the field to
// change that. A %w verb is kept for errors.Is and errors.As.
func Errorf(t ErrorType, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	cause := errors.Unwrap(err)
	if cause == nil && errors.As(err, new(interface{ Unwrap() []error })) {
		cause = err // several %w verbs
	}
	return &Error{Type: t, Message: err.Error(), Retryable: t.isTransient(), cause: cause}
}

func (t ErrorType) isTransient() bool {
	switch t {
	case Timeout, ConnectionError, RateLimited, PluginCrashed:
		return true
	}
	return false
}

// AsError returns err as an [*Error]: itself if it is or wraps one, timeout or
// canceled for the errors of a context, resource_exhausted for a full disk,
// otherwise internal_error. nil stays nil.
func AsError(err error) *Error {
	if !failed(err) {
		return nil
	}
	var e *Error
	switch {
	case errors.As(err, &e) && e != nil:
		return e
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Type: Timeout, Message: err.Error(), Retryable: true, cause: err}
	case errors.Is(err, context.Canceled):
		return &Error{Type: Canceled, Message: err.Error(), cause: err}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &Error{Type: ResourceExhausted, Message: err.Error(), cause: err}
	}
	return &Error{Type: InternalError, Message: err.Error(), cause: err}
}
