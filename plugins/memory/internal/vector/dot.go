package vector

import (
	"fmt"
	"math"
)

// lanes is the multiple that the length of a row is rounded up to, with zeros, so
// that every row has the same alignment. Otherwise the last bits of the product
// of two vectors could depend on their slots.
const lanes = 4

// strideOf returns the length of a row for vectors of the dimension.
func strideOf(dimension int) int { return (dimension + lanes - 1) / lanes * lanes }

// similarity returns the cosine of the angle between two normalised rows.
func similarity(row, query []float32) float32 {
	s := dot(row, query)
	if s > 1 {
		return 1
	}
	if s < -1 {
		return -1
	}
	return s
}

// dotPortable is the scalar product for processors without an assembly version.
// Eight separate sums reduce the wait for each addition.
func dotPortable(a, b []float32) float32 {
	var s0, s1, s2, s3, s4, s5, s6, s7 float32
	b = b[:len(a)]
	for len(a) >= 8 && len(b) >= 8 {
		s0 += a[0] * b[0]
		s1 += a[1] * b[1]
		s2 += a[2] * b[2]
		s3 += a[3] * b[3]
		s4 += a[4] * b[4]
		s5 += a[5] * b[5]
		s6 += a[6] * b[6]
		s7 += a[7] * b[7]
		a, b = a[8:], b[8:]
	}
	for i := range a {
		s0 += a[i] * b[i]
	}
	return (s0 + s4) + (s1 + s5) + ((s2 + s6) + (s3 + s7))
}

// normalise returns the vector as a row of length one. A vector of zeros returns
// a row of zeros and false.
func normalise(vec []float32, dimension int) (row []float32, directed bool, err error) {
	if len(vec) != dimension {
		return nil, false, fmt.Errorf("%w: %d instead of %d", ErrDimension, len(vec), dimension)
	}
	var sum float64
	for i, x := range vec {
		v := float64(x)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, false, fmt.Errorf("element %d: %w", i, ErrNotFinite)
		}
		sum += v * v
	}
	row = make([]float32, strideOf(dimension))
	if sum == 0 {
		return row, false, nil
	}
	// In float64 neither the square of the largest float32 nor the square of the
	// smallest is out of range.
	scale := 1 / math.Sqrt(sum)
	for i, x := range vec {
		row[i] = float32(float64(x) * scale)
	}
	return row, true, nil
}
