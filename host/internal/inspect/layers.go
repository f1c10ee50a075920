package inspect

// arrange puts each box into a row and finds the way of each edge.
func (l *layout) arrange() {
	back := l.backEdges()
	level := l.levels(back)
	for _, b := range l.order {
		b.row = level[b.name]
		for len(l.rows) <= b.row {
			l.rows = append(l.rows, nil)
		}
		l.rows[b.row] = append(l.rows[b.row], b)
	}
	for i, e := range l.diagram.Edges {
		from, to := l.boxes[e.From], l.boxes[e.To]
		if back[i] {
			l.ways = append(l.ways, l.up(from, to))
		} else {
			l.ways = append(l.ways, l.down(from, to))
		}
	}
}

// levels puts each node below all nodes that lead to it, edges that lead back
// aside; the end is at the bottom.
func (l *layout) levels(back map[int]bool) map[string]int {
	level := map[string]int{}
	// The longest way from the top; without back edges it ends.
	for changed := true; changed; {
		changed = false
		for i, e := range l.diagram.Edges {
			if !back[i] && level[e.To] < level[e.From]+1 {
				level[e.To] = level[e.From] + 1
				changed = true
			}
		}
	}
	for _, b := range l.order {
		level[end] = max(level[end], level[b.name])
	}
	return level
}

// down is the way to a box further down: a lane in each row between.
func (l *layout) down(from, to *box) []*box {
	way := []*box{from}
	for row := from.row + 1; row < to.row; row++ {
		b := l.lane(lane{to: to.name, row: row})
		b.above = append(b.above, way[len(way)-1])
		way = append(way, b)
	}
	to.above = append(to.above, way[len(way)-1])
	return append(way, to)
}

// up is the way back: out of the bottom, past the rows of both boxes and all
// between, and in at the top.
func (l *layout) up(from, to *box) []*box {
	way, above := []*box{from, to}, to
	for row := to.row; row <= from.row; row++ {
		b := l.lane(lane{to: to.name, row: row, up: true})
		b.above = append(b.above, above)
		above = b
		way = append(way[:1], append([]*box{b}, way[1:]...)...)
	}
	return way
}

func (l *layout) lane(at lane) *box {
	b := l.lanes[at]
	if b == nil {
		b = &box{row: at.row}
		l.lanes[at] = b
		l.rows[at.row] = append(l.rows[at.row], b)
	}
	return b
}

// backEdges finds the edges that close a circle, by a walk into the depth.
func (l *layout) backEdges() map[int]bool {
	leaving := map[string][]int{}
	for i, e := range l.diagram.Edges {
		leaving[e.From] = append(leaving[e.From], i)
	}
	const open, closed = 1, 2
	mark, back := map[string]int{}, map[int]bool{}
	var walk func(name string)
	walk = func(name string) {
		mark[name] = open
		for _, i := range leaving[name] {
			switch to := l.diagram.Edges[i].To; mark[to] {
			case open:
				back[i] = true
			case 0:
				walk(to)
			}
		}
		mark[name] = closed
	}
	for _, b := range l.order {
		if mark[b.name] == 0 {
			walk(b.name)
		}
	}
	return back
}
