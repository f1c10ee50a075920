package algorithm

import (
	"context"
	"math"
)

// PageRank returns the probability with which a reader who follows edges at
// random is at each node. With a probability of 1-damping, and at nodes without
// edges, the reader starts anywhere.
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

// Degree returns the degree centrality: the part of the other nodes to which a
// node has edges.
func (g *Graph) Degree() []float64 {
	all := make([]float64, g.n)
	for i := range all {
		all[i] = float64(g.degree(i)) / max(float64(g.n-1), 1)
	}
	return all
}

// Closeness returns the closeness centrality: how near a node is to those that it
// reaches, multiplied by their part of all nodes.
func (g *Graph) Closeness(ctx context.Context) ([]float64, error) {
	all := make([]float64, g.n)
	b := newBreadth(g)
	for i := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		total := 0
		b.from(i)
		for _, node := range b.order {
			total += int(b.distance[node])
		}
		if reached := float64(len(b.order) - 1); total > 0 {
			all[i] = reached / float64(total) * reached / float64(g.n-1)
		}
	}
	return all, nil
}

// Betweenness returns the betweenness centrality by Brandes' algorithm: the part
// of the shortest paths between other nodes that lead through a node.
func (g *Graph) Betweenness(ctx context.Context) ([]float64, error) {
	all := make([]float64, g.n)
	b := newBreadth(g)
	paths, share := make([]float64, g.n), make([]float64, g.n)
	for s := range g.n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b.from(s)
		for _, node := range b.order {
			paths[node], share[node] = 0, 0
		}
		paths[s] = 1
		for _, node := range b.order {
			targets, _ := g.from(int(node))
			for _, t := range targets {
				if b.distance[t] == b.distance[node]+1 {
					paths[t] += paths[node]
				}
			}
		}
		for i := len(b.order) - 1; i >= 0; i-- {
			node := b.order[i]
			targets, _ := g.from(int(node))
			for _, t := range targets {
				if b.distance[t] == b.distance[node]+1 {
					share[node] += paths[node] / paths[t] * (1 + share[t])
				}
			}
			if int(node) != s {
				all[node] += share[node]
			}
		}
	}
	// The number of pairs of other nodes, counted from both ends.
	if pairs := float64(g.n-1) * float64(g.n-2); pairs > 0 {
		for i := range all {
			all[i] /= pairs
		}
	}
	return all, nil
}

// breadth is a breadth-first search that is used many times.
type breadth struct {
	g        *Graph
	distance []int32 // -1 = not reached
	order    []int32
}

func newBreadth(g *Graph) *breadth {
	b := &breadth{g: g, distance: make([]int32, g.n)}
	for i := range b.distance {
		b.distance[i] = -1
	}
	return b
}

// from searches from a node.
func (b *breadth) from(start int) {
	for _, node := range b.order {
		b.distance[node] = -1
	}
	b.order = append(b.order[:0], int32(start))
	b.distance[start] = 0
	for i := 0; i < len(b.order); i++ {
		node := b.order[i]
		targets, _ := b.g.from(int(node))
		for _, t := range targets {
			if b.distance[t] < 0 {
				b.distance[t] = b.distance[node] + 1
				b.order = append(b.order, t)
			}
		}
	}
}
