// Package agent kills the real binary while a team of agents works, and counts at a real server how often each request to
// the model and each call of a tool was made. The package exports nothing; see kill_test.go.
package agent
