// Package syncing synchronises the memory of a device with another store. Start
// with [Run].
//
// For each remote, the device stores the read positions in both feeds and the
// base: the hash of every record that both sides had. A side whose hash equals
// the base did not change. A hash is stored as pending before the remote is
// written, so that a run after a crash recognizes its own write.
//
// Change numbers mean nothing if the remote has been replaced with an older copy of itself, so the device writes marks
// there: see history.go.
package syncing
