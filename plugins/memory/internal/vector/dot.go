package vector

import (
	"fmt"
	"math"
)

// lanes is the multiple that the length of a row is rounded up to, with zeros.
const lanes = 8

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

// dotPortable is the scalar product of two rows for processors without an
// assembly version, which computes exactly the same on every processor, since
// the order of hits depends on the last bit: element i is added to sum i%32 of
// 32 sums, each product and each sum is rounded, and the sums are added in the
// order below.
func dotPortable(a, b []float32) float32 {
	var sums [4][lanes]float32
	b = b[:len(a)]
	for part := range sums {
		var s0, s1, s2, s3, s4, s5, s6, s7 float32
		for i := part * lanes; i+lanes <= len(a); i += 4 * lanes {
			x, y := (*[lanes]float32)(a[i:]), (*[lanes]float32)(b[i:])
			// The conversions keep the compiler from fusing product and sum.
			s0 += float32(x[0] * y[0])
			s1 += float32(x[1] * y[1])
			s2 += float32(x[2] * y[2])
			s3 += float32(x[3] * y[3])
			s4 += float32(x[4] * y[4])
			s5 += float32(x[5] * y[5])
			s6 += float32(x[6] * y[6])
			s7 += float32(x[7] * y[7])
		}
		sums[part] = [lanes]float32{s0, s1, s2, s3, s4, s5, s6, s7}
	}
	var s [lanes]float32
	for i := range s {
		s[i] = (sums[0][i] + sums[1][i]) + (sums[2][i] + sums[3][i])
	}
	return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]))
}

// codeLanes is the multiple that the length of the codes is rounded up to, with zeros.
const codeLanes = 32

// codesOf returns the length of the codes for vectors of the dimension.
func codesOf(dimension int) int { return (dimension + codeLanes - 1) / codeLanes * codeLanes }

// rounding bounds the error of dot and of the product of two codes.
const rounding = 1e-5

// quantise writes the row as integers. The row is scale times the codes, except
// for a vector whose length is at most far.
func quantise(row []float32, codes []int8) (scale, far float32) {
	var largest float32
	for _, x := range row {
		largest = max(largest, x, -x)
	}
	if largest == 0 {
		return 0, 0
	}
	scale = largest / 127
	inverse := 127 / largest
	var sum float64
	for i, x := range row[:min(len(row), len(codes))] {
		c := int32(float32(x*inverse)+128.5) - 128 // not fused, as in dotPortable
		codes[i] = int8(c)
		d := float64(x) - float64(scale)*float64(c)
		sum += d * d
	}
	return scale, float32(math.Sqrt(sum)) + rounding/10
}

// dotCodesPortable is the scalar product of two codes for processors without an
// assembly version.
func dotCodesPortable(a, b []int8) int32 {
	var s0, s1, s2, s3 int32
	b = b[:len(a)]
	for i := 0; i+4 <= len(a); i += 4 {
		x, y := (*[4]int8)(a[i:]), (*[4]int8)(b[i:])
		s0 += int32(x[0]) * int32(y[0])
		s1 += int32(x[1]) * int32(y[1])
		s2 += int32(x[2]) * int32(y[2])
		s3 += int32(x[3]) * int32(y[3])
	}
	return s0 + s1 + s2 + s3
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
		sum += float64(v * v) // not fused, as in dotPortable
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
