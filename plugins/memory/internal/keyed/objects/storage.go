package objects

import (
	"context"
	"errors"
)

// Storage is a folder of an object storage. It is safe for concurrent use.
type Storage interface {
	// Get returns an object with its version. If the version is the given one, the
	// data is nil. The error for an object that does not exist wraps ErrNotFound.
	Get(ctx context.Context, name, have string) (data []byte, version string, err error)
	// Put writes an object on the condition that it has a version, "" = that it does
	// not exist. It returns the new version. The error of a Put whose condition is not
	// met wraps ErrConflict.
	Put(ctx context.Context, name string, data []byte, match string) (version string, err error)
	// Delete removes an object, which need not exist.
	Delete(ctx context.Context, name string) error
	// Close releases the connections.
	Close() error
}

// The errors of a Storage that a DB branches on.
var (
	ErrNotFound = errors.New("there is no such object")
	ErrConflict = errors.New("another version of the object exists")
)
