package vector

import "golang.org/x/sys/cpu"

// dot is the scalar product of two rows of the same length.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	if cpu.X86.HasAVX {
		return dotAVX(&a[0], &b[0], len(a))
	}
	return dotSSE(&a[0], &b[0], len(a))
}

// dotCodes is the scalar product of two codes of the same length, a multiple of
// codeLanes.
func dotCodes(a, b []int8) int32 {
	b = b[:len(a)]
	if cpu.X86.HasAVX2 {
		return dotCodesAVX2(&a[0], &b[0], len(a))
	}
	return dotCodesPortable(a, b)
}

//go:noescape
func dotCodesAVX2(a, b *int8, n int) int32

//go:noescape
func dotAVX(a, b *float32, n int) float32

//go:noescape
func dotSSE(a, b *float32, n int) float32
