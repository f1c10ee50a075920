// Package manifest stores files in a storage that devices share, and a record of
// each in the memory: where it is, what it is about, whether it is in use. Start
// with [Manifest].
package manifest
