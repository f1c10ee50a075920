//go:build !amd64 && !arm64

package vector

// dot is the scalar product of two rows of the same length.
func dot(a, b []float32) float32 { return dotPortable(a, b) }

// dotCodes is the scalar product of two codes of the same length.
func dotCodes(a, b []int8) int32 { return dotCodesPortable(a, b) }
