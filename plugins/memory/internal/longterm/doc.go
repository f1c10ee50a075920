// Package longterm is [store.LongTermMemory] on an embedded database: rows for
// the entries (write.go, read.go), blobs for large values (prepared.go), and a
// text index as their companion (index.go, search.go). Start with [New].
//
// Every change takes a number that only grows. The index is brought up to date
// from the rows with larger numbers than its own; expiry.go and sweep.go take
// away what has outlived its time.
package longterm
