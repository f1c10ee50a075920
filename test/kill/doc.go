// Package kill kills the real binary at random instants and looks at what a
// resume makes of it. There is nothing to import here; see kill_test.go.
package kill
