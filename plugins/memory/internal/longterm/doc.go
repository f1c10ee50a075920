// Package longterm has the rows of entries in an embedded database (write.go, read.go),
// with blobs for large values and a text index as their companion (index.go), and the
// checks and records of entries that all databases share (canonical.go). Start with
// [New].
//
// Every change gets a sequence number. An index that is behind reads the rows with
// larger numbers than its own. expiry.go and sweep.go remove expired entries.
package longterm
