//go:build !race

package peertest

// RaceDetector reports whether this is a build with the race detector.
const RaceDetector = false
