package inspect

// arrange assigns each box to a row and finds the path of each edge. If a
// downward edge has a label, a row for labels follows the row of its node, so
// that no line crosses a label.
func (l *layout) arrange() {
	back := l.backEdges()
	level := l.levels(back)
	labels := l.shownLabels()
	labelled := map[int]bool{}
	for i, e := range l.diagram.Edges {
		if labels[i] != "" && !back[i] {
			labelled[level[e.From]] = true
		}
	}
	row := make([]int, level[end]+1)
	for at := 1; at < len(row); at++ {
		row[at] = row[at-1] + 1
		if labelled[at-1] {
			l.labelRows[row[at]] = true
			row[at]++
		}
	}
	l.rows = make([][]*box, row[len(row)-1]+1)
	for _, b := range l.order {
		b.row = row[level[b.name]]
		l.rows[b.row] = append(l.rows[b.row], b)
	}
	for i, e := range l.diagram.Edges {
		from, to := l.boxes[e.From], l.boxes[e.To]
		if back[i] {
			l.ways = append(l.ways, l.up(from, to, labels[i]))
		} else {
			l.ways = append(l.ways, l.down(from, to, labels[i]))
		}
	}
}

// shownLabels returns the labels of the edges. A label that several edges from
// one node share, such as the branches of a fan-out, is shown once.
func (l *layout) shownLabels() []string {
	labels := make([]string, len(l.diagram.Edges))
	seen := map[[2]string]bool{}
	for i, e := range l.diagram.Edges {
		about := e.about()
		if key := [2]string{e.From, about}; !seen[key] {
			seen[key] = true
			labels[i] = about
		}
	}
	return labels
}

// levels puts each node below its predecessors, not counting edges back; the
// end is at the bottom.
func (l *layout) levels(back map[int]bool) map[string]int {
	level := map[string]int{}
	// The longest path from the top, which is finite without back edges.
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

// down returns the path to a box further down: a lane in each row between. The
// first one has the label.
func (l *layout) down(from, to *box, label string) []*box {
	way := []*box{from}
	for row := from.row + 1; row < to.row; row++ {
		b := l.lane(lane{to: to.name, row: row}, label)
		label = ""
		b.above = append(b.above, way[len(way)-1])
		way = append(way, b)
	}
	to.above = append(to.above, way[len(way)-1])
	return append(way, to)
}

// up returns the path back: out of the bottom, past the rows of both boxes and
// all rows between, and in at the top. The lane next to the first box has the
// label.
func (l *layout) up(from, to *box, label string) []*box {
	way, above := []*box{from, to}, to
	for row := to.row; row <= from.row; row++ {
		text := ""
		if row == from.row {
			text = label
		}
		b := l.lane(lane{to: to.name, row: row, up: true}, text)
		b.above = append(b.above, above)
		above = b
		way = append(way[:1], append([]*box{b}, way[1:]...)...)
	}
	return way
}

// lane returns the lane of edges to a box through a row; an edge with a label
// has a separate one.
func (l *layout) lane(at lane, label string) *box {
	if label != "" {
		b := &box{row: at.row, text: label}
		b.w, b.h = l.drawn(padding/2+cells(label)*labelWidth, lineHeight)
		l.rows[at.row] = append(l.rows[at.row], b)
		return b
	}
	b := l.lanes[at]
	if b == nil {
		b = &box{row: at.row}
		l.lanes[at] = b
		l.rows[at.row] = append(l.rows[at.row], b)
	}
	return b
}

// backEdges finds the edges that close a cycle, depth-first.
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
