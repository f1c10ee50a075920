package vector

import "gonum.org/v1/gonum/blas/gonum"

// dot is the scalar product of two rows of the same length, in gonum's SSE code.
func dot(a, b []float32) float32 {
	return gonum.Implementation{}.Sdot(len(a), a, 1, b, 1)
}
