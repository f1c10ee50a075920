// Package records implements the stores of a memory (entries, documents, vectors) once, on the rows of any
// [store.Driver]. Start with [Open].
package records
