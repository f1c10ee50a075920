// Package exact finds the vectors most similar to a query, in memory. It keeps one
// byte per dimension and a bound of the resulting error, so that the candidates
// include every vector that can be among the best. [Vectors] is the set of a
// database; the caller compares the candidates with [Best].
package exact

import (
	"math"
	"slices"
)

// Index is a set of vectors of one dimension, with keys, and tags by which a search
// selects them. It is safe for concurrent reading.
type Index[K, T comparable] struct {
	dimension int
	keys      []K
	tags      []T
	codes     []int8
	// scales are the units of the codes, and slacks bound their error.
	scales, slacks []float32
	at             map[K]int
}

// New returns an empty index.
func New[K, T comparable](dimension int) *Index[K, T] {
	return &Index[K, T]{dimension: dimension, at: map[K]int{}}
}

// Len returns the number of vectors.
func (x *Index[K, T]) Len() int { return len(x.keys) }

// Put adds or replaces a vector.
func (x *Index[K, T]) Put(key K, tag T, vector []float32) {
	i, ok := x.at[key]
	if !ok {
		i = len(x.keys)
		x.at[key] = i
		x.keys, x.tags = append(x.keys, key), append(x.tags, tag)
		x.codes = append(x.codes, make([]int8, x.dimension)...)
		x.scales, x.slacks = append(x.scales, 0), append(x.slacks, 0)
	}
	x.tags[i] = tag
	unit, largest := normalize(vector)
	scale := largest / math.MaxInt8
	code, wrong := x.codes[i*x.dimension:(i+1)*x.dimension], 0.0
	for d, f := range unit {
		code[d] = 0
		if scale > 0 {
			code[d] = int8(math.Round(f / scale))
		}
		e := f - scale*float64(code[d])
		wrong += e * e
	}
	x.scales[i] = float32(scale)
	x.slacks[i] = float32(math.Sqrt(wrong)) + rounding
}

// rounding bounds the error of rounding sums.
const rounding = 1e-4

// Delete removes a vector.
func (x *Index[K, T]) Delete(key K) {
	i, ok := x.at[key]
	if !ok {
		return
	}
	last := len(x.keys) - 1
	x.keys[i], x.tags[i], x.scales[i], x.slacks[i] = x.keys[last], x.tags[last], x.scales[last], x.slacks[last]
	copy(x.codes[i*x.dimension:(i+1)*x.dimension], x.codes[last*x.dimension:])
	x.at[x.keys[i]] = i
	delete(x.at, key)
	x.keys, x.tags, x.scales, x.slacks = x.keys[:last], x.tags[:last], x.scales[:last], x.slacks[:last]
	x.codes = x.codes[:last*x.dimension]
}

// Candidates returns the keys of vectors that include the limit most similar ones, and
// those equal to the last of them. keep selects vectors by tag.
func (x *Index[K, T]) Candidates(query []float32, limit int, keep func(T) bool) []K {
	wide, _ := normalize(query)
	unit := make([]float32, len(wide))
	for i, f := range wide {
		unit[i] = float32(f)
	}
	type estimate struct {
		at           int
		lower, upper float32
	}
	var estimates []estimate
	for i := range x.keys {
		if !keep(x.tags[i]) {
			continue
		}
		about := x.scales[i] * dot(unit, x.codes[i*x.dimension:(i+1)*x.dimension])
		estimates = append(estimates, estimate{at: i, lower: about - x.slacks[i], upper: about + x.slacks[i]})
	}
	floor := float32(math.Inf(-1))
	if len(estimates) > limit {
		lowers := make([]float32, len(estimates))
		for i, g := range estimates {
			lowers[i] = g.lower
		}
		floor = largest(limit, lowers)
	}
	var keys []K
	for _, g := range estimates {
		if g.upper >= floor {
			keys = append(keys, x.keys[g.at])
		}
	}
	return keys
}

// largest returns the n-th largest of more than n numbers.
func largest(n int, numbers []float32) float32 {
	kept := make([]float32, 0, 2*n)
	floor := float32(math.Inf(-1))
	cut := func() {
		slices.Sort(kept)
		kept = kept[:copy(kept, kept[len(kept)-n:])]
		floor = kept[0]
	}
	for _, f := range numbers {
		if f <= floor {
			continue
		}
		if kept = append(kept, f); len(kept) == cap(kept) {
			cut()
		}
	}
	if len(kept) > n {
		cut()
	}
	return slices.Min(kept)
}

// normalize returns the unit vector and the largest absolute value in it.
func normalize(vector []float32) (unit []float64, largest float64) {
	var square float64
	for _, f := range vector {
		square += float64(f) * float64(f)
	}
	unit = make([]float64, len(vector))
	if square == 0 {
		return unit, 0
	}
	length := math.Sqrt(square)
	for i, f := range vector {
		unit[i] = float64(f) / length
		largest = max(largest, math.Abs(unit[i]))
	}
	return unit, largest
}

func dot(a []float32, b []int8) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * float32(b[i])
		s1 += a[i+1] * float32(b[i+1])
		s2 += a[i+2] * float32(b[i+2])
		s3 += a[i+3] * float32(b[i+3])
	}
	for ; i < len(a); i++ {
		s0 += a[i] * float32(b[i])
	}
	return s0 + s1 + s2 + s3
}
