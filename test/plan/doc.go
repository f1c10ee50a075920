// Package plan kills the real binary with a plan in it, and counts at a real
// server how often each subtask was executed. There is nothing to import here;
// see kill_test.go.
package plan
