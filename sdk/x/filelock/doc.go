// Package filelock locks files for one owner at a time, also between processes. A lock
// ends with its open file. Start with [Lock], or for a directory with [Own]
// or [MakeDir].
package filelock
