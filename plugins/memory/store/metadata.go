package store

import (
	"context"
	"encoding/json"
)

// MetadataStore stores JSON documents of several kinds (sessions, files, catalog
// entries) and finds them by their fields. Readers see an Apply atomically.
//
// A call whose context has ended fails with the context's error or succeeds.
//
// Implementations are safe for concurrent use.
type MetadataStore interface {
	// Get returns the document, or an error that wraps ErrNotFound.
	Get(ctx context.Context, kind, id string) (Document, error)
	// Apply does the changes atomically. They are durable on return. If a
	// change's condition is not met, the error wraps ErrConflict and names the
	// document.
	Apply(ctx context.Context, changes ...Change) error
	// Query returns documents of one kind.
	Query(ctx context.Context, query DocumentQuery) ([]Document, error)
	// Count returns the number of documents that match a query, without its limit.
	Count(ctx context.Context, query DocumentQuery) (int, error)
}

// Document is a JSON object with a name.
type Document struct {
	Kind, ID string
	// Body is the stored text, byte for byte.
	Body json.RawMessage
	// Version counts its changes from 1.
	Version int64
	// Seq is the number of its last change in the order of all changes.
	Seq int64
}

// Change writes or removes one document.
type Change struct {
	Kind, ID string
	// Body replaces the document; nil removes it.
	Body json.RawMessage
	// If is the version that the document must have: 0 = any or none, New = none.
	If int64
}

// New is the condition of a Change that must create its document.
const New int64 = -1

// DocumentQuery selects documents of one kind. All conditions must match.
type DocumentQuery struct {
	Kind  string
	Where []Condition
	// OrderBy is a field, "id" or "seq" (the default); Descending reverses the
	// order. By a field, numbers come first, then texts, then the rest; documents
	// with equal values are in the order of their ids.
	OrderBy    string
	Descending bool
	// Limit bounds the result; 0 = 1,000.
	Limit, Offset int
}

// Condition compares a field of the body with a value. A field is a path of
// names with dots; an absent field is null; "id" is the document's name.
// Times compare as RFC 3339 text. An invalid Condition is a validation_error.
type Condition struct {
	Field string
	Op    Op
	// Value is nil, a bool, an int64, a float64 or a string; for In a []any
	// of these.
	Value any
}

// Op is the operator of a Condition.
type Op string

// The comparisons. Prefix takes a string and is case-sensitive; Eq with nil
// finds null and absent fields; an order between different types is false.
const (
	Eq     Op = "="
	Ne     Op = "!="
	Lt     Op = "<"
	Le     Op = "<="
	Gt     Op = ">"
	Ge     Op = ">="
	In     Op = "in"
	Prefix Op = "prefix"
)
