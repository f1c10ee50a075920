// Package plan kills the real binary while it executes a plan, and counts at a real server how often each subtask was
// executed. The package exports nothing; see kill_test.go.
package plan
