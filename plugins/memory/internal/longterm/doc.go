// Package longterm is [store.LongTermMemory] on an embedded database: rows for
// the entries (write.go, read.go), blobs for large values (prepared.go), and a
// text index as their companion (index.go, search.go). Start with [New].
//
// Every change gets a sequence number. An index that is behind reads the rows with
// larger numbers than its own. expiry.go and sweep.go remove expired entries.
package longterm
