// Package objects is a [keyed.DB] in a folder of an object storage, which devices
// and browsers share without a server. Start with [Open].
//
// The pairs are stored in leaves, objects that each hold a range of the keys. A write adds an object with its
// operations, a delta. Deltas are merged with each other and later into the leaves. Leaves and deltas are immutable.
// One object, the head, lists the leaves and deltas that make up the database. It is replaced with a compare-and-swap,
// so states are totally ordered, and a write that loses the race has no effect.
package objects
