//go:build !race

package devicetest

// RaceDetector reports whether this is a build with the race detector.
const RaceDetector = false
