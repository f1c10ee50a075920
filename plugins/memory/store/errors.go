package store

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	tea "github.com/the-edge-agent/tea/sdk"
)

// ErrNotFound is wrapped by the error of a lookup that finds nothing.
var ErrNotFound = errors.New("not found")

// ErrConflict is wrapped by the error of a conditional write whose condition is
// not met.
var ErrConflict = errors.New("changed concurrently")

// ErrReadOnly is wrapped by the error of a write to a memory that is open for
// reading only.
var ErrReadOnly = errors.New("read-only")

// ErrUnsupported is wrapped by the error of a call that a backend does not
// support; see [Unsupported].
var ErrUnsupported = errors.New("cannot do this")

// ErrTooLarge is wrapped by the error of a write if one of its records or rows is
// larger than the store accepts. memory.sync and memory.import then write the
// others.
var ErrTooLarge = errors.New("larger than the store accepts")

// IsFull reports whether an error of the operating system means that no space
// is left.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// SystemError converts an error of the operating system to a *tea.Error:
// resource_exhausted for a full disk, permission_denied for a folder that cannot
// be written, otherwise internal_error. A *tea.Error, an error of a context and
// an error without a system call are returned unchanged.
func SystemError(err error) error {
	var typed *tea.Error
	switch {
	case errors.As(err, &typed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	case IsFull(err):
		return tea.Errorf(tea.ResourceExhausted, "%w", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return tea.Errorf(tea.PermissionDenied, "the memory needs a folder that it can write; set settings.memory.path: %w", err)
	case errors.As(err, new(syscall.Errno)):
		return tea.Errorf(tea.InternalError, "%w", err)
	}
	return err
}
