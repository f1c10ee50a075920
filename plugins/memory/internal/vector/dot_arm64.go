package vector

// dot is the scalar product of two rows of the same length.
func dot(a, b []float32) float32 { return dotNEON(&a[0], &b[:len(a)][0], len(a)) }

//go:noescape
func dotNEON(a, b *float32, n int) float32

// dotCodes is the scalar product of two codes of the same length, a multiple of
// codeLanes.
func dotCodes(a, b []int8) int32 { return dotCodesNEON(&a[0], &b[:len(a)][0], len(a)) }

//go:noescape
func dotCodesNEON(a, b *int8, n int) int32
