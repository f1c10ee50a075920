package algorithm

import "context"

// Components returns the number of each node's component in an undirected graph. Components
// are numbered from 0 in the order of their lowest nodes.
func (g *Graph) Components() []int32 {
	group := make([]int32, g.n)
	for i := range group {
		group[i] = -1
	}
	var next int32
	b := newSearch(g, false)
	for i := range group {
		if group[i] >= 0 {
			continue
		}
		b.from(i)
		for _, node := range b.order {
			group[node] = next
		}
		next++
	}
	return group
}

// maxRounds bounds the rounds of a level of Communities.
const maxRounds = 100

// Communities returns the number of each node's community in an undirected graph, by
// the Louvain method: nodes move to the neighboring community that raises the
// modularity most, then communities become nodes. It also returns the modularity.
func (g *Graph) Communities(ctx context.Context) (group []int32, modularity float64, err error) {
	level := newLevel(g)
	group = make([]int32, g.n)
	for i := range group {
		group[i] = int32(i)
	}
	for {
		moved, err := level.move(ctx)
		if err != nil {
			return nil, 0, err
		}
		number := level.renumber()
		for i := range group {
			group[i] = level.group[group[i]]
		}
		modularity = level.modularity()
		if !moved || number == len(level.group) {
			return group, modularity, nil
		}
		level = level.merge(number)
	}
}

// level is a graph whose nodes are communities of the level before.
type level struct {
	links [][]link
	// own is the weight of a node's loops, counted twice, and degree the weight of
	// all its edges.
	own, degree []float64
	total       float64
	group       []int32
	sum         []float64 // of the degrees of a group
}

type link struct {
	to     int32
	weight float64
}

func newLevel(g *Graph) *level {
	l := &level{links: make([][]link, g.n), own: make([]float64, g.n), degree: make([]float64, g.n)}
	for i := range g.n {
		targets, weights := g.from(i)
		for j, t := range targets {
			if int(t) == i {
				l.own[i] += 2 * weights[j]
			} else {
				l.links[i] = append(l.links[i], link{to: t, weight: weights[j]})
			}
		}
	}
	l.count()
	return l
}

// count derives the other fields from the links: each node is a group.
func (l *level) count() {
	n := len(l.links)
	l.group, l.sum = make([]int32, n), make([]float64, n)
	l.total = 0
	for i := range n {
		l.degree[i] = l.own[i]
		for _, e := range l.links[i] {
			l.degree[i] += e.weight
		}
		l.total += l.degree[i]
		l.group[i], l.sum[i] = int32(i), l.degree[i]
	}
}

// move moves nodes until the modularity stops rising. It reports whether any node has
// moved.
func (l *level) move(ctx context.Context) (moved bool, err error) {
	if l.total == 0 {
		return false, nil
	}
	to := make([]float64, len(l.links)) // weight to each group
	var touched []int32
	for range maxRounds {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		again := false
		for i := range l.links {
			own := l.group[i]
			touched = append(touched[:0], own)
			for _, e := range l.links[i] {
				group := l.group[e.to]
				if to[group] == 0 && group != own {
					touched = append(touched, group)
				}
				to[group] += e.weight
			}
			l.sum[own] -= l.degree[i]
			best, most := own, to[own]-l.sum[own]*l.degree[i]/l.total
			for _, group := range touched {
				gain := to[group] - l.sum[group]*l.degree[i]/l.total
				if gain > most+1e-12 || gain > most-1e-12 && group < best && best != own {
					best, most = group, gain
				}
				to[group] = 0
			}
			l.sum[best] += l.degree[i]
			if best != own {
				l.group[i] = best
				again, moved = true, true
			}
		}
		if !again {
			break
		}
	}
	return moved, nil
}

// renumber numbers the groups from 0 by their lowest node, and returns their
// number.
func (l *level) renumber() int {
	numbers := make(map[int32]int32, len(l.group))
	for i, group := range l.group {
		number, ok := numbers[group]
		if !ok {
			number = int32(len(numbers))
			numbers[group] = number
		}
		l.group[i] = number
	}
	return len(numbers)
}

func (l *level) modularity() float64 {
	if l.total == 0 {
		return 0
	}
	inside, sum := make([]float64, len(l.group)), make([]float64, len(l.group))
	for i, group := range l.group {
		inside[group] += l.own[i]
		sum[group] += l.degree[i]
		for _, e := range l.links[i] {
			if l.group[e.to] == group {
				inside[group] += e.weight
			}
		}
	}
	total := 0.0
	for i := range inside {
		total += inside[i]/l.total - sum[i]/l.total*sum[i]/l.total
	}
	return total
}

// merge returns a level whose nodes are the groups.
func (l *level) merge(n int) *level {
	m := &level{links: make([][]link, n), own: make([]float64, n), degree: make([]float64, n)}
	at := map[[2]int32]int{}
	for i, group := range l.group {
		m.own[group] += l.own[i]
		for _, e := range l.links[i] {
			other := l.group[e.to]
			if other == group {
				m.own[group] += e.weight
				continue
			}
			key := [2]int32{group, other}
			j, ok := at[key]
			if !ok {
				j = len(m.links[group])
				at[key] = j
				m.links[group] = append(m.links[group], link{to: other})
			}
			m.links[group][j].weight += e.weight
		}
	}
	m.count()
	return m
}
