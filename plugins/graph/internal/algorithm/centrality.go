package algorithm

import (
	"container/heap"
	"context"
)

// Degree returns the degree centrality: the number of a node's edges divided by the number
// of other nodes.
func (g *Graph) Degree() []float64 {
	all := make([]float64, g.n)
	for i := range all {
		if all[i] = 1; g.n > 1 {
			all[i] = float64(g.degree(i)) / float64(g.n-1)
		}
	}
	return all
}

// Closeness returns the closeness centrality: how near a node is to the nodes that it
// reaches, multiplied by their share of all nodes. With weights, they are lengths.
func (g *Graph) Closeness(ctx context.Context, weighted bool) ([]float64, error) {
	all := make([]float64, g.n)
	search := newSearch(g.simple(), weighted)
	for i := range all {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		total := 0.0
		search.from(i)
		for _, node := range search.order {
			total += search.distance[node]
		}
		if reached := float64(len(search.order) - 1); total > 0 {
			all[i] = reached / total * reached / float64(g.n-1)
		}
	}
	return all, nil
}

// Betweenness returns the betweenness centrality by Brandes' algorithm: the share of the
// shortest paths between other nodes that lead through a node. With weights, they are
// lengths, which must be positive.
func (g *Graph) Betweenness(ctx context.Context, weighted bool) ([]float64, error) {
	all := make([]float64, g.n)
	search := newSearch(g.simple(), weighted)
	paths, share := make([]float64, g.n), make([]float64, g.n)
	for s := range g.n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		search.from(s)
		for _, node := range search.order {
			paths[node], share[node] = 0, 0
		}
		paths[s] = 1
		for _, node := range search.order {
			search.next(int(node), func(t int32) { paths[t] += paths[node] })
		}
		for i := len(search.order) - 1; i >= 0; i-- {
			node := search.order[i]
			search.next(int(node), func(t int32) { share[node] += paths[node] / paths[t] * (1 + share[t]) })
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

// search finds the distances from a node. It can be reused.
type search struct {
	g        *Graph
	weighted bool
	distance []float64 // -1 = not reached
	order    []int32   // by distance
	queue    nearest
}

func newSearch(g *Graph, weighted bool) *search {
	s := &search{g: g, weighted: weighted, distance: make([]float64, g.n)}
	for i := range s.distance {
		s.distance[i] = -1
	}
	return s
}

// next calls f with the next nodes on shortest paths through a node.
func (s *search) next(node int, f func(int32)) {
	targets, weights := s.g.from(node)
	for i, t := range targets {
		length := 1.0
		if s.weighted {
			length = weights[i]
		}
		if s.distance[t] == s.distance[node]+length {
			f(t)
		}
	}
}

// from searches from a node.
func (s *search) from(start int) {
	for _, node := range s.order {
		s.distance[node] = -1
	}
	s.order = append(s.order[:0], int32(start))
	s.distance[start] = 0
	if s.weighted {
		s.lightest(start)
		return
	}
	for i := 0; i < len(s.order); i++ {
		node := s.order[i]
		targets, _ := s.g.from(int(node))
		for _, t := range targets {
			if s.distance[t] < 0 {
				s.distance[t] = s.distance[node] + 1
				s.order = append(s.order, t)
			}
		}
	}
}

// lightest implements Dijkstra's algorithm.
func (s *search) lightest(start int) {
	s.order = s.order[:0]
	s.queue = append(s.queue[:0], place{node: int32(start)})
	for s.queue.Len() > 0 {
		next := heap.Pop(&s.queue).(place)
		if next.distance > s.distance[next.node] {
			continue // already reached by a shorter path
		}
		s.order = append(s.order, next.node)
		targets, weights := s.g.from(int(next.node))
		for i, t := range targets {
			if d := next.distance + weights[i]; s.distance[t] < 0 || d < s.distance[t] {
				s.distance[t] = d
				heap.Push(&s.queue, place{node: t, distance: d})
			}
		}
	}
}
