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

// foreign makes vectors that resemble nothing in the other sources.
func foreign(dimension int) *source {
	from := newSource(dimension, 0, 0)
	from.random = rand.New(rand.NewPCG(1, 2))
	return from
}

// unreached returns the slots of the graph that cannot be reached from the
// entry in the lowest layer.
func (v *view) unreached() []uint32 {
	_, entry, ok := unpackEntry(v.entry.Load())
	if !ok {
		return nil
	}
	seen := make([]bool, v.built)
	seen[entry] = true
	for open := []uint32{entry}; len(open) > 0; {
		at := open[len(open)-1]
		open = open[:len(open)-1]
		for duplicate, more := v.after(at); more; duplicate, more = v.after(duplicate) {
			seen[duplicate] = true
		}
		links := v.links(at, 0)
		for i := range links[0].Load() {
			if s := links[1+i].Load(); s < v.built && !seen[s] {
				seen[s] = true
				open = append(open, s)
			}
		}
	}
	var missing []uint32
	for slot, found := range seen {
		if !found {
			missing = append(missing, uint32(slot))
		}
	}
	return missing
}

// among returns the ids below n that pass.
func among(n int64, passes func(id int64) bool) []int64 {
	ids := []int64{}
	for id := range n {
		if passes(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// scattered reports whether an id is one of one in n, without a period.
func scattered(id int64, n uint64) bool {
	x := (uint64(id) + 1) * 0x9e3779b97f4a7c15
	return (x^x>>29)%n == 0
}
