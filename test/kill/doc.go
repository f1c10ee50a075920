// Package kill kills the real binary, at random instants and at each system
// call that changes the disk, and looks at what a resume makes of it. There is
// nothing to import here; see kill_test.go and inject_test.go.
package kill
