// Package syncing synchronises the memory of a device with another store. Start
// with [Run].
//
// The device keeps, for each remote, the numbers up to which both feeds were
// read, and the base: the hash of every record that both sides had. A side whose
// hash equals the base did not change. A hash is noted as pending before the
// remote is written, so that a run after a crash recognizes its own write.
//
// A number of the remote says nothing if the remote is an older copy of itself.
// So the device leaves marks there: see history.go.
package syncing
