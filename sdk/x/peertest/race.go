//go:build race

package peertest

// RaceDetector reports whether this is a build with the race detector, which slows down tests
// with much data and many processes about tenfold.
const RaceDetector = true
