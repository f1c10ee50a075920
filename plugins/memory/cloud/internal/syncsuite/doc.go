// Package syncsuite tests archives and memory.sync through the memory's bundle,
// with devices that share a memory on a server. Start with [All].
package syncsuite
