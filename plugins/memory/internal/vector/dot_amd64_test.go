package vector

import "testing"

func TestDotWithoutAVX(t *testing.T) {
	t.Parallel()
	checkDot(t, func(a, b []float32) float32 { return dotSSE(&a[0], &b[0], len(a)) })
}
