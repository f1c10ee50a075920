//go:build !linux

package chromium

// memoryOf returns 0: this system does not support the measurement.
func memoryOf(int) int64 { return 0 }
