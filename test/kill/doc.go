// Package kill kills the real binary, at random instants and at each system call that changes the disk, and checks the
// result of a resume. The package exports nothing; see kill_test.go and inject_test.go.
package kill
