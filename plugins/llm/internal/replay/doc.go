// Package replay is a provider that stands between the actions and a real
// provider: it records what that one answers, and plays it back later without
// a server, a network or a key. Workflows are tested and shown with it.
//
// A recording is a file of JSON lines, one per answer, see [Record]. An answer
// is found by a hash of what was asked; whether it is streamed makes no
// difference to that, and a recorded stream comes back in the same pieces.
//
// Start with [Open].
package replay
