// Package lockfile reads and writes tea.lock, which pins the plugins of a
// project: name, version, and the SHA-256 of the binary and of each further
// file for every platform. With a lock no other plugin runs.
//
// The file is JSON in one canonical form with a checksum, so that any changed byte
// is detected. Start with [Read] and [Lock.Check].
package lockfile
