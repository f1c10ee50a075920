// Package records has the stores of a memory over the rows of a [store.Driver]: what a
// workflow can do with entries, documents and vectors, once for all databases. Start
// with [Open].
package records
