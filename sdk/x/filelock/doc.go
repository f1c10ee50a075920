// Package filelock locks files for one owner at a time, also between processes. A lock
// ends with its open file. Start with [Lock], or with [Own] for a directory.
package filelock
