package store

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	tea "github.com/the-edge-agent/tea/sdk"
)

// ErrNotFound is what a lookup wraps where there is nothing under that name.
var ErrNotFound = errors.New("not found")

// ErrConflict is what a conditional write wraps where somebody else was first.
var ErrConflict = errors.New("changed by somebody else")

// ErrReadOnly is what a write to a memory wraps that is open for reading only.
var ErrReadOnly = errors.New("read-only")

// IsFull reports whether an error of the operating system means that no space
// is left.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// SystemError gives an error of the operating system the type that a workflow
// sees: a folder that must not be written is a matter of rights, a full disk one
// of space. An error with a type, one that ended a call, and one of no system
// call are returned as they are.
func SystemError(err error) error {
	var typed *tea.Error
	switch {
	case errors.As(err, &typed), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	case IsFull(err):
		return tea.Errorf(tea.ResourceExhausted, "%w", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return tea.Errorf(tea.PermissionDenied, "the memory needs a folder that it may write; set settings.memory.path: %w", err)
	case errors.As(err, new(syscall.Errno)):
		return tea.Errorf(tea.InternalError, "%w", err)
	}
	return err
}
