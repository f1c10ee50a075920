// Package manifest stores files in a storage that devices share, and a record of
// each file in the memory with its address, summary and status. Start with
// [Manifest].
package manifest
