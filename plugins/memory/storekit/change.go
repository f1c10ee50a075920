package storekit

import (
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Name is the name of a document.
type Name = documents.Name

// Written is a document as changes leave it.
type Written = documents.Written

// CheckChange returns a validation_error for an invalid change.
func CheckChange(c store.Change) error { return documents.Check(c) }

// Merge returns what valid changes make of documents that have these versions, each
// document once, in the order of its last change; those without a version do not
// exist. The error of a condition that is not met wraps store.ErrConflict.
func Merge(changes []store.Change, versions map[Name]int64) ([]Written, error) {
	return documents.Merge(changes, versions)
}

// PrefixEnd returns the first text after all that begin with prefix, in the order of
// their bytes; "" if there is none.
func PrefixEnd(prefix string) string { return documents.Behind(prefix) }
