package vector

import (
	"math"
	"math/rand/v2"
)

// source makes vectors for tests and benchmarks, always the same ones.
type source struct {
	random    *rand.Rand
	dimension int
	centres   [][]float32
	spread    float64
}

// newSource makes a source of vectors around so many centres; without centres
// they are noise. The spread is the length of the deviation from a centre of
// length one: with 0.65 two vectors of a cluster have a similarity of 0.7.
func newSource(dimension, centres int, spread float64) *source {
	s := &source{random: rand.New(rand.NewPCG(7, 11)), dimension: dimension, spread: spread}
	for range centres {
		s.centres = append(s.centres, s.noise())
	}
	return s
}

// noise returns a vector without preferred direction, of length one.
func (s *source) noise() []float32 {
	vec := make([]float32, s.dimension)
	sum := 0.0
	for i := range vec {
		x := s.random.NormFloat64()
		vec[i] = float32(x)
		sum += x * x
	}
	for i := range vec {
		vec[i] /= float32(math.Sqrt(sum))
	}
	return vec
}

// next returns a vector of a random cluster.
func (s *source) next() []float32 {
	if len(s.centres) == 0 {
		return s.noise()
	}
	return s.near(s.random.IntN(len(s.centres)))
}

// near returns a vector of the cluster.
func (s *source) near(cluster int) []float32 {
	vec := make([]float32, s.dimension)
	scale := s.spread / math.Sqrt(float64(s.dimension))
	for i, x := range s.centres[cluster] {
		vec[i] = x + float32(s.random.NormFloat64()*scale)
	}
	return vec
}

// many returns n vectors.
func (s *source) many(n int) [][]float32 {
	vecs := make([][]float32, n)
	for i := range vecs {
		vecs[i] = s.next()
	}
	return vecs
}

// recall returns which part of the exact hits was found.
func recall(got, exact []Hit) float64 {
	if len(exact) == 0 {
		return 1
	}
	ids := make(map[int64]bool)
	for _, h := range got {
		ids[h.ID] = true
	}
	found := 0
	for _, h := range exact {
		if ids[h.ID] {
			found++
		}
	}
	return float64(found) / float64(len(exact))
}
