// Package filelock locks open files for one owner at a time, also among
// processes. A lock ends with its open file. Start with [Lock].
package filelock
