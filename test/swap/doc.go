// Package swap tests that no call is lost while plugins are replaced under a
// running host: with a real database, and when the host is killed in the middle
// of a swap. make swaps runs it with the numbers that tea promises.
package swap
