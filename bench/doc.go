// Command bench measures the figures that tea promises and how its cost
// grows: `make bench`. The table goes to stderr, JSON to stdout.
//
// It runs the Go benchmarks of the packages they belong to and of this one
// (growth_test.go, memory_test.go), starts bin/tea as a user would, and weighs
// the binaries for linux/arm64. Start with [promises], which names every
// figure with its limit. With -starts it measures the starts alone and fails
// where one takes more than its budget, for CI.
package main
