package storekit

import (
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Name is the name of a document.
type Name = documents.Name

// Written is a document after changes.
type Written = documents.Written

// CheckChange returns a validation_error for an invalid change.
func CheckChange(c store.Change) error { return documents.Check(c) }

// Merge returns the documents that result from valid changes of documents with
// these versions, each document once, in the order of its last change. A document
// without a version does not exist. If a condition is not met, the error wraps
// store.ErrConflict.
func Merge(changes []store.Change, versions map[Name]int64) ([]Written, error) {
	return documents.Merge(changes, versions)
}

// PrefixEnd returns the smallest text, in the order of bytes, that is greater
// than all texts that begin with prefix; "" if there is none.
func PrefixEnd(prefix string) string { return documents.Behind(prefix) }
