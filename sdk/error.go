package tea

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// ErrorType says what kind of failure an [Error] is; workflows match on it
// (retry_on, error_type).
type ErrorType string

// The types of failure. Types beyond these are allowed and treated like
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
	// ResourceExhausted is a full disk, or a limit of memory or size that was reached.
	ResourceExhausted ErrorType = "resource_exhausted"
	PluginCrashed     ErrorType = "plugin_crashed"
	Canceled          ErrorType = "canceled"
	BudgetExceeded    ErrorType = "budget_exceeded"
	InternalError     ErrorType = "internal_error"
)

// Error is an action's failure.
type Error struct {
	Type    ErrorType
	Message string
	// Retryable says that the same call may succeed later; only such calls
	// are retried unless the workflow names the type in retry_on.
	Retryable bool
	// RetryAfter is how long to wait at least, 0 where unknown.
	RetryAfter time.Duration
	// Source is where it came from, such as a plugin's name or a URL's host.
	Source string
	// Details are further fields for the workflow, such as an HTTP status.
	Details map[string]any

	cause error
}

// Error is the message, led by the type.
func (e *Error) Error() string {
	if e.Source != "" {
		return fmt.Sprintf("%s: %s (%s)", e.Type, e.Message, e.Source)
	}
	return fmt.Sprintf("%s: %s", e.Type, e.Message)
}

// Unwrap gives the Go error behind, if there is one in this process.
func (e *Error) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.cause
}

// failed tells whether err is a failure. A nil [*Error] in an error is none:
// that is what an author meant who returned one.
func failed(err error) bool {
	v := reflect.ValueOf(err)
	return err != nil && (v.Type() != reflect.TypeFor[*Error]() || !v.IsNil())
}

// Errorf makes an error. Types that usually pass (timeout, connection_error,
// rate_limited, plugin_crashed) are retryable; set the field to say otherwise.
// A %w verb is kept for errors.Is and errors.As.
func Errorf(t ErrorType, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	cause := errors.Unwrap(err)
	if cause == nil && errors.As(err, new(interface{ Unwrap() []error })) {
		cause = err // several %w verbs
	}
	return &Error{Type: t, Message: err.Error(), Retryable: t.usuallyPasses(), cause: cause}
}

func (t ErrorType) usuallyPasses() bool {
	switch t {
	case Timeout, ConnectionError, RateLimited, PluginCrashed:
		return true
	}
	return false
}

// AsError gives err as an [*Error]: itself where it is one, timeout and
// canceled for the context's errors, internal_error otherwise. nil stays nil.
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
	}
	return &Error{Type: InternalError, Message: err.Error(), cause: err}
}
