// Package replay is a provider between the actions and a real provider. It records
// the real answers and replays them later without a server, a network or a key, for
// tests and demonstrations of workflows.
//
// A recording is a file of JSON lines, one per answer, see [Record]. It contains no
// secrets: requests and answers are masked before they are written. An answer is found
// by a hash of the masked request, streamed or not; a recorded stream is replayed in
// the same pieces.
//
// Start with [Open].
package replay
