// Package smalldisktest mounts small file systems, for tests of disks that are full
// or read-only. Start with [New]. It works on Linux.
package smalldisktest
