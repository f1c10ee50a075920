// Package objects is a [keyed.DB] in a folder of an object storage, which devices
// and browsers share without a server. Start with [Open].
//
// The pairs are in leaves: objects that each have a range of the keys in their
// order. A write adds an object with its operations, a delta, and deltas are merged
// with each other and later with the leaves that they change. Leaves and deltas never
// change. One object, the head, names those that make up the database, and is only
// replaced on the condition that it is the one that was read. So all states have one
// order, and a write that another device has overtaken has done nothing.
package objects
