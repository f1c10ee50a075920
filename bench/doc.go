// Command bench measures the figures that tea promises and how its cost
// grows: `make bench`. The table goes to stderr, JSON to stdout.
//
// It runs the Go benchmarks of other packages and of this one (growth_test.go,
// memory_test.go), starts bin/tea as a user would, and measures the sizes of the
// binaries for linux/arm64. Start with [promises], which lists every figure with
// its limit. With -starts it measures only the starts and fails if one exceeds
// its budget, for CI.
package main
