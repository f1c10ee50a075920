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

//go:noescape
func dotAVX(a, b *float32, n int) float32

//go:noescape
func dotSSE(a, b *float32, n int) float32
