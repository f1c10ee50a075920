package algorithm

import (
	"context"
	"math"
)

// PageRank returns the probability that a reader who follows edges at random is at a
// node. With a probability of 1-damping, and at nodes without edges, the reader
// continues anywhere.
func (g *Graph) PageRank(ctx context.Context, damping, tolerance float64, iterations int) ([]float64, error) {
	if g.n == 0 {
		return nil, nil
	}
	n := float64(g.n)
	rank, next := make([]float64, g.n), make([]float64, g.n)
	sums := make([]float64, g.n)
	for i := range rank {
		rank[i] = 1 / n
		_, weights := g.from(i)
		for _, w := range weights {
			sums[i] += w
		}
	}
	for range iterations {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		lost := 0.0
		clear(next)
		for i, r := range rank {
			if sums[i] == 0 {
				lost += r
				continue
			}
			targets, weights := g.from(i)
			for j, t := range targets {
				next[t] += r * weights[j] / sums[i]
			}
		}
		change := 0.0
		for i := range next {
			next[i] = damping*(next[i]+lost/n) + (1-damping)/n
			change += math.Abs(next[i] - rank[i])
		}
		rank, next = next, rank
		if change < tolerance {
			break
		}
	}
	return rank, nil
}
