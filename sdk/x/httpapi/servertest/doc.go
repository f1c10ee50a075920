// Package servertest simulates servers that behave in a given way, byte for byte and chunk
// for chunk, over real HTTP. It is for tests.
//
// Start with [Start].
package servertest
