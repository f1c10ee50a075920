// Package replica is the [store.Replica] of an embedded memory: its entries,
// vectors, sessions, files and the catalog. Start with [New].
//
// It does not include data that stays on the device: the tables of data.* with their
// catalog, and the documents that identify repeated calls of data.*.
package replica
