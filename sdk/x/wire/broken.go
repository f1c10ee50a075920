package wire

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	tea "github.com/the-edge-agent/tea/sdk"
)

// BrokenError means that a plugin violated the protocol: the connection or the process broke,
// or the plugin does not implement the protocol.
type BrokenError struct {
	// Doing is the action or the protocol step.
	Doing string
	// Gone means that the connection is lost; otherwise the plugin's response violates the protocol.
	Gone bool
	err  error
}

// Error describes the failure.
func (e *BrokenError) Error() string {
	reason := status.Convert(e.err).Message()
	if e.Gone {
		return fmt.Sprintf("%s: the connection to the plugin is lost: %s", e.Doing, reason)
	}
	return fmt.Sprintf("%s: the plugin broke the protocol: %s", e.Doing, reason)
}

// Unwrap returns gRPC's error.
func (e *BrokenError) Unwrap() error { return e.err }

// violation returns the internal_error for an answer that the protocol does not allow. It
// wraps a [*BrokenError].
func violation(action, what string) error {
	return tea.Errorf(tea.InternalError, "%w", &BrokenError{Doing: action, err: errors.New(what)})
}

// LateError means that a call was abandoned at its deadline or because it was canceled. The
// plugin may still be working on it, see [Client.Call].
type LateError struct {
	// CallID names the call.
	CallID string
	err    *tea.Error
}

// Error describes the failure.
func (e *LateError) Error() string { return e.err.Error() }

// Unwrap returns the timeout or canceled error.
func (e *LateError) Unwrap() error { return e.err }

// toLate marks the error of an abandoned call.
func toLate(ctx context.Context, id string, err error) error {
	deadline, bounded := ctx.Deadline()
	over := ctx.Err() != nil || bounded && time.Until(deadline) <= 0
	var e *tea.Error
	if over && errors.As(err, &e) {
		return &LateError{CallID: id, err: e}
	}
	return err
}

// toBroken converts gRPC's error to the error of the call.
func toBroken(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		e := tea.AsError(ctx.Err())
		e.Message = doing + ": " + e.Message
		return e
	}
	s := status.Convert(err)
	switch s.Code() {
	case codes.DeadlineExceeded:
		// gRPC's deadline can pass slightly before the context's.
		return tea.Errorf(tea.Timeout, "%s: %w", doing, context.DeadlineExceeded)
	case codes.ResourceExhausted:
		return tea.Errorf(tea.ValidationError, "%w", &BrokenError{Doing: doing, err: fmt.Errorf("a message is larger than the limit (64 MiB): %s", s.Message())})
	}
	return &BrokenError{Doing: doing, Gone: s.Code() == codes.Unavailable || s.Code() == codes.Canceled, err: err}
}
