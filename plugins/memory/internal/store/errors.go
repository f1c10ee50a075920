package store

import "errors"

// ErrNotFound is what a lookup wraps where there is nothing under that name.
var ErrNotFound = errors.New("not found")

// ErrConflict is what a conditional write wraps where somebody else was first.
var ErrConflict = errors.New("changed by somebody else")
