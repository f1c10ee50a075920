//go:build !linux

package chromium

// memoryOf cannot measure on this system.
func memoryOf(int) int64 { return 0 }
