// Package replay is a provider that sits between the actions and a real
// provider: it records the real answers and plays them back later without a
// server, a network or a key. Workflows are tested and shown with it.
//
// A recording is a file of JSON lines, one per answer, see [Record]. It
// contains no secrets: requests and answers are masked before they are
// written. An answer is found by a hash of the masked request; whether it is
// streamed does not matter, and a recorded stream is played in the same pieces.
//
// Start with [Open].
package replay
