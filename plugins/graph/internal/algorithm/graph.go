// Package algorithm has algorithms on a whole graph in memory. Start with [New].
// Every algorithm is deterministic: nodes are numbers, and ties go to the lower
// one. They return the error of the context when it is done.
package algorithm

// Edge is a directed edge between two nodes.
type Edge struct {
	From, To int32
	Weight   float64
}

// Graph is a directed graph of the nodes 0 to n-1. It does not change.
type Graph struct {
	n int
	// The neighbors of node i are targets[offsets[i]:offsets[i+1]].
	offsets []int32
	targets []int32
	weights []float64
}

// New returns the graph of n nodes with the edges. If both is true each edge is
// also followed backwards, which makes the graph an undirected one.
func New(n int, edges []Edge, both bool) *Graph {
	g := &Graph{n: n, offsets: make([]int32, n+1)}
	each := func(f func(from, to int32, weight float64)) {
		for _, e := range edges {
			f(e.From, e.To, e.Weight)
			if both && e.From != e.To {
				f(e.To, e.From, e.Weight)
			}
		}
	}
	total := 0
	each(func(from, _ int32, _ float64) { g.offsets[from+1]++; total++ })
	for i := range n {
		g.offsets[i+1] += g.offsets[i]
	}
	g.targets, g.weights = make([]int32, total), make([]float64, total)
	next := append([]int32(nil), g.offsets...)
	each(func(from, to int32, weight float64) {
		g.targets[next[from]], g.weights[next[from]] = to, weight
		next[from]++
	})
	return g
}

// Reverse returns the edges in the other direction.
func Reverse(edges []Edge) []Edge {
	all := make([]Edge, len(edges))
	for i, e := range edges {
		all[i] = Edge{From: e.To, To: e.From, Weight: e.Weight}
	}
	return all
}

// Len returns the number of nodes, and that of edges as they are followed.
func (g *Graph) Len() (nodes, edges int) { return g.n, len(g.targets) }

// degree is the number of edges from a node.
func (g *Graph) degree(i int) int { return int(g.offsets[i+1] - g.offsets[i]) }

// from returns the neighbors of a node, and the weights of the edges to them.
func (g *Graph) from(i int) ([]int32, []float64) {
	return g.targets[g.offsets[i]:g.offsets[i+1]], g.weights[g.offsets[i]:g.offsets[i+1]]
}
