package algorithm

import (
	"container/heap"
	"context"
	"math"
)

// Distances returns the length of the shortest path from a node to each node, +Inf if
// there is none, and the previous node on that path, -1 if there is none. Weights must
// not be negative; without them every edge has length 1.
func (g *Graph) Distances(ctx context.Context, start int, weighted bool) (distances []float64, before []int32, err error) {
	distances, before = make([]float64, g.n), make([]int32, g.n)
	for i := range distances {
		distances[i], before[i] = math.Inf(1), -1
	}
	distances[start] = 0
	done := make([]bool, g.n)
	queue := &nearest{{node: int32(start)}}
	for steps := 0; queue.Len() > 0; steps++ {
		if steps%4096 == 0 && ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		next := heap.Pop(queue).(place)
		if done[next.node] {
			continue
		}
		done[next.node] = true
		targets, weights := g.from(int(next.node))
		for i, t := range targets {
			length := 1.0
			if weighted {
				length = weights[i]
			}
			if d := next.distance + length; d < distances[t] {
				distances[t], before[t] = d, next.node
				heap.Push(queue, place{node: t, distance: d})
			}
		}
	}
	return distances, before, nil
}

// place is a node in a queue.
type place struct {
	node     int32
	distance float64
}

// nearest is a priority queue, nearest node first.
type nearest []place

func (q nearest) Len() int { return len(q) }
func (q nearest) Less(i, j int) bool {
	return q[i].distance < q[j].distance || q[i].distance == q[j].distance && q[i].node < q[j].node
}
func (q nearest) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *nearest) Push(x any)   { *q = append(*q, x.(place)) }

// Pop removes the last element, which package heap has moved there.
func (q *nearest) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
