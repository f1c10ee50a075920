package vector

// dot is the scalar product of two rows of the same length.
func dot(a, b []float32) float32 { return dotNEON(&a[0], &b[:len(a)][0], len(a)) }

//go:noescape
func dotNEON(a, b *float32, n int) float32
