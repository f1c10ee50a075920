// Package replica is the [store.Replica] of an embedded memory: its entries,
// vectors, sessions, files and the catalog. Start with [New].
//
// What a device keeps for itself is not in it: the tables of data.*, with their
// rows in the catalog, and the calls that repeated calls of data.* are found by.
package replica
