// Package algorithm implements algorithms on a graph in memory. Start with [New].
// Every algorithm is deterministic: nodes are numbers, and the lower number wins a
// tie. They return the error of the context when it is done.
package algorithm

// Edge is a directed edge between two nodes.
type Edge struct {
	From, To int32
	Weight   float64
}

// Graph is an immutable directed graph of the nodes 0 to n-1.
type Graph struct {
	n int
	// The neighbors of node i are targets[offsets[i]:offsets[i+1]].
	offsets []int32
	targets []int32
	weights []float64
	// both reports whether edges are followed in both directions.
	both bool
}

// New returns the graph of n nodes with the edges. If both is true, edges are also
// followed backwards, so that the graph is undirected.
func New(n int, edges []Edge, both bool) *Graph {
	g := &Graph{n: n, offsets: make([]int32, n+1), both: both}
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

// Len returns the number of nodes, and the number of edges in the directions they are followed.
func (g *Graph) Len() (nodes, edges int) { return g.n, len(g.targets) }

// degree is the number of edges from a node. If edges are followed in both directions, a
// loop counts twice.
func (g *Graph) degree(i int) int {
	n := int(g.offsets[i+1] - g.offsets[i])
	if !g.both {
		return n
	}
	targets, _ := g.from(i)
	for _, t := range targets {
		if int(t) == i {
			n++
		}
	}
	return n
}

// simple returns the graph without loops and with only the lightest of parallel edges:
// shortest paths do not use the others.
func (g *Graph) simple() *Graph {
	s := &Graph{n: g.n, offsets: make([]int32, g.n+1), both: g.both}
	place := make([]int32, g.n) // of a node among the targets, plus 1
	for i := range g.n {
		targets, weights := g.from(i)
		begin := int32(len(s.targets))
		for j, t := range targets {
			switch at := place[t]; {
			case int(t) == i:
			case at > begin:
				s.weights[at-1] = min(s.weights[at-1], weights[j])
			default:
				s.targets, s.weights = append(s.targets, t), append(s.weights, weights[j])
				place[t] = int32(len(s.targets))
			}
		}
		s.offsets[i+1] = int32(len(s.targets))
	}
	return s
}

// from returns the neighbors of a node, and the weights of the edges to them.
func (g *Graph) from(i int) ([]int32, []float64) {
	return g.targets[g.offsets[i]:g.offsets[i+1]], g.weights[g.offsets[i]:g.offsets[i+1]]
}
